// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace tablestore {

/// What is asked of a check of a store, and who is told how it goes.
struct CheckOptions {
  bool deep = false;
  bool repair = false;
  /// Each error that is found, in one line, as the log has it.
  std::function<void(const std::string&)> told = [](const std::string&) {};
  /// How much is done of about how much. False: the check ends there, with -ECANCELED; what it has
  /// repaired stays so.
  std::function<bool(uint64_t done, uint64_t total)> goes_on = [](uint64_t, uint64_t) {
    return true;
  };
};

/// What a check has come to.
struct CheckResult {
  uint64_t objects = 0;
  uint64_t errors = 0;     ///< that were found
  uint64_t repaired = 0;   ///< of these
  uint64_t memory_bytes = 0;
  /// What the store says is not whole, in each life, until it is settled or mended: health codes.
  std::map<std::string, std::string> losses;
};

}  // namespace tablestore
