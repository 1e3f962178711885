// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/check/table_check.h"

#include <algorithm>

#include "common/debug.h"
#include "common/pretty_binary.h"
#include "include/stringify.h"
#include "os/tablestore/object/onode_contents.h"
#include "os/tablestore/object/onode_rows.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.table_check "

namespace tablestore {

namespace {

/// The object that the row is of, or the row's key.
std::string name_of(Family family, std::string_view key)
{
  ghobject_t oid;
  if (family == Family::object && decode_onode_key(key, &oid))
    return stringify(oid);
  return pretty_binary_string(std::string(key));
}

/// The first key after it.
std::string behind(std::string_view key)
{
  return std::string(key) + '\0';
}

const char* what_is_in(Family family)
{
  switch (family) {
    case Family::super: return "the store's own rows";
    case Family::object: return "objects";
    case Family::data: return "inline data";
    case Family::omap: return "omap";
  }
  return "";
}

}  // namespace

int TableCheck::find()
{
  const auto files = engine.find_table_damage();
  if (!files.ok()) {
    derr << files.status().what() << dendl;
    return -files.status().code();
  }
  for (const DamagedTableFile& file : *files)
    report(file);
  return errors;
}

int TableCheck::salvage()
{
  const Status s = try_salvage();
  if (s.ok())
    return errors;
  derr << s.what() << dendl;
  return -EIO;
}

Status TableCheck::try_salvage()
{
  if (Status s = restore_own_onodes(); !s.ok())
    return s;
  const auto lost = [this](Family family, std::string_view key) {
    report(family, key);
    if (family == Family::omap)
      lost_omap.emplace_back(key, behind(key));
    if (ghobject_t oid; family == Family::object && decode_onode_key(key, &oid) &&
                        !lost_names.hides(key))
      lost_names.lose(std::string(key), behind(key));
  };
  const auto files = engine.salvage_table(
      lost, [this](const std::vector<DamagedTableFile>& found) { return note(found); });
  if (!files.ok())
    return files.status();
  // Rows that could be read a moment ago.
  return give_up_lost_omap();
}

// What has lost omap is given up, and lost names are noted, before a file is written anew: after
// that, and in the repair that follows one that was cut off, nobody knows any more where something
// was missing.
Status TableCheck::note(const std::vector<DamagedTableFile>& files)
{
  for (const DamagedTableFile& file : files) {
    report(file);
    if (file.family == Family::omap)
      note_lost_omap(file);
    if (file.family == Family::object)
      note_lost_names(file);
  }
  return give_up_lost_omap();
}

Status TableCheck::restore_own_onodes()
{
  auto txn = std::make_shared<Txn>();
  const auto [first, last] = own_onodes_range();
  auto it = engine.iterate(Family::super, first, last, AtDamage::step_over);
  for (it->seek(first); it->valid(); it->next()) {
    const std::string key(named_in(it->key()));
    Onode o;
    std::string row, second;
    const auto has_second = engine.get(Family::super, it->key(), &second);
    if (!has_second.ok() && has_second.status().code() != EIO)
      return has_second.status();
    if (!has_second.ok() || !*has_second)
      continue;
    const auto has_row = engine.get(Family::object, key, &row);
    if (!has_row.ok() && has_row.status().code() != EIO)
      return has_row.status();
    if (has_row.ok() && *has_row && is_sound_onode(row))
      continue;
    if (!decode_onode_key(key, &o.oid) || !is_sound_onode(second))
      continue;
    derr << "the row of " << o.oid << " is missing or damaged; repaired, from its second one"
         << dendl;
    txn->put(Family::object, key, second);
  }
  if (Status s = it->status(); !s.ok())
    return s;
  engine.submit(std::move(txn));
  engine.drain();
  return {};
}

void TableCheck::report(const DamagedTableFile& file)
{
  if (file.no_row_lost) {
    error(file.path + " is damaged, and no row of it is lost: " + file.why);
    return;
  }
  std::vector<DamagedTableFile::Gap> gaps = file.gaps;
  if (gaps.empty())
    gaps.push_back({});
  for (const auto& gap : gaps) {
    error(file.path + " is damaged: " + what_is_in(file.family) + " between " +
          name_of(file.family, gap.after.empty() ? file.first : gap.after) + " and " +
          name_of(file.family, gap.before.empty() ? file.last : gap.last()) + ": " + file.why);
  }
}

void TableCheck::report(Family family, std::string_view key)
{
  error("the row of " + name_of(family, key) + " is lost; deep scrub and 'ceph pg repair' bring "
        "its object back from other OSDs");
}

void TableCheck::note_lost_names(const DamagedTableFile& file)
{
  if (file.no_row_lost)
    return;
  const auto [first_onode, end_of_onodes] = all_onodes_range();
  std::vector<DamagedTableFile::Gap> gaps = file.gaps;
  if (gaps.empty())
    gaps.push_back({});
  for (const auto& [after, before] : gaps) {
    const std::string first = std::max(after.empty() ? file.first : behind(after), first_onode);
    const std::string end = std::min(before.empty() ? behind(file.last) : before, end_of_onodes);
    if (first < end)
      lost_names.lose(first, end);
  }
}

void TableCheck::note_lost_omap(const DamagedTableFile& file)
{
  // Of a file that is lost as a whole, all that had rows between its first and its last: omap
  // cannot tell by itself that it is not whole, and to serve it would be to serve wrong bytes.
  if (file.gaps.empty() && !file.no_row_lost)
    lost_omap.emplace_back(file.first, behind(file.last));
  // The rows around a gap can be read: whose last or first row they are has lost nothing by it,
  // but for what may have followed the last.
  for (const auto& [after, before] : file.gaps)
    lost_omap.emplace_back(after.empty() ? file.first : behind(after),
                           before.empty() ? behind(file.last) : before);
}

bool TableCheck::has_lost_omap(int64_t pool, uint64_t nid) const
{
  const auto [first, end] = omap_range(omap_prefix(pool, nid));
  return std::ranges::any_of(lost_omap, [&](const KeyRange& lost) {
    return lost.first < end && first < lost.second;
  });
}

Status TableCheck::give_up_lost_omap()
{
  if (lost_omap.empty())
    return {};
  auto txn = std::make_shared<Txn>();
  const auto [first, last] = all_onodes_range();
  auto it = engine.iterate(Family::object, first, last, AtDamage::step_over);
  for (it->seek(first); it->valid(); it->next()) {
    Onode o;
    o.key = it->key();
    if (!decode_onode_key(o.key, &o.oid))
      continue;   // Fsck says so, here and below
    try {
      o.decode(it->value());
    } catch (const ceph::buffer::error&) {
      continue;
    }
    if (!o.has_omap || o.lost || !has_lost_omap(o.omap_pool, o.nid))
      continue;
    // One whose newest row is in the damage may have been removed: the salvage erases it.
    std::string row;
    const auto found = engine.get(Family::object, o.key, &row);
    if (!found.ok() && found.status().code() != EIO)
      return found.status();
    if (!found.ok() || !*found)
      continue;
    error(stringify(o.oid) + " has lost a part of its omap, and gives EIO: " +
          (is_osds_own(o.oid) ? "no other OSD has it, and what is left of it stays; export what "
                                "can be read of the OSD, and rebuild it"
                              : "'ceph pg deep-scrub' and 'ceph pg repair' bring it back from "
                                "another OSD"));
    if (is_osds_own(o.oid))
      o.lost = true;
    else
      lose_contents(o);
    put_onode(*txn, o);
  }
  if (Status s = it->status(); !s.ok())
    return s;
  engine.submit(std::move(txn));
  engine.drain();
  return {};
}

void TableCheck::error(const std::string& what)
{
  ++errors;
  options.told(what);
  derr << "error: " << what << dendl;
}

}  // namespace tablestore
