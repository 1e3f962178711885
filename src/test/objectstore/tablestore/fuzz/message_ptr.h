// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

/// Included before all else: clang looks these up where msg/Connection.h uses them, when Message is
/// not defined yet and nothing says that it is a RefCountedObject. No target has messages.
class Message;
void intrusive_ptr_add_ref(const Message*);
void intrusive_ptr_release(const Message*);
