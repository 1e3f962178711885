// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tablestore_tool {

/// What the command line says.
struct Options {
  std::string verb;
  std::string path;
  std::string format = "plain";
  bool deep = false;
  bool containers = false;
  bool yes = false;
  int64_t max_live_percent = 25;
  std::optional<uint64_t> size;
  std::string collection;
  std::string object;
  std::string key;
  std::optional<std::string> value;
  uint64_t limit = 0;                    ///< of what is listed; 0: all
  std::vector<std::string> of_ceph;      ///< Ceph's own, as --tablestore_capacity=1T
};

/// Throws Failure. None: help was asked for, and was given.
std::optional<Options> parse_options(int argc, char** argv);

/// 4096, 4K, 1M, 2G, 1T. Throws Failure.
uint64_t parse_bytes(const std::string& text);

}  // namespace tablestore_tool
