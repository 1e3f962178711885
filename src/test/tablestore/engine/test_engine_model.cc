// Random transactions against an in-memory reference, with crashes and clean reopens.
#include <map>
#include <random>

#include "engine_fixture.h"

namespace tablestore {
namespace {

class EngineModel : public EngineFixture, public testing::WithParamInterface<uint64_t> {
 protected:
  // Containers come and go, of some stores.
  EngineModel() { parkable_open_max = GetParam() % 2 ? 2 : 0; }

  struct Object {
    std::vector<Extent> extents;
    uint64_t seed = 0;
  };
  std::mt19937_64 random{GetParam()};
  std::map<std::string, std::string> rows[families];
  std::map<std::string, Object> objects;
  uint64_t next_seed = 1;

  std::string key() { return "k" + std::to_string(random() % 200); }

  void change_rows(Txn& txn) {
    const unsigned f = 1 + random() % 3;
    const Family family{f};
    const std::string a = key(), b = key();
    switch (random() % 4) {
      case 0:
        txn.erase(family, a);
        rows[f].erase(a);
        break;
      case 1:
        if (a < b) {
          txn.erase_range(family, a, b);
          rows[f].erase(rows[f].lower_bound(a), rows[f].lower_bound(b));
        }
        break;
      default: {
        const std::string value(random() % 3000, char('a' + random() % 26));
        txn.put(family, a, value);
        rows[f][a] = value;
      }
    }
  }

  void change_data(Txn& txn) {
    const std::string name = key();
    Object& o = objects[name];
    for (const Extent& e : o.extents) txn.free(e);
    o.extents.clear();
    if (random() % 4 == 0) {
      objects.erase(name);
      return;
    }
    const uint64_t blocks = random() % 10 == 0 ? 1 + random() % 1500 : 1 + random() % 40;
    o.seed = next_seed++;
    o.extents = write(txn, blocks, o.seed).extents;
  }

  void check() {
    for (unsigned f = 1; f < families; ++f) {
      auto it = engine->iterate(Family(f), "\1", "");  // not the engine's own
      it->seek_to_first();
      for (const auto& [k, v] : rows[f]) {
        ASSERT_TRUE(it->valid()) << k;
        ASSERT_EQ(it->key(), k);
        ASSERT_EQ(it->value(), v);
        it->next();
      }
      ASSERT_FALSE(it->valid()) << it->key();
      ASSERT_TRUE(it->status().ok());
    }
    uint64_t blocks = 0, owned = 0;
    for (const auto& [name, o] : objects) {
      expect_data(o.extents, o.seed);
      for (const Extent& e : o.extents) {
        blocks += e.blocks;
        ASSERT_TRUE(engine->owned_blocks().at(e.container).all(e.block, e.blocks));
      }
    }
    for (const auto& [container, bitmap] : engine->owned_blocks()) owned += bitmap.count();
    ASSERT_EQ(owned, blocks);
  }
};

TEST_P(EngineModel, StateEqualsTheReference) {
  options.capacity_bytes = 512 << 20;
  options.delete_range_threshold = 20;
  format();
  open();
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 150; ++i) {
      auto txn = std::make_shared<Txn>();
      for (uint64_t n = random() % 4; n > 0; --n) change_rows(*txn);
      if (random() % 2) change_data(*txn);
      engine->submit(txn);
      if (random() % 100 == 0) { ASSERT_TRUE(engine->checkpoint().ok()); }
    }
    engine->drain();
    check();
    if (HasFatalFailure()) return;
    if (random() % 3 == 0)
      close_and_open();
    else
      crash_and_open();
    check();
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineModel, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace tablestore
