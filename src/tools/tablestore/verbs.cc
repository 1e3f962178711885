// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "tools/tablestore/verbs.h"

#include <algorithm>

#include "os/tablestore/home/store_dir.h"

namespace tablestore_tool {

namespace {

constexpr Verb all[] = {
    {"fsck", "compares all that the store knows; with --deep, reads all data", false, &fsck},
    {"show-label", "what the store is; also of an OSD that runs", false, &show_label},
    {"stats", "space, pools, counters, the table's statistics", false, &stats},
    {"containers", "the files that hold data, and how full they are", false, &containers},
    {"free-dump", "where free space is", false, &free_dump},
    {"free-score", "how fragmented free space is: 0 is not at all, 1 is worst", false, &free_score},
    {"list", "the objects of all collections, or of one", false, &list},
    {"dump-onode", "all that the store knows of one object", false, &dump_onode},
    {"log-dump", "the groups of the log since the last checkpoint", false, &log_dump},
    {"repair", "fsck, and mends what can be mended", true, &repair},
    {"quick-fix", "repair without reading data", true, &quick_fix},
    {"compact", "the table; with --containers, files of which little is in use", true, &compact},
    {"trim", "gives free space back to the file system", true, &trim},
    {"expand", "lets the store take more: --size, or all of the file system", true, &expand},
    {"shrink", "makes the store take no more than --size, and keeps it so", true, &shrink},
    {"set-label-key", "writes a note into the label: --key, --value", true, &set_label_key},
    {"rm-label-key", "removes one", true, &rm_label_key},
    {"prime", "makes the files of the directory that the label knows", true, &prime},
    {"zap", "removes the store, and nothing else of the directory", true, &zap},
};

}  // namespace

const std::span<const Verb> verbs = all;

const Verb* find_verb(std::string_view name)
{
  const auto found = std::ranges::find(verbs, name, &Verb::name);
  return found == verbs.end() ? nullptr : &*found;
}

Mount::Mount(const Call& call, For purpose) : store(call.cct, call.options.path)
{
  refuse_in_use(call, purpose);
  require(purpose == For::reading ? store.mount_readonly() : store.mount(),
          "cannot open the store in " + call.options.path);
}

Mount::~Mount()
{
  store.umount();
}

void refuse_in_use(const Call& call, Mount::For purpose)
{
  using tablestore::StoreDir;
  const auto how = purpose == Mount::For::reading ? StoreDir::Open::reading : StoreDir::Open::use;
  if (StoreDir::in_use(call.options.path, how))
    throw Failure(exit_in_use, call.options.path + " is in use: stop its OSD, or wait until the "
                                                   "other tool has ended");
}

}  // namespace tablestore_tool
