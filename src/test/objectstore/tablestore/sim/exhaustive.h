// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// All short histories of the store: mkfs, and one or two transactions of one op each.
#pragma once

#include "test/tablestore/sim/frame/exhaustive.h"

namespace tablestore_sim {

tablestore::sim::ExhaustiveResult run_exhaustive(
  const tablestore::sim::ExhaustiveOptions& options, const tablestore::sim::ExhaustiveLog& log);

}  // namespace tablestore_sim
