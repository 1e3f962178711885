#include "test/tablestore/sim/transaction_builder.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "os/tablestore/engine/io/block_memory.h"

namespace tablestore::sim {

const char* op_name(Op op) {
  static constexpr const char* names[op_kinds] = {
      "put_rows", "erase_rows", "count",  "write_small", "write_large", "write_medium", "overwrite",
      "append",   "truncate",   "remove", "clone",       "rename",      "big_rows"};
  return names[unsigned(op)];
}

namespace {

// More than some blocks of the log: by `n` such as LZ4 makes half of, nearly nothing, or cannot
// make smaller. The longest are not compressed.
std::string big_row(uint32_t n) {
  std::string row(100000 + n % 300000, char('A' + n % 26));
  constexpr size_t piece = 512;
  const size_t step = n % 3 == 0 ? 2 * piece : piece;
  uint64_t x = n * 0x9E3779B97F4A7C15u + 1;
  for (size_t at = 0; n % 3 != 1 && at < row.size(); at += step) {
    for (size_t i = at; i < std::min(at + piece, row.size()); ++i) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      row[i] = char(x);
    }
  }
  return row;
}

}  // namespace

void TransactionBuilder::put(Family family, const std::string& key, const std::string& value) {
  txn_.put(family, key, value);
  change_.rows.push_back({Change::Kind::put, family, key, value});
}

void TransactionBuilder::erase(Family family, const std::string& key) {
  txn_.erase(family, key);
  change_.rows.push_back({Change::Kind::erase, family, key, {}});
}

const Blocks* TransactionBuilder::find(const std::string& name) const {
  const auto changed = change_.objects.find(name);
  if (changed != change_.objects.end()) return changed->second ? &*changed->second : nullptr;
  const auto found = ground_.latest.objects.find(name);
  return found == ground_.latest.objects.end() ? nullptr : &found->second;
}

std::optional<Blocks> TransactionBuilder::write(uint32_t blocks) {
  if (!ground_.engine.reserve(blocks * block_bytes).ok()) return std::nullopt;
  const uint64_t seed = ground_.next_content++;
  auto memory = std::make_shared<BlockMemory>(blocks * block_bytes);
  for (uint32_t i = 0; i < blocks; ++i) fill_block(seed, i, memory->data() + i * block_bytes);
  const iovec iov{memory->data(), memory->size()};
  std::vector<uint32_t> checksums;
  Blocks written;
  for (const Extent& e : ground_.engine.write(txn_, {&iov, 1}, memory, &checksums))
    for (uint32_t b = e.block; b < e.end(); ++b)
      written.push_back({e.container, b, seed, uint32_t(written.size())});
  return written;
}

void TransactionBuilder::set(const std::string& name, std::optional<Blocks> blocks) {
  const Blocks* before = find(name);
  if (!before && !blocks) return;
  if (blocks)
    for (const BlockRef& b : *blocks) ++references_[{b.container, b.block}];
  std::vector<Extent> frees;
  if (before)
    for (const BlockRef& b : *before) {
      const std::pair at(b.container, b.block);
      const auto base = ground_.references.find(at);
      const int left =
          --references_[at] + (base == ground_.references.end() ? 0 : base->second);
      if (left > 0) continue;
      if (!frees.empty() && frees.back().container == b.container &&
          frees.back().end() == b.block && b.block % largest_slot_blocks)
        ++frees.back().blocks;
      else
        frees.push_back({b.container, b.block, 1});
    }
  for (const Extent& e : frees) txn_.free(e);
  if (blocks)
    put(Family::object, name, object_row(*blocks));
  else
    erase(Family::object, name);
  change_.objects[name] = std::move(blocks);
}

void TransactionBuilder::write_into(const std::string& name, uint32_t at, uint32_t blocks) {
  const Blocks* before = find(name);
  auto fresh = write(blocks);
  if (!fresh) return;
  Blocks after = before ? *before : Blocks();
  at = std::min<uint32_t>(at, uint32_t(after.size()));
  if (after.size() < at + blocks) after.resize(at + blocks);
  std::ranges::copy(*fresh, after.begin() + at);
  set(name, std::move(after));
}

void TransactionBuilder::rows(const OpOnObject& o) {
  const std::string& prefix = ground_.prefix;
  const std::string key = prefix + "k" + std::to_string(o.n % 10);
  if (o.op == Op::put_rows) {
    put(Family::data, key, std::string(o.n % 300, char('a' + o.n % 26)));
    put(Family::omap, key, std::to_string(o.n));
    put(Family::super, "M" + key, std::to_string(o.object));
  } else if (o.op == Op::erase_rows) {
    erase(Family::data, key);
    const std::string begin = prefix + "k2", end = prefix + "k7";
    txn_.erase_range(Family::omap, begin, end);
    change_.rows.push_back({Change::Kind::erase_range, Family::omap, begin, end});
  } else if (o.op == Op::count) {
    const int64_t deltas[2] = {int64_t(o.n), -1};
    txn_.add("P", deltas);
    change_.rows.push_back(
        {Change::Kind::add, Family::super, "P",
         std::string(reinterpret_cast<const char*>(deltas), sizeof(deltas))});
  } else {
    put(Family::omap, prefix + "big", big_row(o.n));
  }
}

void TransactionBuilder::run(const OpOnObject& o) {
  const std::string name = ground_.prefix + "o" + std::to_string(o.object % 6);
  const std::string other =
      ground_.prefix + "o" + std::to_string((o.object + 2 + o.n % 2 * 2) % 6);
  const Blocks* now = find(name);
  const uint32_t size = now ? uint32_t(now->size()) : 0;
  switch (o.op) {
    case Op::write_small: return write_into(name, 0, 1 + o.n % 3);
    case Op::write_large:  // some need containers of their own
      return write_into(name, 0, o.n % 16 == 1 ? 1100 + o.n % 900 : 70 + o.n % 200);
    case Op::write_medium: return write_into(name, 0, 5 + o.n % 25);
    case Op::overwrite: return write_into(name, size ? o.n % size : 0, 1 + o.n % 7);
    case Op::append: return write_into(name, size, 1 + o.n % 4);
    case Op::truncate:
      if (size) set(name, Blocks(now->begin(), now->begin() + o.n % size));
      return;
    case Op::remove: return set(name, std::nullopt);
    case Op::clone:
      if (now) set(other, Blocks(*now));
      return;
    case Op::rename:
      if (!now) return;
      {
        Blocks moved = *now;
        set(other, std::move(moved));
        set(name, std::nullopt);
      }
      return;
    default: return rows(o);
  }
}

void add_references(References* references, const References& more) {
  for (const auto& [at, count] : more)
    if (((*references)[at] += count) == 0) references->erase(at);
}

References references_of(const State& state) {
  References references;
  for (const auto& [name, blocks] : state.objects)
    for (const BlockRef& b : blocks) ++references[{b.container, b.block}];
  return references;
}

}  // namespace tablestore::sim
