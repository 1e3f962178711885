// Reading the table's rows together with those of a transaction that is not submitted yet.
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "engine_fixture.h"

namespace tablestore {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class RowOverlayTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
  }
  void make_table_rows(const std::map<std::string, std::string>& rows) {
    auto first = std::make_shared<Txn>();
    for (const auto& [key, value] : rows) first->put(Family::omap, key, value);
    commit(first);
  }
  Rows visit(const std::string& lower = "", const std::string& upper = "",
             Family family = Family::omap) {
    Rows rows;
    const Status s = engine->visit(txn, family, lower, upper,
                                   [&](std::string_view key, std::string_view value) {
                                     rows.emplace_back(key, value);
                                   });
    EXPECT_TRUE(s.ok()) << s.what();
    return rows;
  }

  Txn txn;
};

TEST_F(RowOverlayTest, APutReplacesARowOfTheTable) {
  make_table_rows({{"a", "1"}, {"c", "3"}});
  txn.put(Family::omap, "b", "2");
  txn.put(Family::omap, "c", "4");
  txn.put(Family::omap, "c", "5");
  EXPECT_THAT(visit(), ElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("c", "5")));
}

TEST_F(RowOverlayTest, WithoutATableOrWithoutATransactionTheOtherIsRead) {
  EXPECT_THAT(visit(), IsEmpty());
  txn.put(Family::omap, "a", "1");
  EXPECT_THAT(visit(), ElementsAre(Pair("a", "1")));
  make_table_rows({{"b", "2"}});
  EXPECT_THAT(visit(), ElementsAre(Pair("a", "1"), Pair("b", "2")));
  EXPECT_THAT(visit("b"), ElementsAre(Pair("b", "2")));
}

TEST_F(RowOverlayTest, AnErasedRowIsNotThere) {
  make_table_rows({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  txn.erase(Family::omap, "b");
  txn.erase(Family::omap, "d");  // there is none
  txn.put(Family::omap, "e", "5");
  txn.erase(Family::omap, "e");
  txn.erase(Family::omap, "c");
  txn.put(Family::omap, "c", "6");
  EXPECT_THAT(visit(), ElementsAre(Pair("a", "1"), Pair("c", "6")));
}

TEST_F(RowOverlayTest, WhatIsPutAfterAnErasureOfARangeIsThere) {
  make_table_rows({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  txn.erase_range(Family::omap, "b", "d");
  txn.put(Family::omap, "c", "5");
  EXPECT_THAT(visit(), ElementsAre(Pair("a", "1"), Pair("c", "5"), Pair("d", "4")));
}

TEST_F(RowOverlayTest, AnErasureOfARangeErasesWhatTheTransactionPutThere) {
  make_table_rows({{"a", "1"}, {"d", "4"}});
  txn.put(Family::omap, "a", "2");
  txn.put(Family::omap, "b", "3");
  txn.put(Family::omap, "c", "5");
  txn.erase_range(Family::omap, "b", "c");
  EXPECT_THAT(visit(), ElementsAre(Pair("a", "2"), Pair("c", "5"), Pair("d", "4")));
}

TEST_F(RowOverlayTest, ErasuresOfRangesMayTouchAndOverlap) {
  make_table_rows({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}, {"e", "5"}, {"f", "6"}});
  txn.erase_range(Family::omap, "d", "e");
  txn.erase_range(Family::omap, "b", "c");
  txn.erase_range(Family::omap, "c", "d");
  txn.erase_range(Family::omap, "bb", "dd");
  EXPECT_THAT(visit(), ElementsAre(Pair("a", "1"), Pair("e", "5"), Pair("f", "6")));
  txn.erase_range(Family::omap, "a", "z");
  EXPECT_THAT(visit(), IsEmpty());
}

TEST_F(RowOverlayTest, BehindAnErasedRangeTheNextOneIsErasedToo) {
  make_table_rows({{"b", "1"}, {"e", "2"}, {"h", "3"}, {"i", "4"}});
  txn.erase_range(Family::omap, "a", "c");
  txn.erase_range(Family::omap, "d", "f");
  txn.erase_range(Family::omap, "g", "i");
  EXPECT_THAT(visit(), ElementsAre(Pair("i", "4")));
}

TEST_F(RowOverlayTest, TheRangeHasItsFirstKeyAndNotItsLast) {
  make_table_rows({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  txn.put(Family::omap, "aa", "x");
  txn.put(Family::omap, "b", "5");
  txn.put(Family::omap, "cc", "6");
  txn.put(Family::omap, "d", "x");
  txn.put(Family::omap, "dd", "x");
  EXPECT_THAT(visit("b", "d"), ElementsAre(Pair("b", "5"), Pair("c", "3"), Pair("cc", "6")));
  txn.erase_range(Family::omap, "a", "bb");  // across the first key
  txn.erase_range(Family::omap, "cc", "z");  // across the last one
  EXPECT_THAT(visit("b", "d"), ElementsAre(Pair("c", "3")));
}

TEST_F(RowOverlayTest, OtherFamiliesAreNotRead) {
  make_table_rows({{"a", "1"}});
  txn.put(Family::data, "b", "2");
  txn.erase_range(Family::object, "a", "z");
  txn.add(std::string("counter"), std::array<int64_t, 1>{1});
  EXPECT_THAT(visit(), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(visit("", "", Family::data), ElementsAre(Pair("b", "2")));
}

TEST_F(RowOverlayTest, TheVisitorMayAddRows) {
  make_table_rows({{"a", "1"}, {"c", "3"}});
  txn.put(Family::omap, "b", "2");
  const Status s = engine->visit(txn, Family::omap, "a", "d",
                                 [&](std::string_view key, std::string_view value) {
                                   txn.put(Family::omap, std::string(key) + "'", value);
                                   txn.put(Family::omap, "d" + std::string(key),
                                           std::string(2000, 'x'));  // and the rows move
                                 });
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_THAT(visit("", "d"),
              ElementsAre(Pair("a", "1"), Pair("a'", "1"), Pair("b", "2"), Pair("b'", "2"),
                          Pair("c", "3"), Pair("c'", "3")));
}

TEST_F(RowOverlayTest, CountersAreRefused) {
  EXPECT_DEATH(visit("", "", Family::super), "never merged");
}

TEST_F(RowOverlayTest, ItReadsWhatIsThereAfterwards) {
  std::mt19937 random(1);
  std::map<std::string, std::string> rows;
  const auto key = [&] { return std::string(1 + random() % 2, char('a' + random() % 20)); };
  for (int round = 0; round < 300; ++round) {
    auto next = std::make_shared<Txn>();
    for (int n = int(random() % 12); n > 0; --n) {
      const std::string a = key(), b = key();
      switch (random() % 4) {
        case 0:
          next->erase(Family::omap, a);
          rows.erase(a);
          break;
        case 1:
          if (a >= b) break;
          next->erase_range(Family::omap, a, b);
          rows.erase(rows.lower_bound(a), rows.lower_bound(b));
          break;
        default:
          rows[a] = std::to_string(round * 100 + n);
          next->put(Family::omap, a, rows[a]);
      }
    }
    std::string lower = random() % 3 ? key() : "", upper = random() % 3 ? key() : "";
    if (!upper.empty() && upper < lower) std::swap(lower, upper);
    Rows found;
    const Status s = engine->visit(*next, Family::omap, lower, upper,
                                   [&](std::string_view k, std::string_view v) {
                                     found.emplace_back(k, v);
                                   });
    ASSERT_TRUE(s.ok()) << s.what();
    const Rows wanted(rows.lower_bound(lower),
                      upper.empty() ? rows.end() : rows.lower_bound(upper));
    ASSERT_EQ(found, wanted) << "round " << round << ", from " << lower << " to " << upper;
    commit(next);
  }
}

}  // namespace
}  // namespace tablestore
