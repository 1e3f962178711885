// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// ENOTSUP where an object's rows, or references, were written by a newer version. Before a repair,
/// which would take what it does not know for damage, or for owned by nothing. Steps over what
/// cannot be read.
Status refuse_newer_rows(Engine& engine);

}  // namespace tablestore
