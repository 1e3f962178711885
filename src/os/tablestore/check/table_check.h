// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "include/common_fwd.h"
#include "os/tablestore/check/check_options.h"
#include "os/tablestore/collection/lost_names.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// Whether the table's files can be read, and their salvage: what comes before Fsck, which compares
/// the rows with each other.
///
/// A salvage drops rows. The names of objects whose onodes may have been among them are noted
/// (LostNames), so that nobody takes these objects for gone. One that has lost a part of its omap
/// becomes a lost one: omap cannot tell by itself that it is not whole. What is left of these
/// objects belongs to nothing, and Fsck erases it. Only of the OSD's own it stays, because there is
/// no other: an OSD passes over a placement group whose own object gives EIO, but would take a log
/// with holes for all there is. Where the onode of such an object cannot be read, its second row
/// takes its place. A salvage may be cut off at any point, and be made again.
///
/// On a store that nobody else uses; single-threaded.
class TableCheck {
 public:
  TableCheck(CephContext* cct, Engine& engine, LostNames& lost_names, const CheckOptions& options)
    : cct(cct), engine(engine), lost_names(lost_names), options(options)
  {
  }

  /// Both return the number of errors found, or -EIO. Each error is one line in the log.
  int find();
  int salvage();

 private:
  /// Keys from the first on and before the second.
  using KeyRange = std::pair<std::string, std::string>;

  Status try_salvage();
  Status restore_own_onodes();
  /// Before anything of it is given up.
  Status note(const std::vector<DamagedTableFile>& files);
  void report(const DamagedTableFile& file);
  void report(Family family, std::string_view key);
  void note_lost_names(const DamagedTableFile& file);
  void note_lost_omap(const DamagedTableFile& file);
  Status give_up_lost_omap();
  bool has_lost_omap(int64_t pool, uint64_t nid) const;
  void error(const std::string& what);

  CephContext* const cct;
  Engine& engine;
  LostNames& lost_names;
  const CheckOptions& options;
  std::vector<KeyRange> lost_omap;
  int errors = 0;
};

}  // namespace tablestore
