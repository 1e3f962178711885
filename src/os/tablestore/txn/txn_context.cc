// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/txn/txn_context.h"

#include "include/ceph_assert.h"
#include "os/tablestore/object/reference_maps.h"

namespace tablestore {

void TxnContext::dirty(const OnodeRef& onode)
{
  if (onode->dirty)
    return;
  onode->dirty = true;
  ++onode->transactions_in_flight;
  dirty_onodes.push_back(onode);
}

void TxnContext::dirty(const std::shared_ptr<ReferenceMap>& slot)
{
  if (slot->dirty)
    return;
  on_undo([slot, runs = slot->runs] { slot->runs = runs; });
  slot->dirty = true;
  ++slot->transactions_in_flight;
  dirty_reference_maps.push_back(slot);
}

void TxnContext::on_undo(std::function<void()> f)
{
  if (keep_undo)
    undo_steps.push_back(std::move(f));
}

void TxnContext::undo()
{
  ceph_assert(keep_undo);
  while (!undo_steps.empty()) {
    undo_steps.back()();
    undo_steps.pop_back();
  }
  for (auto& onode : dirty_onodes)
    onode->dirty = false;
  for (auto& slot : dirty_reference_maps)
    slot->dirty = false;
  unpin();
}

void TxnContext::durable() noexcept
{
  if (listener)
    listener->txn_durable(*this);
}

void TxnContext::applied() noexcept
{
  unpin();
  if (listener)
    listener->txn_applied(*this);
}

void TxnContext::unpin()
{
  for (auto& onode : dirty_onodes)
    --onode->transactions_in_flight;
  for (auto& slot : dirty_reference_maps)
    --slot->transactions_in_flight;
  dirty_onodes.clear();
  dirty_reference_maps.clear();
}

}  // namespace tablestore
