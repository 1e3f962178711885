// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/operate/free_space_dump.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>

namespace tablestore {

namespace {

uint64_t slot_bytes(unsigned slot_class) { return slot_blocks(slot_class) * block_bytes; }

void for_each_used_class(const FreeSpace& space,
                         const std::function<void(unsigned, const FreeSpace::Class&)>& visitor)
{
  for (unsigned c = 0; c < slot_classes; ++c) {
    if (space.classes[c].blocks > 0)
      visitor(c, space.classes[c]);
  }
}

uint64_t count_runs(const FreeSpace::Class& of)
{
  uint64_t runs = 0;
  for (const FreeSpace::Bin& bin : of.bins)
    runs += bin.runs;
  return runs;
}

std::string hex(uint64_t value)
{
  char text[20];
  snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

void dump_free_score(const FreeSpace& space, ceph::Formatter* f)
{
  uint64_t extents = 0;
  uint32_t largest_blocks = 0;
  f->dump_float("fragmentation_rating", space.score);
  f->dump_unsigned("free_bytes", space.blocks * block_bytes);
  f->open_array_section("classes");
  for_each_used_class(space, [&](unsigned c, const FreeSpace::Class& of) {
    const uint64_t runs = count_runs(of);
    extents += runs;
    largest_blocks = std::max(largest_blocks, of.largest_blocks);
    f->open_object_section("class");
    f->dump_unsigned("slot_bytes", slot_bytes(c));
    f->dump_float("fragmentation_rating", of.score);
    f->dump_unsigned("free_bytes", of.blocks * block_bytes);
    f->dump_unsigned("extents", runs);
    f->dump_unsigned("largest_bytes", of.largest_blocks * block_bytes);
    f->close_section();
  });
  f->close_section();
  f->dump_unsigned("extents", extents);
  f->dump_unsigned("largest_bytes", largest_blocks * block_bytes);
}

void dump_free_histogram(const FreeSpace& space, ceph::Formatter* f)
{
  f->open_object_section("fragmentation_histogram");
  f->open_array_section("classes");
  for_each_used_class(space, [f](unsigned c, const FreeSpace::Class& of) {
    f->open_object_section("class");
    f->dump_unsigned("slot_bytes", slot_bytes(c));
    f->open_array_section("bins");
    for (size_t power = 0; power < of.bins.size(); ++power) {
      if (of.bins[power].runs == 0)
        continue;
      f->open_object_section("bin");
      f->dump_unsigned("max_size", ((uint64_t(2) << power) - 1) * block_bytes);
      f->dump_unsigned("runs", of.bins[power].runs);
      f->dump_unsigned("total", of.bins[power].blocks * block_bytes);
      f->close_section();
    }
    f->close_section();
    f->close_section();
  });
  f->close_section();
  f->close_section();
}

void dump_free_runs(const Engine& engine, ceph::Formatter* f)
{
  f->open_object_section("free_space");
  f->dump_unsigned("alloc_unit", block_bytes);
  f->open_array_section("extents");
  engine.visit_free_runs([f](unsigned c, const Run& run) {
    f->open_object_section("extent");
    f->dump_unsigned("container", run.container);
    f->dump_unsigned("slot_bytes", slot_bytes(c));
    f->dump_string("offset", hex(run.offset_bytes()));
    f->dump_string("length", hex(run.length_bytes()));
    f->close_section();
  });
  f->close_section();
  f->close_section();
}

void dump_container(const ContainerUsage& c, ceph::Formatter* f)
{
  f->open_object_section("container");
  f->dump_unsigned("container", c.container);
  f->dump_string("file", c.path);
  f->dump_unsigned("slot_bytes", slot_bytes(c.slot_class));
  f->dump_unsigned("bytes", c.blocks * block_bytes);
  f->dump_unsigned("used_bytes", c.owned_blocks * block_bytes);
  f->dump_unsigned("free_bytes", c.free_blocks * block_bytes);
  f->dump_unsigned("unwritten_free_bytes", c.unwritten_free_blocks * block_bytes);
  f->dump_unsigned("given_back_bytes", c.punched_blocks * block_bytes);
  f->dump_bool("closed", c.is_closed);
  f->close_section();
}

}  // namespace tablestore
