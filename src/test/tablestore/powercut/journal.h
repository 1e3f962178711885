// What a process that writes to an engine tells to those who will judge it after its death, in
// shared memory: each transaction before it is submitted, and which of them were acknowledged.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>

#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/status.h"
#include "test/tablestore/powercut/life_report.h"
#include "test/tablestore/sim/model.h"

namespace tablestore::powercut {

inline constexpr unsigned max_writers = 4;  // threads of one life that make transactions

// The journal of one life of a store: the state it began with, and what was done since, by each
// thread in its order. Memory that several processes map. One thread appends to a writer's part at
// a time; anybody reads.
class Journal {
 public:
  struct Record {
    std::atomic<uint64_t> lsn;  // 0 until the transaction is known to be durable
    uint64_t bytes;             // of the change, which follows
  };

  // Empty; what a life is judged by that has had no predecessor.
  static Result<std::unique_ptr<Journal>> create();
  // Of another process.
  static Result<std::unique_ptr<Journal>> map(int fd);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  int fd() const { return fd_; }

  // The life begins, with this state after transaction `lsn`: from now on it is judged by this
  // journal.
  void begin(const sim::State& state, uint64_t lsn);
  LifeReport& report() const { return head_->report; }
  bool begun() const { return report().begun.load(); }
  uint64_t floor_lsn() const { return head_->floor_lsn; }
  sim::State floor() const;

  // Before the transaction is submitted. Null: the journal is full.
  Record* append(unsigned writer, const sim::Change& change);
  // How many were appended.
  uint64_t count(unsigned writer) const { return head_->parts[writer].count.load(); }
  // In order, the first `count`.
  void each(unsigned writer, uint64_t count,
            const std::function<void(uint64_t lsn, const sim::Change&)>& visit) const;

  // In log order: that is the only sequence of the report.
  void acknowledge(Record* record, uint64_t lsn);
  // How many of the first `count` are known to be durable.
  bool all_durable(unsigned writer, uint64_t count) const;

  // What the engine of this life has done so far, now and then.
  void count(const Counters& counters);
  uint64_t counter(size_t index) const { return head_->counters[index].load(); }

  // Writes a file that map() takes.
  bool save(const char* path) const;

 private:
  struct Part {
    std::atomic<uint64_t> count;
    uint64_t end;  // bytes
  };
  struct Head {
    LifeReport report;
    uint64_t floor_lsn;
    Part parts[max_writers + 1];  // the last has the floor
    std::atomic<uint64_t> counters[std::size(counter_names)];
  };
  Journal(int fd, std::byte* memory);
  std::byte* part(unsigned number) const;
  Record* append_to(unsigned number, const std::string& bytes);

  const int fd_;
  std::byte* const memory_;
  Head* const head_;
};

}  // namespace tablestore::powercut
