// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/collection/lost_names.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <shared_mutex>

#include "common/debug.h"
#include "include/stringify.h"
#include "os/tablestore/home/copied_row.h"
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

/// One of a newer version is no damage.
bool is_sound_end(std::string_view row)
{
  try {
    decode_end(row);
    return true;
  } catch (const NewerVersion&) {
    return true;
  } catch (const ceph::buffer::error&) {
    return false;
  }
}

bool is_one_name(std::string_view first, std::string_view end)
{
  return end.size() == first.size() + 1 && end.starts_with(first) && end.back() == '\0';
}

}  // namespace

Status LostNames::load(bool has_copies, Txn* mended)
{
  std::unique_lock l{mutex};
  if (Status s = load_ranges(has_copies, mended); !s.ok())
    return s;
  if (ranges.empty())
    return {};
  if (Status s = load_known(); !s.ok())
    return s;
  present = true;
  tell();
  return {};
}

Status LostNames::load_ranges(bool has_copies, Txn* mended)
{
  const auto [first_onode, end_of_onodes] = all_onodes_range();
  std::set<std::string> keys;
  const auto is_complete = CopiedRow::list(engine, lost_names_range(), has_copies, &keys);
  if (!is_complete.ok())
    return is_complete.status();
  if (!*is_complete) {
    damage_found.push_back("neither the rows of lost names nor their copies can be read: all names "
                           "of objects count as lost");
    for (const std::string& key : keys)
      CopiedRow::erase(*mended, key);
    put(*mended, first_onode, end_of_onodes);
    return {};
  }
  bool all_that_follow = false;
  for (const std::string& key : keys) {
    const auto row = CopiedRow::load(engine, key, has_copies, is_sound_end);
    if (!row.ok())
      return row.status();
    if (!row->damage.empty())
      damage_found.push_back(row->damage);
    if (all_that_follow || (!row->value && !row->is_lost)) {
      CopiedRow::erase(*mended, key);
      continue;
    }
    std::string end = end_of_onodes;
    if (row->is_lost) {
      all_that_follow = true;
      damage_found.back() += "; all names behind its first one count as lost";
    } else {
      try {
        end = decode_end(*row->value);
      } catch (const NewerVersion& e) {
        return Status(ENOTSUP, std::string("a row of lost names: ") + e.what());
      }
    }
    const std::string first(named_in(key));
    if (row->damage.empty() && has_copies)
      ranges.emplace(first, std::move(end));
    else
      put(*mended, first, end);
  }
  return {};
}

/// One whose newest row cannot be read may have been lost again.
Status LostNames::load_known()
{
  const auto [first, last] = known_names_range();
  auto it = engine.iterate(Family::super, first, last, AtDamage::step_over);
  std::string none;
  for (it->seek(first); it->valid(); it->next()) {
    const auto found = engine.get(Family::super, it->key(), &none);
    if (!found.ok() && found.status().code() != EIO)
      return found.status();
    if (found.ok() && *found)
      known.emplace(named_in(it->key()));
  }
  return it->status();
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
  CopiedRow::put(txn, lost_names_key(first), encode_end(end));
}

void LostNames::submit(std::shared_ptr<Txn> txn)
{
  txn->barrier = true;
  engine.submit(std::move(txn));
  engine.drain();
}

/// Also rows that are not in memory, of ranges that were. Those that are, one by one as well, and
/// behind the range, which would hide them: then two blocks of the table say it.
void LostNames::forget_known(Txn& txn, const std::string& first, const std::string& end)
{
  txn.erase_range(Family::super, known_name_key(first), known_name_key(end));
  const auto behind = known.lower_bound(end);
  for (auto p = known.lower_bound(first); p != behind; p = known.erase(p))
    txn.erase(Family::super, known_name_key(*p));
}

void LostNames::lose(std::string first, std::string end)
{
  auto txn = std::make_shared<Txn>();
  {
    std::unique_lock l{mutex};
    forget_known(*txn, first, end);
    // One with those that it overlaps or touches.
    auto p = ranges.upper_bound(first);
    if (p != ranges.begin() && std::prev(p)->second >= first)
      --p;
    while (p != ranges.end() && p->first <= end) {
      first = std::min(first, p->first);
      end = std::max(end, p->second);
      CopiedRow::erase(*txn, lost_names_key(p->first));
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
    CopiedRow::erase(txn, lost_names_key(range_first));
    p = ranges.erase(p);
    if (range_first < first)
      put(txn, range_first, first);
    if (end < range_end)
      put(txn, end, range_end);
  }
  forget_known(txn, first, end);
  tell();
}

bool LostNames::settle()
{
  auto txn = std::make_shared<Txn>();
  {
    std::shared_lock l{mutex};
    for (const auto& [first, end] : ranges)
      CopiedRow::erase(*txn, lost_names_key(first));
    const auto [first, end] = known_names_range();
    txn->erase_range(Family::super, first, end);
  }
  txn->barrier = true;
  engine.submit(std::move(txn));
  if (!engine.wait_durable())
    return false;
  std::unique_lock l{mutex};
  ranges.clear();
  known.clear();
  present = false;
  tell();
  return true;
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
