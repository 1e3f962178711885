// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/object/object_txn.h"

#include "os/tablestore/object/reference_maps.h"

namespace tablestore {

void ObjectTxn::touch(const OnodeRef& o)
{
  const uint32_t position = o->touched_position;
  if (position < touched_onodes.size() && touched_onodes[position] == o)
    return;
  o->touched_position = touched_onodes.size();
  ++o->transactions_in_flight;
  touched_onodes.push_back(o);
}

void ObjectTxn::dirty(const OnodeRef& o)
{
  touch(o);
  o->dirty = true;
}

void ObjectTxn::dirty(const ReferenceMapRef& map)
{
  if (map->dirty)
    return;
  map->dirty = true;
  ++map->transactions_in_flight;
  dirty_reference_maps.push_back(map);
}

void ObjectTxn::unpin()
{
  for (auto& o : touched_onodes)
    --o->transactions_in_flight;
  for (auto& map : dirty_reference_maps)
    --map->transactions_in_flight;
  touched_onodes.clear();
  dirty_reference_maps.clear();
}

}  // namespace tablestore
