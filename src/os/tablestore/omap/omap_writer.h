// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string_view>

#include "include/buffer.h"
#include "include/common_fwd.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/object_txn.h"

namespace tablestore {

/// The omap changes of one transaction: rows under the prefix of the object's omap.
///
/// Changes never read. Only a clone reads the source's rows: it waits until what earlier
/// transactions changed there is in the table, and lays this transaction's own rows over that.
///
/// One per transaction, in the thread that builds it, under the collection locks.
class OmapWriter {
 public:
  OmapWriter(Engine& engine, ObjectTxn& txn, ceph::common::PerfCounters& logger)
    : engine(engine), txn(txn), logger(logger)
  {
  }

  /// As Transaction encodes a map<string, bufferlist> and a set<string>. Throws
  /// ceph::buffer::error.
  void set_keys(const OnodeRef& o, const ceph::buffer::list& encoded);
  void remove_keys(const OnodeRef& o, const ceph::buffer::list& encoded);
  /// [first, last).
  void remove_range(const OnodeRef& o, std::string_view first, std::string_view last);
  void set_header(const OnodeRef& o, ceph::buffer::list& header);
  /// Keys and header.
  void clear(const OnodeRef& o);
  /// `to` has no omap. EIO where the source's rows cannot be read: then `to` has a part of them,
  /// which clear() takes away.
  Status clone(const OnodeRef& from, const OnodeRef& to);
  /// `to` took over the rows of another object (rename).
  void moved(const OnodeRef& to);

  /// Tells readers of the objects whose omap was changed which transaction to wait for. Before
  /// that is submitted.
  void mark_changed(const TxnMark& mark);

 private:
  /// Before rows of the object's omap are changed.
  void change(const OnodeRef& o);
  /// It has rows now.
  void set_has_omap(const OnodeRef& o);

  Engine& engine;
  ObjectTxn& txn;
  ceph::common::PerfCounters& logger;
};

}  // namespace tablestore
