// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/operate/admin.h"

#include "common/Formatter.h"
#include "common/cmdparse.h"
#include "common/debug.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/space/pool_totals.h"

#define dout_context store.cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.admin "

namespace tablestore {

AdminCommands::AdminCommands(TableStore& store) : store(store)
{
  AdminSocket* socket = store.cct->get_admin_socket();
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
  if (AdminSocket* socket = store.cct->get_admin_socket())
    socket->unregister_commands(this);
}

int AdminCommands::call(std::string_view command, const cmdmap_t& cmdmap,
                        const ceph::buffer::list&, ceph::Formatter* f, std::ostream& errss,
                        ceph::buffer::list&)
{
  if (command == "tablestore stats") {
    dump_statistics(f);
    return 0;
  }
  if (command == "tablestore checkpoint") {
    Status s = store.engine->checkpoint();
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

void AdminCommands::dump_statistics(ceph::Formatter* f)
{
  store.refresh_perf_counters();
  f->open_object_section("tablestore");
  store.get_db_statistics(f);
  f->open_object_section("caches");
  store.dump_cache_stats(f);
  f->close_section();
  f->open_array_section("pools");
  for (const auto& [pool, stats] : store.pools->all()) {
    f->open_object_section("pool");
    f->dump_int("pool", pool);
    f->dump_int("objects", stats[PoolStats::objects]);
    f->dump_int("stored_bytes", stats[PoolStats::stored_bytes]);
    f->dump_int("allocated_bytes", stats[PoolStats::allocated_bytes]);
    f->dump_int("inline_bytes", stats[PoolStats::inline_bytes]);
    f->close_section();
  }
  f->close_section();
  f->close_section();
}

int AdminCommands::dump_object(const std::string& name, ceph::Formatter* f,
                               std::ostream& errss)
{
  ghobject_t oid;
  if (!oid.parse(name)) {
    errss << "not the name of an object: " << name;
    return -EINVAL;
  }
  std::vector<coll_t> cids;
  store.list_collections(cids);
  for (const coll_t& cid : cids) {
    auto handle = store.open_collection(cid);
    if (!handle)
      continue;
    auto* c = static_cast<Collection*>(handle.get());
    {
      std::shared_lock l{c->lock};
      if (!c->contains(oid))
        continue;
    }
    if (store.dump_onode(handle, oid, "onode", f) == 0)
      return 0;
  }
  errss << "no such object";
  return -ENOENT;
}

}  // namespace tablestore
