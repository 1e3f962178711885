// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/copied_row.h"

#include "common/pretty_binary.h"
#include "include/buffer.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

namespace tablestore {

namespace {

constexpr uint8_t copy_version = 1;

/// One of the two.
struct Found {
  std::optional<std::string> value;
  std::string damage;   ///< empty: it can be read, or is not there
};

Result<Found> load_one(Engine& engine, Family family, const std::string& key)
{
  Found found;
  std::string value;
  const auto there = engine.get(family, key, &value);
  if (!there.ok() && there.status().code() != EIO)
    return there.status();
  if (!there.ok())
    found.damage = there.status().what();
  else if (*there)
    found.value = std::move(value);
  return found;
}

void refuse_unsound(const CopiedRow::IsSound& is_sound, Found* found)
{
  if (!found->value || is_sound(*found->value))
    return;
  found->value.reset();
  found->damage = "no such row has these bytes";
}

void take_out_of_frame(Found* found)
{
  if (!found->value)
    return;
  try {
    ValueReader in(copy_version, *found->value);
    found->value = std::string(in.rest_of_body());
  } catch (const ceph::buffer::error& e) {
    found->value.reset();
    found->damage = e.what();
  }
}

/// Adds the keys of [first, last), without their first bytes. What cannot be read is stepped over,
/// and `all` is false then.
Status add_keys(Engine& engine, Family family, const std::pair<std::string, std::string>& range,
                size_t prefix_bytes, std::set<std::string>* keys, bool* all)
{
  for (const AtDamage at_damage : {AtDamage::fail, AtDamage::step_over}) {
    auto it = engine.iterate(family, range.first, range.second, at_damage);
    for (it->seek(range.first); it->valid(); it->next())
      keys->insert(std::string(it->key().substr(prefix_bytes)));
    if (it->status().code() != EIO || at_damage == AtDamage::step_over)
      return it->status();
    *all = false;
  }
  return {};
}

/// In words, for the line that names the row.
std::string difference(const Found& row, const Found& copy)
{
  if (!row.damage.empty())
    return row.damage;
  if (!copy.damage.empty())
    return "its copy: " + copy.damage;
  if (!row.value && copy.value)
    return "it is missing, its copy is not";
  if (row.value && !copy.value)
    return "its copy is missing";
  return row.value == copy.value ? std::string() : "it differs from its copy";
}

}  // namespace

Result<CopiedRow> CopiedRow::load(Engine& engine, std::string_view key, bool has_copies,
                                  const IsSound& is_sound)
{
  auto row = load_one(engine, Family::super, std::string(key));
  if (!row.ok())
    return row.status();
  Found of_row = row.take(), of_copy;
  refuse_unsound(is_sound, &of_row);
  if (has_copies) {
    auto copy = load_one(engine, Family::object, copy_key(key));
    if (!copy.ok())
      return copy.status();
    of_copy = copy.take();
    take_out_of_frame(&of_copy);
    refuse_unsound(is_sound, &of_copy);
  }
  const std::string why = has_copies ? difference(of_row, of_copy) : of_row.damage;
  CopiedRow found;
  if (!why.empty())
    found.damage = "the row " + pretty_binary_string(std::string(key)) + ": " + why;
  found.value = of_copy.value ? std::move(of_copy.value) : std::move(of_row.value);
  // Where the one cannot be read, and the other one is not there, it is not there.
  const bool copy_says_no = has_copies && of_copy.damage.empty();
  const bool row_says_no = of_row.damage.empty();
  found.is_lost = !found.value && !copy_says_no && !row_says_no;
  return found;
}

Result<bool> CopiedRow::list(Engine& engine, const std::pair<std::string, std::string>& range,
                             bool has_copies, std::set<std::string>* keys)
{
  bool all_rows = true, all_copies = has_copies;
  const auto& [first, last] = range;
  Status s = add_keys(engine, Family::super, range, 0, keys, &all_rows);
  if (s.ok() && has_copies)
    s = add_keys(engine, Family::object, {copy_key(first), copy_key(last)}, copy_key({}).size(),
                 keys, &all_copies);
  if (!s.ok())
    return s;
  return all_rows || all_copies;
}

void CopiedRow::put(Txn& txn, std::string_view key, std::string_view value)
{
  txn.put(Family::super, key, value);
  ValueWriter copy;
  copy.bytes(value);
  txn.put(Family::object, copy_key(key), copy.finish(copy_version, copy_version));
}

void CopiedRow::erase(Txn& txn, std::string_view key)
{
  txn.erase(Family::super, key);
  txn.erase(Family::object, copy_key(key));
}

}  // namespace tablestore
