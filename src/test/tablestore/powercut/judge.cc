// The oracle: what a store may hold after a crash.
#include <algorithm>
#include <cstring>
#include <vector>

#include "test/tablestore/powercut/life.h"
#include "test/tablestore/powercut/writer.h"

namespace tablestore::powercut {

namespace {

std::string text(uint64_t n) { return std::to_string(n); }

uint64_t number_in(const std::string& row) {
  uint64_t n = 0;
  std::memcpy(&n, row.data(), std::min(row.size(), sizeof(n)));
  return n;
}

Result<uint64_t> number_row(Engine& engine, const std::string& key) {
  std::string row;
  auto found = engine.get(Family::super, key, &row);
  if (!found.ok()) return found.status();
  return *found ? number_in(row) : 0;
}

// One transaction that is in the store.
struct Done {
  uint64_t lsn;  // the highest where it is not known: these come last, in their writer's order
  sim::Change change;
};

// How many transactions of this writer the store has, of those in the journal.
Result<uint64_t> done_by(Engine& engine, const sim::State& floor, unsigned writer) {
  const std::string key = Writer::count_key(writer);
  const auto& rows = floor.rows[size_t(Family::super)];
  const auto before = rows.find(key);
  auto now = number_row(engine, key);
  if (!now.ok()) return now;
  return *now - (before == rows.end() ? 0 : number_in(before->second));
}

}  // namespace

std::string judge(Engine& engine, const Journal& previous, uint64_t acknowledged,
                  sim::State* state, uint64_t* lsn) {
  const auto found = number_row(engine, std::string("\0applied", 8));
  if (!found.ok()) return "the last transaction cannot be read: " + found.status().what();
  const uint64_t last = *lsn = *found;
  if (last < acknowledged)
    return "transaction " + text(acknowledged) + " was acknowledged, the store ends with " +
           text(last);
  *state = previous.floor();
  std::vector<Done> done;
  std::string failure;
  for (unsigned w = 0; w < max_writers; ++w) {
    const auto count = done_by(engine, *state, w);
    if (!count.ok()) return "a row cannot be read: " + count.status().what();
    const uint64_t known = previous.count(w);
    if (*count > known)
      return "the store has " + text(*count) + " transactions of writer " + text(w) +
             ", who made " + text(known);
    uint64_t index = 0;
    previous.each(w, known, [&](uint64_t its_lsn, const sim::Change& change) {
      const bool is_in = index++ < *count;
      if (its_lsn && is_in != (its_lsn <= last))
        failure = "transaction " + text(its_lsn) + (is_in ? " is" : " is not") +
                  " in the store, which ends with " + text(last);
      if (is_in) done.push_back({its_lsn ? its_lsn : UINT64_MAX, change});
    });
    if (!failure.empty()) return failure;
  }
  // The engine has transactions of its own, with nothing in them.
  if (previous.floor_lsn() + done.size() > last)
    return "the store ends with transaction " + text(last) + ", but has " + text(done.size()) +
           " after " + text(previous.floor_lsn());
  std::ranges::stable_sort(done, {}, &Done::lsn);
  for (const Done& d : done) state->apply(d.change);
  uint64_t damaged_reads = 0;
  try {
    const std::string d = sim::difference(engine, *state, {}, &damaged_reads);
    return d.empty() ? d : "after transaction " + text(last) + ": " + d;
  } catch (const sim::Unreadable& u) {
    return "a row cannot be read: " + u.what;
  }
}

}  // namespace tablestore::powercut
