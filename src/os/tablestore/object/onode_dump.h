// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "common/Formatter.h"
#include "os/tablestore/object/onode.h"

namespace tablestore {

/// All that is known of an object, for people; the shards that are loaded. The caller holds the
/// collection's lock.
void dump(const Onode& onode, ceph::Formatter* f);

}  // namespace tablestore
