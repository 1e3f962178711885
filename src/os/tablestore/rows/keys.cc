// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "os/tablestore/rows/keys.h"

#include <limits>

namespace tablestore {

namespace {

constexpr char onode_type = 'o';
constexpr char shard_type = 'x';
constexpr char copy_type = 'c';
constexpr char collection_type = 'C';
constexpr char meta_type = 'M';
constexpr char pool_type = 'P';
constexpr char reference_map_type = 'R';
constexpr char lost_names_type = 'L';
constexpr char known_name_type = 'K';
constexpr char own_onode_type = 'O';
constexpr char omap_header_type = 'h';
constexpr char omap_key_type = 'k';

constexpr char string_end = '!';
constexpr char escape_low = '#';
constexpr char escape_high = '~';

/// Sorts after everything that can follow the same prefix: no escaped string has such a byte.
constexpr char after_all = '\xff';

constexpr uint64_t sign_bit = uint64_t(1) << 63;

template <typename T>
void append_big_endian(T value, std::string* out)
{
  for (int shift = (sizeof(T) - 1) * 8; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift));
  }
}

/// What stands before the digits of a byte that is escaped; 0 for one that is not.
char escape_of(char c)
{
  // plain char may be signed: bytes from 0x80 on must sort last, not first
  const auto byte = static_cast<unsigned char>(c);
  return byte <= escape_low ? escape_low : byte >= escape_high ? escape_high : 0;
}

/// Takes what it decodes from the front of a key.
class KeyReader {
 public:
  explicit KeyReader(std::string_view key) : rest_(key) {}

  bool at_end() const { return rest_.empty(); }

  bool byte(char* out)
  {
    if (rest_.empty()) {
      return false;
    }
    *out = rest_.front();
    rest_.remove_prefix(1);
    return true;
  }

  bool literal(char wanted)
  {
    char c;
    return byte(&c) && c == wanted;
  }

  template <typename T>
  bool big_endian(T* out)
  {
    if (rest_.size() < sizeof(T)) {
      return false;
    }
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value << 8 | static_cast<uint8_t>(rest_[i]));
    }
    rest_.remove_prefix(sizeof(T));
    *out = value;
    return true;
  }

  bool pool(int64_t* out)
  {
    uint64_t flipped;
    if (!big_endian(&flipped)) {
      return false;
    }
    *out = static_cast<int64_t>(flipped ^ sign_bit);
    return true;
  }

  bool escaped(std::string* out)
  {
    out->clear();
    char c;
    while (byte(&c)) {
      if (c == string_end) {
        return true;
      }
      const char escape = escape_of(c);
      if (escape && (escape != c || !hex_byte(&c) || escape_of(c) != escape)) {
        return false;
      }
      out->push_back(c);
    }
    return false;
  }

 private:
  bool hex_byte(char* out)
  {
    unsigned value = 0;
    for (int i = 0; i < 2; ++i) {
      char c;
      if (!byte(&c)) {
        return false;
      }
      if (c >= '0' && c <= '9') {
        value = value << 4 | (c - '0');
      } else if (c >= 'a' && c <= 'f') {
        value = value << 4 | (c - 'a' + 10);
      } else {
        return false;
      }
    }
    *out = static_cast<char>(value);
    return true;
  }

  std::string_view rest_;
};

void append_pool(int64_t pool, std::string* out)
{
  append_big_endian(static_cast<uint64_t>(pool) ^ sign_bit, out);
}

void append_escaped(std::string_view in, std::string* out)
{
  static constexpr char digits[] = "0123456789abcdef";
  for (char c : in) {
    const char escape = escape_of(c);
    if (!escape) {
      out->push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out->push_back(escape);
    out->push_back(digits[byte >> 4]);
    out->push_back(digits[byte & 0xf]);
  }
  out->push_back(string_end);
}

void append_onode_prefix(shard_id_t shard, int64_t pool, uint32_t reversed_hash, std::string* out)
{
  out->push_back(onode_type);
  out->push_back(static_cast<char>(static_cast<uint8_t>(shard.id) ^ 0x80));
  append_pool(pool, out);
  append_big_endian(reversed_hash, out);
}

std::pair<std::string, std::string> all_of_type(char type)
{
  return {std::string(1, type), std::string(1, static_cast<char>(type + 1))};
}

std::string typed_nid(char type, uint64_t nid)
{
  std::string key(1, type);
  append_big_endian(nid, &key);
  return key;
}

/// [first, last) of the rows of one pool's objects with hashes from `reversed_hash` on.
void hash_range(shard_id_t shard, int64_t pool, uint32_t reversed_hash, int bits,
                std::string* start, std::string* end)
{
  constexpr uint64_t hashes = uint64_t(1) << 32;
  const uint64_t end_hash = reversed_hash + (hashes >> bits);
  start->clear();
  end->clear();
  append_onode_prefix(shard, pool, reversed_hash, start);
  if (end_hash < hashes) {
    append_onode_prefix(shard, pool, static_cast<uint32_t>(end_hash), end);
  } else {
    append_onode_prefix(shard, pool, std::numeric_limits<uint32_t>::max(), end);
    end->push_back(after_all);
  }
}

}  // namespace

std::string onode_key(const ghobject_t& oid)
{
  std::string key;
  if (oid.is_max()) {
    key.push_back(onode_type + 1);
    return key;
  }
  if (oid.hobj.is_max()) {
    append_onode_prefix(oid.shard_id, std::numeric_limits<int64_t>::max(),
                        std::numeric_limits<uint32_t>::max(), &key);
    key.push_back(after_all);
    return key;
  }
  const std::string& name = oid.hobj.oid.name;
  const std::string& sort_key = oid.hobj.get_effective_key();
  key.reserve(1 + 1 + 8 + 4 + oid.hobj.nspace.size() + 1 + sort_key.size() + 2 +
              (&sort_key == &name ? 0 : name.size() + 1) + 8 + 8 + 16);
  append_onode_prefix(oid.shard_id, oid.hobj.pool, oid.hobj.get_bitwise_key_u32(), &key);
  append_escaped(oid.hobj.nspace, &key);
  append_escaped(sort_key, &key);
  const int order = &sort_key == &name ? 0 : name.compare(sort_key);
  if (order == 0) {
    key.push_back('=');
  } else {
    key.push_back(order < 0 ? '<' : '>');
    append_escaped(name, &key);
  }
  append_big_endian(static_cast<uint64_t>(oid.hobj.snap), &key);
  append_big_endian(static_cast<uint64_t>(oid.generation), &key);
  return key;
}

bool decode_onode_key(std::string_view key, ghobject_t* oid)
{
  KeyReader reader(key);
  char shard;
  int64_t pool;
  uint32_t reversed_hash;
  std::string nspace, sort_key, name;
  char order;
  uint64_t snap, generation;
  if (!reader.literal(onode_type) || !reader.byte(&shard) || !reader.pool(&pool) ||
      !reader.big_endian(&reversed_hash) || !reader.escaped(&nspace) ||
      !reader.escaped(&sort_key) || !reader.byte(&order)) {
    return false;
  }
  if (order == '<' || order == '>') {
    if (!reader.escaped(&name) || sort_key.empty() || name == sort_key ||
        (name < sort_key) != (order == '<')) {
      return false;
    }
  } else if (order == '=') {
    name.swap(sort_key);
    sort_key.clear();
  } else {
    return false;
  }
  if (!reader.big_endian(&snap) || !reader.big_endian(&generation) || !reader.at_end()) {
    return false;
  }
  *oid = ghobject_t(hobject_t(object_t(name), sort_key, snapid_t(snap),
                              hobject_t::_reverse_bits(reversed_hash), pool, nspace),
                    generation, shard_id_t(static_cast<int8_t>(shard ^ 0x80)));
  return true;
}

std::string_view hash_part(std::string_view onode_key)
{
  return onode_key.substr(0, 1 + 1 + sizeof(int64_t) + sizeof(uint32_t));
}

void collection_key_range(const coll_t& cid, int bits, std::string* temp_start,
                          std::string* temp_end, std::string* start, std::string* end)
{
  spg_t pgid;
  if (cid.is_pg(&pgid)) {
    const uint32_t reversed_hash = hobject_t::_reverse_bits(pgid.ps());
    hash_range(pgid.shard, -2 - pgid.pool(), reversed_hash, bits, temp_start, temp_end);
    hash_range(pgid.shard, pgid.pool(), reversed_hash, bits, start, end);
  } else {
    hash_range(shard_id_t::NO_SHARD, -1, 0, 0, start, end);
    *temp_start = *end;
    *temp_end = *end;
  }
}

std::array<std::pair<std::string, std::string>, 2> same_hash_ranges(const ghobject_t& oid)
{
  constexpr int all_bits = 32;
  const int64_t pool = oid.hobj.pool;
  std::array<std::pair<std::string, std::string>, 2> ranges;
  for (size_t i = 0; i < ranges.size(); ++i)
    hash_range(oid.shard_id, i == 0 ? std::min(pool, -2 - pool) : std::max(pool, -2 - pool),
               oid.hobj.get_bitwise_key_u32(), all_bits, &ranges[i].first, &ranges[i].second);
  if (ranges[0] == ranges[1])   // of meta, which has no temp objects
    ranges[0].second = ranges[0].first;
  return ranges;
}

std::string shard_key(uint64_t nid, uint32_t index)
{
  std::string key = typed_nid(shard_type, nid);
  append_big_endian(index, &key);
  return key;
}

bool decode_shard_key(std::string_view key, uint64_t* nid, uint32_t* index)
{
  KeyReader reader(key);
  return reader.literal(shard_type) && reader.big_endian(nid) && reader.big_endian(index) &&
         reader.at_end();
}

std::pair<std::string, std::string> all_onodes_range()
{
  return all_of_type(onode_type);
}

std::pair<std::string, std::string> all_shards_range()
{
  return all_of_type(shard_type);
}

std::string inline_key(uint64_t nid)
{
  std::string key;
  append_big_endian(nid, &key);
  return key;
}

bool decode_inline_key(std::string_view key, uint64_t* nid)
{
  KeyReader reader(key);
  return reader.big_endian(nid) && reader.at_end();
}

std::string omap_prefix(int64_t pool, uint64_t nid)
{
  std::string key;
  append_pool(pool, &key);
  append_big_endian(nid, &key);
  return key;
}

bool decode_omap_prefix(std::string_view row_key, int64_t* pool, uint64_t* nid)
{
  KeyReader reader(row_key);
  char type;
  return reader.pool(pool) && reader.big_endian(nid) && reader.byte(&type) &&
         (type == omap_key_type || (type == omap_header_type && reader.at_end()));
}

std::string omap_key(std::string_view prefix, std::string_view key)
{
  std::string row_key;
  row_key.reserve(prefix.size() + 1 + key.size());
  row_key.append(prefix).append(1, omap_key_type).append(key);
  return row_key;
}

std::string omap_header_key(std::string_view prefix)
{
  return std::string(prefix).append(1, omap_header_type);
}

std::pair<std::string, std::string> omap_key_range(std::string_view prefix)
{
  return {std::string(prefix).append(1, omap_key_type),
          std::string(prefix).append(1, omap_key_type + 1)};
}

std::pair<std::string, std::string> omap_range(std::string_view prefix)
{
  return {omap_header_key(prefix), std::string(prefix).append(1, omap_key_type + 1)};
}

std::string_view decode_omap_key(std::string_view prefix, std::string_view row_key)
{
  return row_key.substr(prefix.size() + 1);
}

std::pair<std::string, std::string> omap_pool_range(int64_t pool)
{
  std::string first, last;
  append_pool(pool, &first);
  if (pool == std::numeric_limits<int64_t>::max()) {
    last.assign(first.size() + 1, after_all);
  } else {
    append_pool(pool + 1, &last);
  }
  return {first, last};
}

std::string pool_stats_key(int64_t pool)
{
  std::string key(1, pool_type);
  append_pool(pool, &key);
  return key;
}

bool decode_pool_stats_key(std::string_view key, int64_t* pool)
{
  KeyReader reader(key);
  return reader.literal(pool_type) && reader.pool(pool) && reader.at_end();
}

std::pair<std::string, std::string> pool_stats_range()
{
  return all_of_type(pool_type);
}

std::string collection_key(const coll_t& cid)
{
  return std::string(1, collection_type).append(cid.to_str());
}

bool decode_collection_key(std::string_view key, coll_t* cid)
{
  if (key.empty() || key.front() != collection_type) {
    return false;
  }
  const std::string name(key.substr(1));
  if (name == coll_t().to_str()) {
    *cid = coll_t();
    return true;
  }
  // coll_t::parse() takes names for good that are written in another way, and then asserts that
  // they are not.
  const size_t suffix = name.rfind('_');
  spg_t pgid;
  if (suffix == std::string::npos || !pgid.parse(name.substr(0, suffix))) {
    return false;
  }
  const coll_t whole(pgid);
  for (const coll_t& found : {whole, whole.get_temp()}) {
    if (found.to_str() == name) {
      *cid = found;
      return true;
    }
  }
  return false;
}

std::pair<std::string, std::string> collections_range()
{
  return all_of_type(collection_type);
}

std::string meta_key(std::string_view name)
{
  return std::string(1, meta_type).append(name);
}

std::string reference_map_key(uint32_t container, uint32_t first_block)
{
  std::string key(1, reference_map_type);
  append_big_endian(container, &key);
  append_big_endian(first_block, &key);
  return key;
}

bool decode_reference_map_key(std::string_view key, uint32_t* container, uint32_t* first_block)
{
  KeyReader reader(key);
  return reader.literal(reference_map_type) && reader.big_endian(container) &&
         reader.big_endian(first_block) && reader.at_end();
}

std::pair<std::string, std::string> reference_maps_range()
{
  return all_of_type(reference_map_type);
}

std::string copy_key(std::string_view key)
{
  return std::string(1, copy_type).append(key);
}

std::pair<std::string, std::string> all_copies_range()
{
  return all_of_type(copy_type);
}

std::string lost_names_key(std::string_view onode_key)
{
  return std::string(1, lost_names_type).append(onode_key);
}

std::string known_name_key(std::string_view onode_key)
{
  return std::string(1, known_name_type).append(onode_key);
}

std::string own_onode_key(std::string_view onode_key)
{
  return std::string(1, own_onode_type).append(onode_key);
}

std::pair<std::string, std::string> lost_names_range()
{
  return all_of_type(lost_names_type);
}

std::pair<std::string, std::string> known_names_range()
{
  return all_of_type(known_name_type);
}

std::pair<std::string, std::string> own_onodes_range()
{
  return all_of_type(own_onode_type);
}

std::string_view named_in(std::string_view row_key)
{
  return row_key.substr(1);
}

}  // namespace tablestore
