// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/collection/lost_names.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <shared_mutex>

#include "common/debug.h"
#include "include/stringify.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.lost_names "

namespace tablestore {

namespace {

constexpr uint8_t row_version = 1;

std::string encode_end(std::string_view end)
{
  ValueWriter w;
  w.varint(end.size());
  w.bytes(end);
  return w.finish(row_version, row_version);
}

/// Throws ceph::buffer::error where damaged.
std::string decode_end(std::string_view row)
{
  ValueReader r(row_version, row);
  return std::string(r.bytes(r.varint_up_to(row.size())));
}

bool is_one_name(std::string_view first, std::string_view end)
{
  return end.size() == first.size() + 1 && end.starts_with(first) && end.back() == '\0';
}

}  // namespace

Status LostNames::load()
{
  std::unique_lock l{mutex};
  const auto [first, last] = lost_names_range();
  auto it = engine.iterate(Family::super, first, last, AtDamage::step_over);
  for (it->seek(first); it->valid(); it->next()) {
    std::string end;
    try {
      end = decode_end(it->value());
    } catch (const NewerVersion& e) {
      return Status(ENOTSUP, std::string("a row of lost names: ") + e.what());
    } catch (const ceph::buffer::error& e) {
      derr << "a row of lost names is damaged: " << e.what() << "; all names behind its first one "
           << "count as lost" << dendl;
      end = all_onodes_range().second;
    }
    ranges.emplace(named_in(it->key()), std::move(end));
  }
  if (Status s = it->status(); !s.ok())
    return s;
  if (ranges.empty())
    return {};
  const auto [known_first, known_last] = known_names_range();
  auto names = engine.iterate(Family::super, known_first, known_last, AtDamage::step_over);
  for (names->seek(known_first); names->valid(); names->next())
    known.emplace(named_in(names->key()));
  if (Status s = names->status(); !s.ok())
    return s;
  present = true;
  tell();
  // What cannot be read was stepped over.
  auto strict = engine.iterate(Family::super, first, last);
  strict->seek(first);
  while (strict->valid())
    strict->next();
  return strict->status();
}

// ---- asking

bool LostNames::hides_locked(std::string_view key) const
{
  auto p = ranges.upper_bound(key);
  return p != ranges.begin() && key < std::prev(p)->second && !known.contains(key);
}

bool LostNames::hides(std::string_view key) const
{
  if (!any())
    return false;
  std::shared_lock l{mutex};
  return hides_locked(key);
}

bool LostNames::hides_some(std::string_view first, std::string_view end) const
{
  if (!any())
    return false;
  std::shared_lock l{mutex};
  auto p = ranges.upper_bound(first);
  if (p != ranges.begin())
    --p;
  for (; p != ranges.end() && p->first < end; ++p) {
    if (p->second > first && !(is_one_name(p->first, p->second) && known.contains(p->first)))
      return true;
  }
  return false;
}

// ---- changing

void LostNames::put(Txn& txn, const std::string& first, const std::string& end)
{
  ranges[first] = end;
  txn.put(Family::super, lost_names_key(first), encode_end(end));
}

void LostNames::submit(std::shared_ptr<Txn> txn)
{
  txn->barrier = true;
  engine.submit(std::move(txn));
  engine.drain();
}

void LostNames::lose(std::string first, std::string end)
{
  auto txn = std::make_shared<Txn>();
  {
    std::unique_lock l{mutex};
    const auto behind = known.lower_bound(end);
    for (auto p = known.lower_bound(first); p != behind; p = known.erase(p))
      txn->erase(Family::super, known_name_key(*p));
    // One with those that it overlaps or touches.
    auto p = ranges.upper_bound(first);
    if (p != ranges.begin() && std::prev(p)->second >= first)
      --p;
    while (p != ranges.end() && p->first <= end) {
      first = std::min(first, p->first);
      end = std::max(end, p->second);
      txn->erase(Family::super, lost_names_key(p->first));
      p = ranges.erase(p);
    }
    put(*txn, first, end);
    present = true;
    tell();
  }
  submit(std::move(txn));
}

void LostNames::know(Txn& txn, std::string_view key)
{
  if (!any())
    return;
  std::unique_lock l{mutex};
  if (!hides_locked(key))
    return;
  // A row of its own for each: transactions of several collections may overtake each other.
  known.emplace(key);
  txn.put(Family::super, known_name_key(key), {});
}

void LostNames::know_all(Txn& txn, const std::string& first, const std::string& end)
{
  if (!any() || first >= end)
    return;
  std::unique_lock l{mutex};
  auto p = ranges.upper_bound(first);
  if (p != ranges.begin() && std::prev(p)->second > first)
    --p;
  while (p != ranges.end() && p->first < end) {
    const auto [range_first, range_end] = *p;
    txn.erase(Family::super, lost_names_key(range_first));
    p = ranges.erase(p);
    if (range_first < first)
      put(txn, range_first, first);
    if (end < range_end)
      put(txn, end, range_end);
  }
  tell();
}

void LostNames::settle()
{
  auto txn = std::make_shared<Txn>();
  {
    std::shared_lock l{mutex};
    for (const auto& [first, end] : ranges)
      txn->erase(Family::super, lost_names_key(first));
    for (const std::string& key : known)
      txn->erase(Family::super, known_name_key(key));
  }
  submit(std::move(txn));
  std::unique_lock l{mutex};
  ranges.clear();
  known.clear();
  present = false;
  tell();
}

void LostNames::tell()
{
  if (ranges.empty()) {
    present = false;
    troubles.clear(trouble);
    return;
  }
  ghobject_t oid;
  const auto& first = ranges.begin()->first;
  troubles.raise(trouble, "a repair had to give up rows of objects, in " +
                              std::to_string(ranges.size()) + " ranges of names, the first from " +
                              (decode_onode_key(first.substr(0, first.find_last_not_of('\0') + 1),
                                                &oid)
                                   ? stringify(oid)
                                   : "the first object") +
                              " on: what had such a name gives EIO until it is brought back. Run "
                              "'ceph pg deep-scrub' and 'ceph pg repair' on all placement groups "
                              "of this OSD, then 'ceph tell osd.N tablestore settle lost objects'");
}

}  // namespace tablestore
