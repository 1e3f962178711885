// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <ctime>

#include "include/stringify.h"
#include "os/tablestore/operate/free_space_dump.h"
#include "tools/tablestore/open_label.h"
#include "tools/tablestore/verbs.h"

namespace tablestore_tool {

using namespace tablestore;

namespace {

std::string as_time(uint64_t unix_seconds)
{
  const time_t seconds = unix_seconds;
  struct tm utc;
  char text[40];
  ::gmtime_r(&seconds, &utc);
  ::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

constexpr int listed_at_once = 1000;

/// Calls visit(collection, object) until it returns false. -EIO: some could not be listed, or are
/// in collections that nobody knows.
int walk(MountedStore& store, const std::string& only,
         const std::function<bool(Collection&, const ghobject_t&)>& visit)
{
  int result = store.knows_all_collections() || !only.empty() ? 0 : -EIO;
  for (const CollectionRef& c : store.collections.all()) {
    if (!only.empty() && stringify(c->cid) != only)
      continue;
    for (ghobject_t at; at != ghobject_t::get_max();) {
      std::vector<ghobject_t> found;
      ghobject_t next;
      const int r =
          store.listing.list(*c, at, ghobject_t::get_max(), listed_at_once, &found, &next);
      if (r < 0 && r != -EIO)
        return r;
      result = std::min(result, r);
      for (const ghobject_t& oid : found) {
        if (interrupted)
          return -ECANCELED;
        if (!visit(*c, oid))
          return result;
      }
      at = next;
    }
  }
  return result;
}

/// `all_known`: all that is there has been looked at.
[[noreturn]] void throw_not_found(bool all_known, const std::string& what)
{
  if (all_known)
    throw Failure(exit_no_store, "there is no " + what);
  throw Failure(exit_errors, what + " is not found, but not all of the store can be read, and it "
                                    "may be there: fsck says more");
}

}  // namespace

Exit show_label(Call& call)
{
  bool is_damaged = false;
  const Label label = read_label_of(call.options.path, &is_damaged);
  ceph::Formatter& f = call.f;
  f.dump_string("path", call.options.path);
  f.dump_string("osd_uuid", as_text(label.store_uuid));
  f.dump_unsigned("format_version", label.format_version);
  f.dump_unsigned("compat", label.compat);
  f.dump_unsigned("ro_compat", label.ro_compat);
  f.dump_unsigned("incompat", label.incompat);
  f.dump_string("created", as_time(label.created_unix_seconds));
  f.dump_unsigned("log_bytes", label.log_bytes);
  f.dump_unsigned("segment_bytes", label.segment_bytes);
  f.dump_unsigned("container_bytes", label.container_bytes);
  f.dump_unsigned("sequence", label.sequence);
  f.dump_bool("one_copy_is_damaged", is_damaged);
  f.open_object_section("keys");
  for (const auto& [key, value] : label.keys)
    f.dump_string(key, value);
  f.close_section();
  return exit_done;
}

Exit stats(Call& call)
{
  Mount mount(call, Mount::For::reading);
  ceph::Formatter& f = call.f;
  store_statfs_t space;
  osd_alert_list_t alerts;
  require((*mount).statfs(&space, &alerts), "statfs");
  f.dump_string("path", call.options.path);
  f.open_object_section("space");
  space.dump(&f);
  f.close_section();
  f.open_object_section("alerts");
  for (const auto& [name, line] : alerts)
    f.dump_string(name, line);
  f.close_section();
  mount.parts().statistics.dump(&f);
  return exit_done;
}

Exit containers(Call& call)
{
  Mount mount(call, Mount::For::reading);
  ceph::Formatter& f = call.f;
  f.open_array_section("containers");
  for (const ContainerUsage& each : mount.parts().engine.containers()) {
    dump_container(each, &f);
    call.flush();
  }
  f.close_section();
  return exit_done;
}

Exit list(Call& call)
{
  Mount mount(call, Mount::For::reading);
  MountedStore& store = mount.parts();
  ceph::Formatter& f = call.f;
  if (!call.options.collection.empty()) {
    coll_t cid;
    if (!cid.parse(call.options.collection) || !store.collections.find(cid))
      throw_not_found(store.knows_all_collections(), "collection " + call.options.collection);
  }
  uint64_t listed = 0;
  f.open_array_section("objects");
  const int r = walk(store, call.options.collection, [&](Collection& c, const ghobject_t& oid) {
    if (call.options.limit && listed == call.options.limit)
      return false;
    f.open_object_section("object");
    f.dump_string("collection", stringify(c.cid));
    f.dump_string("object", stringify(oid));
    f.close_section();
    if (++listed % listed_at_once == 0)
      call.flush();
    return true;
  });
  f.close_section();
  f.dump_bool("complete", r == 0);
  if (r == -ECANCELED)
    return exit_interrupted;
  if (r < 0 && r != -EIO)
    require(r, "cannot list");
  return r < 0 ? exit_errors : exit_done;   // of what cannot be read, fsck says more
}

Exit dump_onode(Call& call)
{
  if (call.options.object.empty())
    throw Failure(exit_usage, "which object? Give --object NAME, as list shows it, or the name "
                              "that its client gave it");
  Mount mount(call, Mount::For::reading);
  MountedStore& store = mount.parts();
  unsigned found = 0;
  bool all_known = store.knows_all_collections();
  const auto dump = [&](Collection& c, const ghobject_t& oid) {
    call.f.open_object_section("onode");
    call.f.dump_string("collection", stringify(c.cid));
    const int r = store.objects.dump(c, oid, "object", &call.f);
    call.f.close_section();
    if (r == -EIO)
      throw Failure(exit_errors, "rows of " + stringify(oid) + " are damaged: 'ceph pg repair' "
                                 "brings it back from another OSD");
    found += r == 0;
    return true;
  };
  call.f.open_array_section("onodes");
  if (ghobject_t oid; oid.parse(call.options.object)) {
    if (const CollectionRef c = store.collections.containing(oid))
      dump(*c, oid);
  } else {
    const int r = walk(store, call.options.collection, [&](Collection& c, const ghobject_t& each) {
      return each.hobj.oid.name != call.options.object || dump(c, each);
    });
    require(r == -EIO ? 0 : r, "cannot list");
    all_known &= r == 0;
  }
  call.f.close_section();
  if (found == 0)
    throw_not_found(all_known, "object " + call.options.object);
  return exit_done;
}

}  // namespace tablestore_tool
