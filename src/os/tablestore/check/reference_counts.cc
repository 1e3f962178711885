// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/check/reference_counts.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tablestore {

namespace {

/// So many are added before they are added up.
constexpr size_t added_at_least = 4096;

using CountedRun = ReferenceCounts::Run;

std::tuple<uint32_t, uint32_t, uint32_t> place(const CountedRun& run)
{
  return {run.container, run.name, run.block};
}

}  // namespace

void ReferenceCounts::add(const MappedExtent& e, int64_t pool)
{
  add(Run{e.physical.container, e.map_block, e.physical.block, e.physical.blocks, 1,
          static_cast<int32_t>(pool)});
}

void ReferenceCounts::add(const Run& run)
{
  if (all.size() >= std::max(added_at_least, 2 * is_added_up))
    add_up();
  all.push_back(run);
}

void ReferenceCounts::add(std::span<const CountedRun> runs)
{
  for (const Run& run : runs)
    add(run);
}

void ReferenceCounts::add(const ReferenceMap& map, int64_t pool)
{
  for (const auto& [block, run] : map.runs) {
    if (run.references > 0)
      add(Run{map.container, map.first_block, block, run.blocks, run.references,
              static_cast<int32_t>(pool)});
  }
}

std::span<const CountedRun> ReferenceCounts::runs()
{
  add_up();
  return all;
}

void ReferenceCounts::add_up()
{
  std::sort(all.begin(), all.end(),
            [](const Run& a, const Run& b) { return place(a) < place(b); });
  std::pmr::vector<Run> sum(all.get_allocator());
  /// Where the number of references changes, and by how much.
  std::pmr::vector<std::pair<uint32_t, int64_t>> changes(all.get_allocator());
  for (size_t first = 0, end = 0; first < all.size(); first = end) {
    changes.clear();
    for (end = first; end < all.size() && all[end].is_of_same(all[first]); ++end) {
      changes.emplace_back(all[end].block, all[end].references);
      changes.emplace_back(all[end].block + all[end].blocks, -int64_t(all[end].references));
    }
    std::sort(changes.begin(), changes.end());
    int64_t references = 0;
    for (size_t i = 0; i < changes.size();) {
      const uint32_t block = changes[i].first;
      const int64_t before = references;
      for (; i < changes.size() && changes[i].first == block; ++i)
        references += changes[i].second;
      if (before == references)
        continue;
      if (before > 0)
        sum.back().blocks = block - sum.back().block;
      if (references > 0) {
        sum.push_back(all[first]);
        sum.back().block = block;
        sum.back().references = static_cast<uint32_t>(references);
      }
    }
  }
  all.swap(sum);
  is_added_up = all.size();
}

std::span<const CountedRun> first_name(std::span<const CountedRun> runs)
{
  size_t count = 0;
  while (count < runs.size() && runs[count].is_of_same(runs.front()))
    ++count;
  return runs.first(count);
}

// The first block is held for its name only, where nothing refers to it.
void fill(ReferenceMap* map, std::span<const CountedRun> runs)
{
  map->runs.clear();
  for (const CountedRun& run : runs)
    map->runs[run.block] = {run.blocks, run.references};
  if (!map->runs.empty())
    map->runs.try_emplace(map->first_block, ReferenceMap::Run{1, 0});
}

bool agrees(const ReferenceMap& map, std::span<const CountedRun> runs)
{
  ReferenceCounts said(std::pmr::get_default_resource());
  said.add(map, 0);
  const std::span<const CountedRun> rows = said.runs();
  return std::equal(rows.begin(), rows.end(), runs.begin(), runs.end(),
                    [](const CountedRun& a, const CountedRun& b) {
                      return place(a) == place(b) && a.blocks == b.blocks &&
                             a.references == b.references;
                    });
}

}  // namespace tablestore
