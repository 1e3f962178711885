// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/operate/admin.h"

#include "common/Formatter.h"
#include "common/cmdparse.h"
#include "common/debug.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/object/objects.h"
#include "os/tablestore/operate/statistics.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.admin "

namespace tablestore {

AdminCommands::AdminCommands(CephContext* cct, Engine& engine, Collections& collections,
                             Objects& objects, Statistics& statistics)
  : cct(cct),
    engine(engine),
    collections(collections),
    objects(objects),
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
  if (command == "tablestore onode") {
    std::string name;
    ceph::common::cmd_getval(cmdmap, "object_name", name);
    return dump_object(name, f, errss);
  }
  errss << "unknown command";
  return -ENOSYS;
}

int AdminCommands::dump_object(const std::string& name, ceph::Formatter* f,
                               std::ostream& errss)
{
  ghobject_t oid;
  if (!oid.parse(name)) {
    errss << "not the name of an object: " << name;
    return -EINVAL;
  }
  for (const CollectionRef& c : collections.all()) {
    {
      std::shared_lock l{c->lock};
      if (!c->contains(oid))
        continue;
    }
    if (objects.dump(*c, oid, "onode", f) == 0)
      return 0;
  }
  errss << "no such object";
  return -ENOENT;
}

}  // namespace tablestore
