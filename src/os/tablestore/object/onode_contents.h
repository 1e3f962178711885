// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <utility>

#include "os/tablestore/object/onode.h"

namespace tablestore {

/// As of an object that never existed.
inline void reset_contents(Onode& onode)
{
  static_cast<ObjectContents&>(onode) = ObjectContents();
}

/// `to` becomes what `from` was; `from` becomes an object that never existed. Rows by nid stay
/// valid.
inline void move_contents(Onode& from, Onode& to)
{
  static_cast<ObjectContents&>(to) =
      std::exchange(static_cast<ObjectContents&>(from), ObjectContents());
}

}  // namespace tablestore
