// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "os/tablestore/object/onode.h"

/// An Onode stays at its key for as long as it is in memory; what an object *is* moves between
/// onodes (rename), goes (remove) or is put back (undo). The place in memory (dirty,
/// transactions_in_flight) stays.
namespace tablestore {

/// As of an object that never existed.
void reset_contents(Onode& onode);
/// `to` becomes what `from` was; `from` becomes an object that never existed. Rows by nid stay
/// valid.
void move_contents(Onode& from, Onode& to);
void copy_contents(const Onode& from, Onode& to);

}  // namespace tablestore
