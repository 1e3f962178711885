// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "include/buffer.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/txn/txn_context.h"

namespace tablestore {

/// The omap changes of one transaction: rows under the prefix of the object's omap.
///
/// Changes are blind: they never read. Only a clone reads the source's rows; it waits for what
/// earlier transactions changed there, and what this transaction changed itself, which the table
/// does not show yet, is replayed on the copy. That is why changes are kept where the transaction
/// contains a clone.
///
/// One per transaction, in the thread that builds it, under the collection locks.
class OmapWriter {
 public:
  OmapWriter(Engine& engine, TxnContext& txc, bool keep_changes);

  /// As Transaction encodes a map<string, bufferlist> and a set<string>. Throws
  /// ceph::buffer::error.
  void set_keys(const OnodeRef& o, const ceph::buffer::list& encoded);
  void remove_keys(const OnodeRef& o, const ceph::buffer::list& encoded);
  /// [first, last).
  void remove_range(const OnodeRef& o, std::string_view first, std::string_view last);
  void set_header(const OnodeRef& o, ceph::buffer::list& header);
  /// Keys and header.
  void clear(const OnodeRef& o);
  /// `to` has no omap. EIO where the source's rows cannot be read.
  Status clone(const OnodeRef& from, const OnodeRef& to);
  /// `to` took over the rows of `from` (rename).
  void moved(const OnodeRef& to);

  /// Tells readers which transaction to wait for.
  void mark_changed(const TxnMark& mark);

 private:
  enum class Kind { put, erase, erase_range, copy_rows };
  /// Of the rows under a prefix; keys without it.
  struct Change {
    Kind kind;
    std::string_view key;     ///< erase_range: the first; copy_rows: the prefix to copy from
    std::string_view value;   ///< erase_range: the end
  };
  struct KeptChange {
    explicit KeptChange(const Change& c) : kind(c.kind), key(c.key), value(c.value) {}
    Change view() const { return {kind, key, value}; }
    Kind kind;
    std::string key;
    std::string value;
  };
  void change(const OnodeRef& o, const std::string& prefix, const Change& c);
  Status apply(const std::string& prefix, const Change& c);
  Status copy_rows(const std::string& from_prefix, const std::string& to_prefix);

  Engine& engine;
  TxnContext& txc;
  const bool keep_changes;
  std::map<std::string, std::vector<KeptChange>> changes;  ///< by prefix
  std::string row_key;    ///< apply()'s, for its memory
  std::vector<OnodeRef> changed;
};

}  // namespace tablestore
