#include "tools/objectstore_dup/dup_store.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include "common/Cond.h"
#include "common/ceph_crypto.h"
#include "common/errno.h"
#include "os/ObjectStore.h"
#include "osd/osd_types.h"

namespace tablestore {

namespace {

constexpr uint64_t piece_bytes = 8 << 20;        // of one transaction
constexpr uint64_t least_available = 256 << 20;  // below it the target counts as full
constexpr uint64_t bytes_between_looks = 64 << 20;  // at the target's space
constexpr int list_at_once = 1000;
/// In the target: what the source was, and behind it whether all of it is there.
constexpr const char* source_key = "dup_source";
constexpr const char* whole = " whole";

class Dup {
 public:
  Dup(ObjectStore& src, ObjectStore& dst) : src(src), dst(dst) {}

  /// Both are mounted.
  int run(const std::string& src_path, const std::string& dst_path)
  {
    if (int r = begin(); r < 0 || is_whole)
      return r;
    std::vector<coll_t> collections;
    if (int r = src.list_collections(collections); r < 0)
      return failed("cannot list the source's collections", r);
    std::sort(collections.begin(), collections.end());
    std::cout << collections.size() << " collections" << std::endl;
    size_t number = 0;
    for (const coll_t& cid : collections) {
      std::cout << ++number << "/" << collections.size() << " " << cid << std::endl;
      if (int r = copy_collection(cid); r < 0)
        return r;
    }
    return end(src_path, dst_path);
  }

 private:
  struct Target {
    ObjectStore::CollectionHandle handle;
    ghobject_t from;   ///< the first object that is copied
  };

  static int failed(const std::string& what, int r)
  {
    std::cerr << "\n" << what << ": " << cpp_strerror(r) << std::endl;
    return r;
  }

  static std::string name(const ghobject_t& oid)
  {
    std::ostringstream out;
    out << oid;
    return out.str();
  }

  /// The target is empty, or a part of what the source is now.
  int begin()
  {
    if (src.get_fsid() != dst.get_fsid()) {
      std::cerr << "src fsid " << src.get_fsid() << " != dest " << dst.get_fsid() << std::endl;
      return -EINVAL;
    }
    std::cout << "fsid " << src.get_fsid() << std::endl;
    std::vector<coll_t> collections;
    if (int r = dst.list_collections(collections); r < 0)
      return failed("cannot list the target's collections", r);
    if (int r = identify_source(); r < 0)
      return r;
    std::string begun;
    if (dst.read_meta(source_key, &begun) < 0)
      begun.clear();
    if (begun.empty() && !collections.empty()) {
      std::cerr << "destination store is not empty" << std::endl;
      return -EEXIST;
    }
    if (!begun.empty() && !begun.starts_with(source)) {
      std::cerr << "destination store has this one as it was before its OSD ran again: "
                << "make an empty one with --op mkfs" << std::endl;
      return -ESTALE;
    }
    is_whole = begun.ends_with(whole);
    if (is_whole)
      std::cout << "the destination is whole already" << std::endl;
    if (begun.empty())
      return dst.write_meta(source_key, source);
    if (!is_whole)
      std::cout << "goes on with what was interrupted" << std::endl;
    return 0;
  }

  /// The superblock changes whenever the OSD runs.
  int identify_source()
  {
    source = "no superblock";
    auto ch = src.open_collection(coll_t::meta());
    if (!ch || !src.exists(ch, OSD_SUPERBLOCK_GOBJECT))
      return 0;
    ceph::buffer::list bytes;
    if (int r = src.read(ch, OSD_SUPERBLOCK_GOBJECT, 0, 0, bytes); r < 0)
      return failed("cannot read the OSD's superblock", r);
    source = ceph::crypto::digest<ceph::crypto::SHA256>(bytes).to_str();
    return 0;
  }

  int copy_collection(const coll_t& cid)
  {
    auto ch = src.open_collection(cid);
    if (!ch)
      return failed("cannot open a collection of the source", -ENOENT);
    Target target;
    if (int r = dst.collection_exists(cid) ? go_on(cid, ch, &target) : create(cid, ch, &target); r < 0)
      return r;
    objects = bytes = keys = 0;
    for (ghobject_t pos = target.from; !pos.is_max();) {
      std::vector<ghobject_t> listed;
      if (int r = src.collection_list(ch, pos, ghobject_t::get_max(), list_at_once, &listed, &pos);
          r < 0)
        return failed("cannot list a collection of the source", r);
      for (const ghobject_t& oid : listed) {
        if (int r = copy_object(cid, ch, target.handle, oid); r < 0)
          return r;
        ++objects;
      }
      std::cout << progress() << "\r" << std::flush;
      if (listed.empty())
        break;
    }
    wait(cid, target.handle);
    std::cout << progress() << std::endl;
    return 0;
  }

  int create(const coll_t& cid, ObjectStore::CollectionHandle& ch, Target* target)
  {
    const int bits = src.collection_bits(ch);
    if (bits < 0)
      return failed("cannot get the bit count of a collection", bits);
    target->handle = dst.create_new_collection(cid);
    ObjectStore::Transaction t;
    t.create_collection(cid, bits);
    return dst.queue_transaction(target->handle, std::move(t));
  }

  /// Objects are copied in the order in which they are listed, so that only the last one may be a
  /// part of itself. What the OSD keeps of its own may have changed since, by the tools that
  /// mended or removed what could not be read: that is copied anew.
  int go_on(const coll_t& cid, ObjectStore::CollectionHandle& ch, Target* target)
  {
    target->handle = dst.open_collection(cid);
    bool any = false;
    spg_t pgid;
    const bool is_pg = cid.is_pg(&pgid);
    ObjectStore::Transaction t;
    for (ghobject_t pos; !pos.is_max();) {
      std::vector<ghobject_t> listed;
      if (int r = dst.collection_list(target->handle, pos, ghobject_t::get_max(), list_at_once,
                                      &listed, &pos);
          r < 0)
        return failed("cannot list a collection of the target", r);
      if (listed.empty())
        break;
      if (!is_pg) {
        for (const ghobject_t& oid : listed)
          t.remove(cid, oid);
        continue;
      }
      target->from = listed.back();
      any = true;
    }
    if (!any)
      return dst.queue_transaction(target->handle, std::move(t));
    t.remove(cid, target->from);
    const ghobject_t own = pgid.make_pgmeta_oid();
    const bool has_own = target->from != own && dst.exists(target->handle, own);
    if (has_own)
      t.remove(cid, own);
    if (int r = dst.queue_transaction(target->handle, std::move(t)); r < 0)
      return r;
    return has_own ? copy_object(cid, ch, target->handle, own) : 0;
  }

  int copy_object(const coll_t& cid, ObjectStore::CollectionHandle& ch,
                  ObjectStore::CollectionHandle& dch, const ghobject_t& oid)
  {
    const auto cannot = [&](const char* what, int r) {
      if (target_is_full)   // it has said so
        return r;
      return failed("cannot read " + std::string(what) + " of " + name(oid) + " in " +
                        cid.to_str() + ": repair it, or remove it, and begin again", r);
    };
    ObjectStore::Transaction t;
    t.touch(cid, oid);
    std::map<std::string, ceph::buffer::ptr, std::less<>> attributes;
    if (int r = src.getattrs(ch, oid, attributes); r < 0)
      return cannot("the attributes", r);
    if (!attributes.empty())
      t.setattrs(cid, oid, attributes);
    if (int r = copy_data(cid, ch, dch, oid, &t); r < 0)
      return cannot("the data", r);
    if (int r = copy_omap(cid, ch, dch, oid, &t); r < 0)
      return cannot("the omap", r);
    return send(dch, &t);
  }

  /// Holes stay holes.
  int copy_data(const coll_t& cid, ObjectStore::CollectionHandle& ch,
                ObjectStore::CollectionHandle& dch, const ghobject_t& oid,
                ObjectStore::Transaction* t)
  {
    struct stat status;
    if (int r = src.stat(ch, oid, &status); r < 0)
      return r;
    const uint64_t size = status.st_size;
    std::map<uint64_t, uint64_t> extents;
    if (size > 0) {
      if (int r = src.fiemap(ch, oid, 0, size, extents); r < 0)
        return r;
      t->truncate(cid, oid, size);
    }
    for (const auto& [offset, length] : extents) {
      const uint64_t end = std::min(offset + length, size);
      for (uint64_t at = offset; at < end; at += piece_bytes) {
        const uint64_t more = std::min(piece_bytes, end - at);
        ceph::buffer::list data;
        if (int r = src.read(ch, oid, at, more, data); r < 0)
          return r;
        if (data.length() != more)
          return -EIO;
        t->write(cid, oid, at, more, data);
        bytes += more;
        if (int r = send_if_large(dch, t); r < 0)
          return r;
      }
    }
    return 0;
  }

  int copy_omap(const coll_t& cid, ObjectStore::CollectionHandle& ch,
                ObjectStore::CollectionHandle& dch, const ghobject_t& oid,
                ObjectStore::Transaction* t)
  {
    ceph::buffer::list header;
    if (int r = src.omap_get_header(ch, oid, &header, true); r < 0)
      return r;
    if (header.length())
      t->omap_setheader(cid, oid, header);
    std::map<std::string, ceph::buffer::list> some;
    uint64_t some_bytes = 0;
    const auto put = [&] {
      t->omap_setkeys(cid, oid, some);
      keys += some.size();
      some.clear();
      some_bytes = 0;
    };
    int sent = 0;
    const int r = src.omap_iterate(
      ch, oid, ObjectStore::omap_iter_seek_t::min_lower_bound(),
      [&](std::string_view key, std::string_view value) {
        some[std::string(key)].append(value);
        some_bytes += key.size() + value.size();
        if (some_bytes >= piece_bytes) {
          put();
          sent = send_if_large(dch, t);
        }
        return sent < 0 ? ObjectStore::omap_iter_ret_t::STOP : ObjectStore::omap_iter_ret_t::NEXT;
      });
    if (!some.empty())
      put();
    return std::min({r, sent, 0});
  }

  int send_if_large(ObjectStore::CollectionHandle& dch, ObjectStore::Transaction* t)
  {
    return t->get_num_bytes() < piece_bytes ? 0 : send(dch, t);
  }

  /// Not what does not fit: a store that runs out of space in a transaction ends the process.
  int send(ObjectStore::CollectionHandle& dch, ObjectStore::Transaction* t)
  {
    bytes_to_next_look -= std::min(bytes_to_next_look, t->get_num_bytes());
    if (bytes_to_next_look == 0) {
      if (int r = check_space(); r < 0) {
        target_is_full = true;
        return r;
      }
      bytes_to_next_look = bytes_between_looks;
    }
    const int r = dst.queue_transaction(dch, std::move(*t));
    *t = ObjectStore::Transaction();
    return r;
  }

  int check_space()
  {
    store_statfs_t space;
    if (int r = dst.statfs(&space, nullptr); r < 0)
      return failed("cannot ask the target for its space", r);
    if (space.available > least_available)
      return 0;
    return failed("the target is full: give it more space, and begin again", -ENOSPC);
  }

  /// Until all that was sent is durable.
  void wait(const coll_t& cid, ObjectStore::CollectionHandle& dch)
  {
    C_SaferCond durable;
    ObjectStore::Transaction t;
    t.nop();
    t.register_on_commit(&durable);
    dst.queue_transaction(dch, std::move(t));
    durable.wait();
  }

  int end(const std::string& src_path, const std::string& dst_path)
  {
    std::cout << "keyring" << std::endl;
    ceph::buffer::list keyring;
    std::string error;
    if (int r = keyring.read_file((src_path + "/keyring").c_str(), &error); r < 0)
      std::cerr << "there is no keyring to copy: " << error << std::endl;
    else if (r = keyring.write_file((dst_path + "/keyring").c_str(), 0600); r < 0)
      return failed("cannot write the keyring", r);
    std::cout << "duping osd metadata" << std::endl;
    for (const char* key : {"magic", "whoami", "ceph_fsid", "fsid"}) {
      std::string value;
      if (int r = src.read_meta(key, &value); r < 0)
        return failed(std::string("cannot read ") + key, r);
      if (int r = dst.write_meta(key, value); r < 0)
        return failed(std::string("cannot write ") + key, r);
    }
    if (int r = dst.write_meta("ready", "ready"); r < 0)
      return failed("cannot write that it is ready", r);
    std::cout << "done." << std::endl;
    return dst.write_meta(source_key, source + whole);
  }

  std::string progress() const
  {
    std::ostringstream out;
    out << "  " << std::setw(16) << objects << " objects, " << std::setw(16) << bytes << " bytes, "
        << std::setw(16) << keys << " keys";
    return out.str();
  }

  ObjectStore& src;
  ObjectStore& dst;
  std::string source;
  bool is_whole = false;
  bool target_is_full = false;
  uint64_t bytes_to_next_look = 0;
  uint64_t objects = 0, bytes = 0, keys = 0;   ///< of the collection that is copied
};

}  // namespace

int dup_store(ObjectStore& src, const std::string& src_path, ObjectStore& dst,
              const std::string& dst_path)
{
  std::cout << "dup from " << src.get_type() << ": " << src_path << "\n"
            << "      to " << dst.get_type() << ": " << dst_path << std::endl;
  if (int r = src.mount(); r < 0) {
    std::cerr << "failed to mount src: " << cpp_strerror(r) << std::endl;
    return r;
  }
  int r = dst.mount();
  if (r < 0) {
    std::cerr << "failed to mount dst: " << cpp_strerror(r) << std::endl;
  } else {
    r = Dup(src, dst).run(src_path, dst_path);
    const int unmounted = dst.umount();
    r = r < 0 ? r : unmounted;
  }
  src.umount();
  return r;
}

}  // namespace tablestore
