// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/Formatter.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
#include "tools/tablestore/failure.h"
#include "tools/tablestore/options.h"
#include "tools/tablestore/progress.h"

namespace tablestore_tool {

/// What a verb works with. What it says goes to `f`, within an object.
struct Call {
  CephContext* cct;
  const Options& options;
  ceph::Formatter& f;
  Progress& progress;
  /// Where what is in `f` is written from time to time, of lists that may be long.
  std::function<void()> flush;
};

struct Verb {
  std::string_view name;
  std::string_view help;
  bool changes;   ///< the store
  Exit (*run)(Call& call);
};

extern const std::span<const Verb> verbs;
const Verb* find_verb(std::string_view name);

/// A store that is mounted for as long as this lives.
class Mount {
 public:
  enum class For { reading, use };
  /// Throws Failure.
  Mount(const Call& call, For purpose);
  ~Mount();
  tablestore::MountedStore& parts() { return store.parts(); }
  TableStore& operator*() { return store; }

 private:
  TableStore store;
};

/// Throws Failure where somebody has the store open; who reads minds only who changes it.
void refuse_in_use(const Call& call, Mount::For purpose);

// ---- verbs_check.cc
Exit fsck(Call& call);
Exit repair(Call& call);
Exit quick_fix(Call& call);

// ---- verbs_look.cc
Exit show_label(Call& call);
Exit stats(Call& call);
Exit containers(Call& call);
Exit list(Call& call);
Exit dump_onode(Call& call);

// ---- verbs_free.cc
Exit free_dump(Call& call);
Exit free_score(Call& call);

// ---- verbs_log.cc
Exit log_dump(Call& call);

// ---- verbs_change.cc
Exit compact(Call& call);
Exit trim(Call& call);
Exit zap(Call& call);

// ---- verbs_size.cc
Exit expand(Call& call);
Exit shrink(Call& call);

// ---- verbs_label.cc
Exit set_label_key(Call& call);
Exit rm_label_key(Call& call);
Exit prime(Call& call);

}  // namespace tablestore_tool
