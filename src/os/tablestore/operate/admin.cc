// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/operate/admin.h"

#include "common/Formatter.h"
#include "common/cmdparse.h"
#include "common/debug.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/collection/lost_names.h"
#include "os/tablestore/compaction/container_compaction.h"
#include "os/tablestore/object/objects.h"
#include "os/tablestore/operate/statistics.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.admin "

namespace tablestore {

AdminCommands::AdminCommands(CephContext* cct, Engine& engine, Collections& collections,
                             Objects& objects, LostNames& lost_names,
                             ContainerCompaction& compaction, Statistics& statistics)
  : cct(cct),
    engine(engine),
    collections(collections),
    objects(objects),
    lost_names(lost_names),
    compaction(compaction),
    statistics(statistics)
{
  AdminSocket* socket = cct->get_admin_socket();
  if (!socket)
    return;
  int r = socket->register_command(
      "tablestore stats", this,
      "counters of the engine, slots per class, the table's statistics, pools");
  if (r < 0) {
    dout(1) << "another store of this process has the commands" << dendl;
    return;
  }
  socket->register_command("tablestore checkpoint", this,
                           "flush the table and recycle the log before it");
  socket->register_command("tablestore settle log loss", this,
                           "after all placement groups of this OSD were scrubbed deeply: the "
                           "accepted loss of a part of the log is raised no longer");
  socket->register_command("tablestore settle lost objects", this,
                           "after all placement groups of this OSD were scrubbed deeply and "
                           "repaired: what a repair of the store had to give up, and nobody has "
                           "brought back, is gone");
  socket->register_command("tablestore compact containers "
                           "name=max_live_percent,type=CephInt,range=1|100,req=false", this,
                           "move what lives in containers of which at most so much (25 percent) "
                           "is in use, so that whole files can go");
  socket->register_command("tablestore compact status", this,
                           "how far the compaction of containers is, or why it has ended");
  socket->register_command("tablestore compact stop", this, "end the compaction of containers");
  socket->register_command("tablestore onode name=object_name,type=CephString,req=true", this,
                           "print an object's onode and extents");
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
  if (command == "tablestore stats") {
    statistics.dump(f);
    return 0;
  }
  if (command == "tablestore checkpoint") {
    Status s = engine.checkpoint();
    errss << s.what();
    return -s.code();
  }
  if (command == "tablestore settle log loss") {
    engine.settle_log_loss();
    return 0;
  }
  if (command == "tablestore settle lost objects") {
    lost_names.settle();
    return 0;
  }
  if (command == "tablestore compact containers")
    return start_compaction(cmdmap, f, errss);
  if (command == "tablestore compact status") {
    compaction.dump(f);
    return 0;
  }
  if (command == "tablestore compact stop") {
    compaction.stop();
    compaction.dump(f);
    return 0;
  }
  if (command == "tablestore onode") {
    std::string name;
    ceph::common::cmd_getval(cmdmap, "object_name", name);
    return dump_object(name, f, errss);
  }
  errss << "unknown command";
  return -ENOSYS;
}

int AdminCommands::start_compaction(const cmdmap_t& cmdmap, ceph::Formatter* f,
                                    std::ostream& errss)
{
  int64_t percent = ContainerCompaction::max_live_percent_default;
  ceph::common::cmd_getval(cmdmap, "max_live_percent", percent);
  const int r = compaction.start(percent);
  if (r == -EALREADY)
    errss << "it is under way: see 'tablestore compact status'";
  else if (r < 0)
    errss << "not a percentage: " << percent;
  else
    compaction.dump(f);
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
  const CollectionRef c = collections.containing(oid);
  const int r = c ? objects.dump(*c, oid, "onode", f) : -ENOENT;
  if (r == -EIO)
    errss << "rows of the object are damaged: 'ceph pg repair' brings it back from another OSD";
  else if (r < 0)
    errss << "no such object";
  return r;
}

}  // namespace tablestore
