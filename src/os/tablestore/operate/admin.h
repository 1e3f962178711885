// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "common/admin_socket.h"
#include "os/tablestore/collection/collection.h"

namespace tablestore {

class Collections;
class ContainerCompaction;
class Engine;
class Listing;
class LostNames;
class Objects;
class Statistics;

/// Commands of the admin socket, for as long as this lives: `ceph daemon osd.N tablestore ...`.
///
/// Where several stores are mounted in one process, the first has them.
class AdminCommands : public AdminSocketHook {
 public:
  struct Parts {
    CephContext* cct;
    Engine& engine;
    Collections& collections;
    Listing& listing;
    Objects& objects;
    LostNames& lost_names;
    ContainerCompaction& compaction;
    Statistics& statistics;
  };
  explicit AdminCommands(const Parts& parts);
  ~AdminCommands() override;

  int call(std::string_view command, const cmdmap_t& cmdmap, const ceph::buffer::list& inbl,
           ceph::Formatter* f, std::ostream& errss, ceph::buffer::list& out) override;

 private:
  int start_compaction(const cmdmap_t& cmdmap, ceph::Formatter* f, std::ostream& errss);
  int dump_object(const std::string& name, ceph::Formatter* f, std::ostream& errss);

  void dump_score(ceph::Formatter* f);
  void dump_containers(ceph::Formatter* f);
  void dump_collections(ceph::Formatter* f);
  int list_objects(const cmdmap_t& cmdmap, ceph::Formatter* f, std::ostream& errss);
  int punch(ceph::Formatter* f, std::ostream& errss);
  /// Those that only print: false where it is none of them.
  bool print(std::string_view command, ceph::Formatter* f);

  const Parts parts;
  CephContext* const cct;
};

}  // namespace tablestore
