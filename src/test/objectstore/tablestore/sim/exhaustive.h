// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// All short histories, crashed at every I/O in every dangerous way.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tablestore_sim {

struct ExhaustiveOptions {
  unsigned transactions = 2;       ///< the longest history
  unsigned part = 0, parts = 1;    ///< every parts-th history only, from `part` on
  double minutes = 0;              ///< 0: until all is done
};

struct ExhaustiveResult {
  uint64_t histories = 0;
  uint64_t crash_points = 0;
  uint64_t cases = 0;        ///< crash points times fates
  uint64_t recoveries = 0;   ///< of which the disk was not the same as in another case
  double seconds = 0;
  bool complete = true;
  std::string failure;       ///< empty: none
};

ExhaustiveResult run_exhaustive(const ExhaustiveOptions& options,
                                const std::function<void(const std::string&)>& log);

}  // namespace tablestore_sim
