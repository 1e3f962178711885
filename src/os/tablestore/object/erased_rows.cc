// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/object/erased_rows.h"

#include <algorithm>
#include <utility>

namespace tablestore {

void ErasedRows::add(std::string first, std::string last, TxnMark mark)
{
  std::lock_guard l{mutex};
  ranges.push_back({std::move(first), std::move(last), std::move(mark)});
  any = true;
}

bool ErasedRows::has(std::string_view key)
{
  if (!any)
    return false;
  std::lock_guard l{mutex};
  ranges.remove_if([](const Range& range) { return range.mark.applied(); });
  any = !ranges.empty();
  return std::any_of(ranges.begin(), ranges.end(), [key](const Range& range) {
    return key >= range.first && key < range.last;
  });
}

}  // namespace tablestore
