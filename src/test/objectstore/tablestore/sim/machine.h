// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A whole store on a simulated disk, and what it has to hold.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/Finisher.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
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

/// One life of a store: from an image to the next crash. Single-threaded.
class Machine {
 public:
  static constexpr uint64_t capacity_bytes = 160 << 20;

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
  int repair() { return store->repair(true); }

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
  bool meets_full_disk(const tablestore::Status& status);
  /// From now on, the table is flushed now and then while writes are in flight.
  void flush_table_meanwhile();

  /// Makes and queues one transaction; through another handle than that of its first collection
  /// where `across`. 0, or the error with which the store refused it and took it back.
  int transaction(const std::vector<OpOnObject>& ops, bool across = false);
  void make_first_collections();
  /// A step of the commit lane, and all that is durable goes to the table.
  void commit();
  /// The same until everything submitted is durable.
  void commit_all();
  /// A callback after all that was queued through one handle.
  void flush_commit(uint64_t which);
  /// Rows and blocks that belong to nothing, as no history leaves them: what repair is for.
  void add_strays(Random& random);

  Snapshot snapshot();
  /// The same from within SimDisk::watch.
  Snapshot snapshot(const DiskImage& image, const char* io);

  /// After recovery from `crashed`, a snapshot of `before`: checks the state, and makes it the
  /// floor of this life. `lied`: the disk has not kept its promises, so that acknowledged
  /// transactions may be missing, and reads may say -EIO.
  void check_recovered(const Machine& before, const Snapshot& crashed, bool lied);
  /// While nothing is queued: everything that was submitted is there, and nothing else.
  /// `unclean`: reads have failed, after which blocks and counts may be left to repair.
  void check_live(bool lied, bool unclean);
  /// What is queued can be read, wherever it is.
  void check_some(Random& random, bool may_fail);

  const State& floor() const { return floor_state; }
  uint64_t floor_lsn() const { return floor_at; }
  const State& latest() const { return latest_state; }
  uint64_t recovered_lsn();
  /// State after transaction `lsn`.
  State state_at(uint64_t lsn) const;
  uint64_t damaged_reads() const { return eios; }

 private:
  struct Record;
  class Callback;
  class Around;
  using RecordRef = std::shared_ptr<Record>;
  using Handle = ObjectStore::CollectionHandle;

  void make_store();
  void become(State state, uint64_t lsn);
  int queue(TransactionMaker& maker, const coll_t& through);
  Handle& handle_of(const coll_t& cid);
  /// Runs callbacks that wait to be called.
  void run_callbacks();
  void called(Record& record, unsigned kind);
  void broken(const std::string& what);
  /// Transactions of one handle, and those of one collection, keep their order.
  void check_order() const;

  std::shared_ptr<SimDisk> sim_disk;
  const std::shared_ptr<SteppedThreads> stepped_threads = std::make_shared<SteppedThreads>();
  Random random;
  bool full = false;
  State floor_state;
  uint64_t floor_at;
  State latest_state;   ///< after all that was submitted, in the order of submission
  std::vector<RecordRef> submitted;
  std::map<coll_t, RecordRef> last_of;   ///< by the handle that it was queued through
  RecordRef being_queued;
  RecordRef cut_short;   ///< of the transaction in which the store died
  std::set<Callback*> callbacks;   ///< not called yet, owned by whoever they wait at
  uint64_t acknowledged_lsn = 0;
  uint64_t eios = 0;
  std::string violation;   ///< found where nothing can be thrown

  ceph::mutex queue_mutex = ceph::make_mutex("tablestore_sim::Machine::queue_mutex");
  ceph::condition_variable queue_cond;
  ContextQueue callback_queue{queue_mutex, queue_cond};
  std::map<coll_t, Handle> handles;
  std::unique_ptr<TableStore> store;   ///< last: its transactions refer to the rest
};

}  // namespace tablestore_sim
