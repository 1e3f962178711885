// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "common/Formatter.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

// What the admin socket and ceph-tablestore-tool print of containers and of what is free in them.
// The names of fields are BlueStore's, where it has such.

/// Fragmentation score (0 to 1) of all free space, and per class: fields of an open section.
void dump_free_score(const FreeSpace& space, ceph::Formatter* f);
/// Runs of free blocks by their size, per class.
void dump_free_histogram(const FreeSpace& space, ceph::Formatter* f);
/// Each run of free blocks.
void dump_free_runs(const Engine& engine, ceph::Formatter* f);
void dump_container(const ContainerUsage& c, ceph::Formatter* f);

}  // namespace tablestore
