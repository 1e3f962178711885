// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A whole store on a simulated disk, and what it has to hold.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/Finisher.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
#include "test/objectstore/tablestore/sim/damage.h"
#include "test/objectstore/tablestore/sim/model.h"
#include "test/objectstore/tablestore/sim/transaction_maker.h"
#include "test/tablestore/sim/frame/snapshot.h"
#include "test/tablestore/sim/frame/verdict.h"
#include "test/tablestore/sim/sim_disk.h"
#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore_sim {

using tablestore::sim::Died;
using tablestore::sim::DiskImage;
using tablestore::sim::Failure;
using tablestore::sim::Fate;
using tablestore::sim::Faults;
using tablestore::sim::SimDisk;
using tablestore::sim::Snapshot;
using tablestore::sim::SteppedThreads;
using tablestore::sim::Unreadable;

/// The directory that is not simulated: it holds the files `fsid` and `type` only. Made by the
/// program, removed at its end.
void set_directory(const std::string& path);

/// How much memory the caches of all stores may have from now on. Few bytes: what is not in use
/// leaves them at once.
void set_cache_bytes(uint64_t bytes);
/// From now on a transaction that fails is taken back, or, as in an OSD, ends the process.
void take_back_failed_transactions(bool take_back);
/// What stores that are made from now on get from mkfs, and those that are mounted keep.
void provision(uint64_t bytes);
/// From now on a store is mounted with what is left of its log.
void accept_log_loss(bool accept);

/// One life of a store: from an image to the next crash. Single-threaded.
class Machine {
 public:
  static constexpr uint64_t capacity_bytes = 160 << 20;
  static tablestore::EngineOptions engine_options();

  /// `floor`: the state that must be there, after transaction `floor_lsn`.
  Machine(DiskImage image, uint64_t seed, State floor, uint64_t floor_lsn);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  int mkfs();
  /// 0 or an error. Throws Died.
  int mount();
  int umount();
  /// Of a store that is not mounted.
  int fsck() { return store->fsck(true); }
  int repair();

  /// The end of the process, wherever it is: what it had in memory is lost, but for what the oracle
  /// knows of it. Only floor(), floor_lsn() and state_at() may follow.
  void end();

  SimDisk& disk() { return *sim_disk; }
  TableStore& tablestore() { return *store; }
  tablestore::Engine& engine() { return store->parts().engine; }
  SteppedThreads& threads() { return *stepped_threads; }

  /// The table has met a full disk. RocksDB looks for space again after some seconds of real time,
  /// for which a simulator does not wait: such a store is to be stopped.
  bool table_is_full() const { return full; }
  /// Others have left room for more than the store keeps free.
  bool has_room();
  bool meets_full_disk(const tablestore::Status& status);
  /// From now on, the table is flushed now and then while writes are in flight.
  void flush_table_meanwhile();

  /// Makes and queues one transaction; through another handle than that of its first collection
  /// where `across`. 0, or the error with which the store refused it and took it back.
  int transaction(const std::vector<OpOnObject>& ops, bool across = false);
  void make_first_collections();
  /// A step of the commit lane.
  void commit();
  /// All that is durable goes to the table.
  void apply();
  /// The same until everything submitted is durable.
  void commit_all();
  /// A callback after all that was queued through one handle.
  void flush_commit(uint64_t which);
  /// Rows and blocks that belong to nothing, as no history leaves them: what repair is for.
  void add_strays(Random& random);

  Snapshot snapshot();
  /// The same from within SimDisk::watch.
  Snapshot snapshot(const DiskImage& image, const char* io);

  /// After recovery from a crash of `before`: checks that nothing up to `least_lsn` is missing, and
  /// all the state but what this disk's damage may hide; makes it the floor of this life.
  /// `mounts_crashed`: on the way here. What a mount writes has numbers as `before`'s transactions
  /// have, which are missing then; how many these are is not known of one that has crashed.
  void check_recovered(const Machine& before, uint64_t least_lsn, bool mounts_crashed);
  /// While nothing is queued: everything that was submitted is there, and nothing else.
  /// `unclean`: reads have failed, after which blocks and counts may be left to repair.
  void check_live(bool unclean);
  /// What is queued can be read, wherever it is. `may_fail`: the disk fails now and then.
  void check_some(Random& random, bool may_fail);
  /// A deep scrub of all that is there.
  void scrub();

  /// What the disk's damage may hide now; `state` has the collections.
  Damage damage(const State& state);
  /// The disk is damaged, or something was changed while it was, or reads failed.
  bool may_be_hit() const;
  /// The transaction that was to be queued last removes a collection in which there may be more
  /// than the state has: what was asked of an object that nobody could read, or, where rows
  /// cannot be read now, one whose removal is among them. An OSD lists before it removes.
  bool may_find_more_in_removed();
  /// Nothing of what is there is hit, nor has been.
  bool is_whole();
  /// From now on reads may fail, or not any more: what is changed meanwhile may be lost.
  void reads_may_fail(bool may) { failing_reads = may; }
  /// A repair has given up what was lost before it.
  void note_salvage(const Damage& before);
  /// All that was hit was replaced: what a repair has given up is settled.
  void forget_damage();
  /// The store died in a transaction on its OSD's own state, some of which is lost, or could not be
  /// read.
  bool died_of_own_state();

  /// Flips a bit of some object's data below the running store; false where there is none that lies
  /// on the disk alone.
  bool decay(Random& random);
  /// The same with the row of an object.
  struct DamagedRow {
    coll_t cid;
    ghobject_t oid;
  };
  std::optional<DamagedRow> decay_row(Random& random);
  /// The objects of which something is hit, or marked as lost, or says -EIO.
  std::set<std::pair<coll_t, ghobject_t>> objects_not_whole();
  /// A compaction of all, and one that the table wants.
  tablestore::Status compact();
  void step_compaction() { stepped_threads->step_compaction(); }
  /// Changes one of these where it is hit. As transaction().
  int change_damaged(Random& random);
  /// Removes an object, or puts another one in its place.
  int replace(const coll_t& cid, const ghobject_t& oid, bool anew);

  const State& floor() const { return floor_state; }
  uint64_t floor_lsn() const { return floor_at; }
  const State& latest() const { return latest_state; }
  uint64_t applied_lsn();
  /// The same, without what this mount has written itself.
  uint64_t recovered_lsn();
  /// State after transaction `lsn`.
  State state_at(uint64_t lsn) const;
  uint64_t damaged_reads() const { return eios; }

 private:
  struct Record;
  class Callback;
  class Around;
  using RecordRef = std::shared_ptr<Record>;
  /// In the order of their log sequence numbers.
  std::vector<RecordRef> records_until(uint64_t lsn) const;
  /// Damage::doubtful, as it was then.
  std::set<ghobject_t> doubtful_at(uint64_t lsn) const;
  using Handle = ObjectStore::CollectionHandle;

  void make_store();
  void become(State state, uint64_t lsn);
  int queue(TransactionMaker& maker, const coll_t& through);
  Handle& handle_of(const coll_t& cid);
  /// Runs callbacks that wait to be called.
  void run_callbacks();
  void called(Record& record, unsigned kind);
  void broken(const std::string& what);
  /// While nothing is queued: every transaction has said all that it has to say.
  void check_callbacks() const;
  /// Transactions of one handle, and those of one collection, keep their order.
  void check_order() const;

  std::shared_ptr<SimDisk> sim_disk;
  const std::shared_ptr<SteppedThreads> stepped_threads = std::make_shared<SteppedThreads>();
  Random random;
  bool full = false;
  State floor_state;
  std::set<ghobject_t> floor_doubtful;
  std::map<coll_t, unsigned> last_removed;   ///< bits, by what was to be queued last
  std::set<ghobject_t> last_doubtful;        ///< by the same
  uint64_t refused_before_last = 0;          ///< reads, in this life
  uint64_t floor_at;
  State latest_state;   ///< after all that was submitted, in the order of submission
  std::vector<RecordRef> submitted;
  std::map<coll_t, RecordRef> last_of;   ///< by the handle that it was queued through
  RecordRef being_queued;
  RecordRef cut_short;   ///< of the transaction in which the store died
  std::set<Callback*> callbacks;   ///< not called yet, owned by whoever they wait at
  uint64_t acknowledged_lsn = 0;
  bool failing_reads = false;
  Damage known;           ///< of this and earlier lives: all but what damage() finds out
  uint64_t eios = 0;
  std::string violation;   ///< found where nothing can be thrown

  ceph::mutex queue_mutex = ceph::make_mutex("tablestore_sim::Machine::queue_mutex");
  ceph::condition_variable queue_cond;
  ContextQueue callback_queue{queue_mutex, queue_cond};
  std::map<coll_t, Handle> handles;
  std::unique_ptr<TableStore> store;   ///< last: its transactions refer to the rest
};

}  // namespace tablestore_sim
