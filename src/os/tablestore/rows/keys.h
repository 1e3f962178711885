// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/hobject.h"
#include "osd/osd_types.h"

/// The keys of the store's rows. Keys order as unsigned bytes; integers in them are big endian.
///
///   Family::super   'C' collection name | 'P' pool | 'R' container first_block | 'M' name
///                   'L', 'K', 'O' key of an object
///   Family::object  'o' object | 'x' nid shard | 'c' key of a row of Family::super
///   Family::data    nid
///   Family::omap    pool nid 'h' | pool nid 'k' user key
///
/// A pool (int64) is stored with its sign bit flipped, so that temp pools sort before normal ones.
/// Every decode function returns false on bytes that its encoder cannot have made.
namespace tablestore {

// ---- Family::object

/// The row of an object. Orders exactly as ghobject_t does, max values included:
///
///   'o' shard(u8, sign flipped) pool(u64) bit-reversed hash(u32) escaped(nspace)
///       escaped(key, or name where there is no key)
///       '=' | ('<' | '>') escaped(name): how the name compares with the key before it
///       snap(u64) generation(u64)
///
/// In an escaped string '!' is the end, and what is <= '#' or >= '~' is one of these two
/// and two hex digits. A max object has no row; its key is a bound that sorts after all others.
std::string onode_key(const ghobject_t& oid);
bool decode_onode_key(std::string_view key, ghobject_t* oid);
/// What the keys of all objects with its shard, pool and hash begin with: they are neighbours.
std::string_view hash_part(std::string_view onode_key);

/// The bounds [start, end) of a collection's rows: those of temp objects (empty where it has no
/// temp objects, as meta), and the others. `bits` is how many bits of the hash belong to it.
void collection_key_range(const coll_t& cid, int bits, std::string* temp_start,
                          std::string* temp_end, std::string* start, std::string* end);

/// [first, last) of the objects with the hash of `oid` in its collection: temp ones, and others.
std::array<std::pair<std::string, std::string>, 2> same_hash_ranges(const ghobject_t& oid);

std::string shard_key(uint64_t nid, uint32_t index);
bool decode_shard_key(std::string_view key, uint64_t* nid, uint32_t* index);
/// [first, last) of all onodes, and of all shards.
std::pair<std::string, std::string> all_onodes_range();
std::pair<std::string, std::string> all_shards_range();

// ---- Family::data

std::string inline_key(uint64_t nid);
bool decode_inline_key(std::string_view key, uint64_t* nid);

// ---- Family::omap

std::string omap_prefix(int64_t pool, uint64_t nid);
bool decode_omap_prefix(std::string_view row_key, int64_t* pool, uint64_t* nid);
std::string omap_key(std::string_view prefix, std::string_view key);
std::string omap_header_key(std::string_view prefix);
/// [first, last) of the keys of one object, without its header.
std::pair<std::string, std::string> omap_key_range(std::string_view prefix);
/// [first, last) of the header and the keys of one object.
std::pair<std::string, std::string> omap_range(std::string_view prefix);
/// The user's key in a row of omap_key_range(prefix); a view into `row_key`.
std::string_view decode_omap_key(std::string_view prefix, std::string_view row_key);
/// [first, last) of everything of one pool.
std::pair<std::string, std::string> omap_pool_range(int64_t pool);

// ---- Family::super

std::string pool_stats_key(int64_t pool);
bool decode_pool_stats_key(std::string_view key, int64_t* pool);
std::pair<std::string, std::string> pool_stats_range();
std::string collection_key(const coll_t& cid);
bool decode_collection_key(std::string_view key, coll_t* cid);
std::pair<std::string, std::string> collections_range();
std::string meta_key(std::string_view name);
std::string reference_map_key(uint32_t container, uint32_t first_block);
bool decode_reference_map_key(std::string_view key, uint32_t* container, uint32_t* first_block);
std::pair<std::string, std::string> reference_maps_range();
/// Of names from the key of an object on that nobody knows; of a known one among them; of the
/// second row of an object of the OSD's own.
std::string lost_names_key(std::string_view onode_key);
std::string known_name_key(std::string_view onode_key);
std::string own_onode_key(std::string_view onode_key);
std::pair<std::string, std::string> lost_names_range();
std::pair<std::string, std::string> known_names_range();
std::pair<std::string, std::string> own_onodes_range();
/// The key of the object in one of these; a view into `row_key`.
std::string_view named_in(std::string_view row_key);

/// Of the copy, in Family::object, of a row of Family::super. They order as those do.
std::string copy_key(std::string_view key);
std::pair<std::string, std::string> all_copies_range();

}  // namespace tablestore
