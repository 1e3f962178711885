// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstddef>
#include <cstdint>

namespace tablestore {

/// How many files a store keeps open: of its table, and of its containers while no more of them are
/// in use. The log's are open in any case, sixteen with the defaults.
struct OpenFilesLimits {
  unsigned table;
  size_t containers;
};

/// `descriptors`: what the process may have. It has others: connections, directories, rings.
OpenFilesLimits open_files_limits(uint64_t descriptors);

/// Raises RLIMIT_NOFILE of the process as far as it may be without privileges, which is what such
/// limits are there for; returns what it is then. Tools have what the shell gives them, 1024 as a
/// rule.
uint64_t raise_descriptors();

}  // namespace tablestore
