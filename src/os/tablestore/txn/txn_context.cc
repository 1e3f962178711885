// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/txn/txn_context.h"

namespace tablestore {

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

}  // namespace tablestore
