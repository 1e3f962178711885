// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <gtest/gtest.h>

#include "common/ceph_argparse.h"
#include "common/ceph_context.h"
#include "global/global_context.h"
#include "global/global_init.h"
#include "test/objectstore/tablestore/child_program.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

int main(int argc, char** argv)
{
  const bool child = is_child(argc, argv);
  // The words that name the child's program and directory are not for Ceph's parser.
  auto args = child ? argv_to_vec(argc - 3, argv + 3) : argv_to_vec(argc, argv);
  std::map<std::string, std::string> defaults = test_settings();
  auto cct = global_init(&defaults, args, CEPH_ENTITY_TYPE_CLIENT, CODE_ENVIRONMENT_UTILITY,
                         CINIT_FLAG_NO_DEFAULT_CONFIG_FILE);
  common_init_finish(g_ceph_context);
  // Tests change options that a running daemon could not change.
  g_ceph_context->_conf._clear_safe_to_start_threads();
  if (child)
    return run_child(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
