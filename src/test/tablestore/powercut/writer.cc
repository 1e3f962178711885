#include "test/tablestore/powercut/writer.h"

#include <cstring>

#include "os/tablestore/engine/io/block_memory.h"

namespace tablestore::powercut {

class Writer::Reported : public Txn {
 public:
  Reported(Journal& journal, std::atomic<uint32_t>& on_their_way)
      : journal_(journal), on_their_way_(on_their_way) {}
  void durable() noexcept override { journal_.acknowledge(record, lsn()); }
  void applied() noexcept override {
    on_their_way_.fetch_sub(1);
    on_their_way_.notify_one();
  }
  Journal::Record* record = nullptr;

 private:
  Journal& journal_;
  std::atomic<uint32_t>& on_their_way_;
};

Writer::Writer(Engine& engine, Journal& journal, unsigned number, uint64_t seed,
               const sim::State& begin)
    : engine_(engine),
      journal_(journal),
      number_(number),
      random_(seed * max_writers + number),
      count_(0),
      next_content_(random_()) {
  const std::string own = prefix(number);
  for (const auto& [name, blocks] : begin.objects)
    if (name.starts_with(own)) latest_.objects[name] = blocks;
  references_ = sim::references_of(latest_);
  const auto& rows = begin.rows[size_t(Family::super)];
  if (const auto row = rows.find(count_key(number)); row != rows.end())
    std::memcpy(&count_, row->second.data(), sizeof(count_));
}

void Writer::wait_for_turn() {
  // Sometimes one at a time, sometimes many.
  if (random_() % 50 == 0) depth_ = random_() % 3 ? 1 + random_() % 24 : 1;
  for (uint32_t n = on_their_way_; n >= depth_; n = on_their_way_) on_their_way_.wait(n);
}

bool Writer::write() {
  wait_for_turn();
  auto txn = std::make_shared<Reported>(journal_, on_their_way_);
  sim::Change change;
  sim::TransactionBuilder builder({engine_, latest_, references_, next_content_, prefix(number_)},
                                  *txn, change);
  const uint32_t object = uint32_t(random_() % 6);
  for (uint64_t ops = 1 + random_() % 4 / (1 + random_() % 2); ops > 0; --ops) {
    auto op = sim::Op(random_() % sim::op_kinds);
    if ((op == sim::Op::big_rows || op == sim::Op::write_large) && random_() % 3)
      op = sim::Op::put_rows;
    builder.run({op, (object + 2 * uint32_t(random_() % 3)) % 6, uint32_t(random_() % 100000)});
  }
  const uint64_t count = count_ + 1;
  builder.put(Family::super, count_key(number_),
              std::string(reinterpret_cast<const char*>(&count), sizeof(count)));
  txn->sequencer = this;
  txn->barrier = random_() % 40 == 0;
  if (random_() % 30 == 0) {
    engine_.abandon(*txn);
    return true;
  }
  txn->record = journal_.append(number_, change);
  if (!txn->record) {
    engine_.abandon(*txn);
    return false;
  }
  count_ = count;
  sim::add_references(&references_, builder.references());
  latest_.apply(change);
  on_their_way_.fetch_add(1);
  engine_.submit(std::move(txn));
  return true;
}

std::string Writer::read() {
  if (latest_.objects.empty()) return {};
  auto object = latest_.objects.begin();
  std::advance(object, random_() % latest_.objects.size());
  if (object->second.empty()) return {};
  const sim::BlockRef& b = object->second[random_() % object->second.size()];
  BlockMemory found(block_bytes), wanted(block_bytes);
  const Status s = engine_.read({b.container, b.block, 1}, found.span());
  if (!s.ok()) return s.what();
  sim::fill_block(b.seed, b.index, wanted.data());
  if (std::memcmp(found.data(), wanted.data(), block_bytes) == 0) return {};
  return "object " + object->first + " reads back other bytes";
}

}  // namespace tablestore::powercut
