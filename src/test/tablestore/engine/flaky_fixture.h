// A store whose table's files fail now and then.
#pragma once

#include <optional>

#include "flaky_table.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {

// SetUp() of a derived fixture sets its options first, and then calls format_flaky().
class FlakyFixture : public EngineFixture {
 protected:
  void TearDown() override {
    engine.reset();
    flaky.reset();
    EngineFixture::TearDown();
  }
  void format_flaky() {
    ASSERT_NO_FATAL_FAILURE(format());
    flaky.emplace(*disk);
    open_flaky();
  }
  void open_flaky() {
    auto opened = Engine::open(*flaky, options);
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    engine = opened.take();
  }

  std::optional<FlakyTable> flaky;
};

}  // namespace tablestore
