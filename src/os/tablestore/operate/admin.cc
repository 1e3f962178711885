// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/operate/admin.h"

#include "common/Formatter.h"
#include "common/cmdparse.h"
#include "common/debug.h"
#include "include/stringify.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/collection/listing.h"
#include "os/tablestore/collection/lost_names.h"
#include "os/tablestore/compaction/container_compaction.h"
#include "os/tablestore/object/objects.h"
#include "os/tablestore/operate/free_space_dump.h"
#include "os/tablestore/operate/statistics.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.admin "

namespace tablestore {

namespace {

struct Command {
  const char* descriptor;
  const char* help;
};

constexpr const char* first_command = "tablestore stats";

constexpr Command commands[] = {
  {"tablestore checkpoint", "flush the table and recycle the log before it"},
  {"tablestore settle log loss",
   "after all placement groups of this OSD were scrubbed deeply: the accepted loss of a part of "
   "the log is raised no longer"},
  {"tablestore settle lost objects",
   "after all placement groups of this OSD were scrubbed deeply and repaired: what a repair of the "
   "store had to give up, and nobody has brought back, is gone"},
  {"tablestore compact", "compact the whole table, which takes its time"},
  {"tablestore compact containers name=max_live_percent,type=CephInt,range=1|100,req=false",
   "move what lives in containers of which at most so much (25 percent) is in use, so that whole "
   "files can go"},
  {"tablestore compact status", "how far the compaction of containers is, or why it has ended"},
  {"tablestore compact stop", "end the compaction of containers"},
  {"tablestore punch",
   "give free space back to the file system now, not only where it was quiet for long"},
  {"tablestore onode name=object_name,type=CephString,req=true",
   "print an object's onode and extents"},
  {"tablestore collections", "print all collections"},
  {"tablestore list name=collection,type=CephString,req=true "
   "name=start,type=CephString,req=false name=max,type=CephInt,range=1,req=false",
   "print objects of a collection, 100 or so many, from `start` on"},
  {"tablestore allocator score",
   "fragmentation of free space, from 0 to 1, and per class of slots"},
  {"tablestore allocator dump", "print each run of free blocks"},
  {"tablestore allocator fragmentation histogram",
   "runs of free blocks by size, per class of slots"},
  {"tablestore containers", "print each container: its class, and what is free in it"},
  {"tablestore log status", "how full the log is, and what goes through it"},
};

int settled(bool is_settled, std::ostream& errss)
{
  if (is_settled)
    return 0;
  errss << "nothing gets on: is the file system full? Make room, and say it again";
  return -ETIMEDOUT;
}

}  // namespace

AdminCommands::AdminCommands(const Parts& p) : parts(p), cct(p.cct)
{
  AdminSocket* socket = cct->get_admin_socket();
  if (!socket)
    return;
  int r = socket->register_command(
      first_command, this,
      "counters of the engine, slots per class, the table's statistics, pools");
  if (r < 0) {
    dout(1) << "another store of this process has the commands" << dendl;
    return;
  }
  for (const Command& command : commands)
    socket->register_command(command.descriptor, this, command.help);
}

AdminCommands::~AdminCommands()
{
  if (AdminSocket* socket = cct->get_admin_socket())
    socket->unregister_commands(this);
}

int AdminCommands::call(std::string_view command, const cmdmap_t& cmdmap,
                        const ceph::buffer::list&, ceph::Formatter* f, std::ostream& errss,
                        ceph::buffer::list&)
{
  if (print(command, f))
    return 0;
  if (command == "tablestore checkpoint") {
    Status s = parts.engine.checkpoint();
    errss << s.what();
    return -s.code();
  }
  if (command == "tablestore settle log loss") {
    return settled(parts.engine.settle_log_loss(), errss);
  }
  if (command == "tablestore settle lost objects") {
    return settled(parts.lost_names.settle(), errss);
  }
  if (command == "tablestore compact containers")
    return start_compaction(cmdmap, f, errss);
  if (command == "tablestore compact stop") {
    parts.compaction.stop();
    parts.compaction.dump(f);
    return 0;
  }
  if (command == "tablestore compact") {
    Status s = parts.engine.compact();
    errss << s.what();
    return -s.code();
  }
  if (command == "tablestore punch")
    return punch(f, errss);
  if (command == "tablestore list")
    return list_objects(cmdmap, f, errss);
  if (command == "tablestore onode") {
    std::string name;
    ceph::common::cmd_getval(cmdmap, "object_name", name);
    return dump_object(name, f, errss);
  }
  errss << "unknown command";
  return -ENOSYS;
}

bool AdminCommands::print(std::string_view command, ceph::Formatter* f)
{
  if (command == first_command)
    parts.statistics.dump(f);
  else if (command == "tablestore compact status")
    parts.compaction.dump(f);
  else if (command == "tablestore collections")
    dump_collections(f);
  else if (command == "tablestore allocator score")
    dump_score(f);
  else if (command == "tablestore allocator dump")
    dump_free_runs(parts.engine, f);
  else if (command == "tablestore allocator fragmentation histogram")
    dump_free_histogram(parts.statistics.look_at_free_space(), f);
  else if (command == "tablestore containers")
    dump_containers(f);
  else if (command == "tablestore log status")
    parts.statistics.dump_log(f);
  else
    return false;
  return true;
}

void AdminCommands::dump_score(ceph::Formatter* f)
{
  f->open_object_section("fragmentation");
  dump_free_score(parts.statistics.look_at_free_space(), f);
  f->close_section();
}

void AdminCommands::dump_containers(ceph::Formatter* f)
{
  f->open_array_section("containers");
  for (const ContainerUsage& c : parts.engine.containers())
    dump_container(c, f);
  f->close_section();
}

void AdminCommands::dump_collections(ceph::Formatter* f)
{
  f->open_array_section("collections");
  for (const CollectionRef& c : parts.collections.all()) {
    std::shared_lock l{c->lock};
    f->open_object_section("collection");
    f->dump_stream("collection") << c->cid;
    f->dump_unsigned("bits", c->node.bits);
    f->close_section();
  }
  f->close_section();
}

int AdminCommands::list_objects(const cmdmap_t& cmdmap, ceph::Formatter* f, std::ostream& errss)
{
  std::string name, from;
  int64_t max = 100;
  ceph::common::cmd_getval(cmdmap, "collection", name);
  ceph::common::cmd_getval(cmdmap, "start", from);
  ceph::common::cmd_getval(cmdmap, "max", max);
  coll_t cid;
  ghobject_t start;
  if (!cid.parse(name)) {
    errss << "not the name of a collection: " << name;
    return -EINVAL;
  }
  if (!from.empty() && !start.parse(from)) {
    errss << "not the name of an object: " << from;
    return -EINVAL;
  }
  const CollectionRef c = parts.collections.find(cid);
  if (!c) {
    errss << "no such collection";
    return -ENOENT;
  }
  // No command may keep the others waiting for as long as a store is full.
  if (!parts.engine.wait_applied())
    return settled(false, errss);
  std::vector<ghobject_t> objects;
  ghobject_t next;
  const int r = parts.listing.list(*c, start, ghobject_t::get_max(), int(max), &objects, &next,
                                   Listing::Of::applied);
  if (r < 0 && r != -EIO)
    return r;
  if (r == -EIO)
    errss << "rows are damaged: some objects may be missing in the list";
  f->open_object_section("list");
  f->open_array_section("objects");
  for (const ghobject_t& oid : objects)
    f->dump_stream("object") << oid;
  f->close_section();
  f->dump_stream("next") << (next.is_max() ? "" : stringify(next));
  f->close_section();
  return 0;
}

int AdminCommands::punch(ceph::Formatter* f, std::ostream& errss)
{
  const Result<uint64_t> bytes = parts.engine.punch();
  if (!bytes.ok()) {
    errss << bytes.status().what();
    return -bytes.status().code();
  }
  f->open_object_section("punch");
  f->dump_unsigned("bytes", *bytes);
  f->close_section();
  return 0;
}

int AdminCommands::start_compaction(const cmdmap_t& cmdmap, ceph::Formatter* f,
                                    std::ostream& errss)
{
  int64_t percent = ContainerCompaction::max_live_percent_default;
  ceph::common::cmd_getval(cmdmap, "max_live_percent", percent);
  const int r = parts.compaction.start(percent);
  if (r == -EALREADY)
    errss << "it is under way: see 'tablestore compact status'";
  else if (r < 0)
    errss << "not a percentage: " << percent;
  else
    parts.compaction.dump(f);
  return r;
}

int AdminCommands::dump_object(const std::string& name, ceph::Formatter* f,
                               std::ostream& errss)
{
  ghobject_t oid;
  if (!oid.parse(name)) {
    errss << "not the name of an object: " << name;
    return -EINVAL;
  }
  const CollectionRef c = parts.collections.containing(oid);
  const int r = c ? parts.objects.dump(*c, oid, "onode", f) : -ENOENT;
  if (r == -EIO)
    errss << "rows of the object are damaged: 'ceph pg repair' brings it back from another OSD";
  else if (r < 0)
    errss << "no such object";
  return r;
}

}  // namespace tablestore
