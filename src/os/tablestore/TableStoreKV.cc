// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/TableStoreKV.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "common/errno.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "os/tablestore/mounted_store.h"

using namespace tablestore;

namespace {

/// In the order of their prefixes.
constexpr std::array<std::pair<std::string_view, Family>, families> prefixes = {{
    {"D", Family::data}, {"O", Family::object}, {"S", Family::super}, {"m", Family::omap}}};

std::optional<Family> family_of(std::string_view prefix)
{
  const auto found =
      std::ranges::find(prefixes, prefix, &std::pair<std::string_view, Family>::first);
  if (found == prefixes.end())
    return std::nullopt;
  return found->second;
}

}  // namespace

/// What is of another prefix is passed over: there are no such rows. The engine's own rows stay as
/// they are: it goes by what it has in memory, and a store that opens without its allocation map
/// would give the blocks of objects to others. Who names one of them alone is refused.
class TableStoreKV::Changes : public TransactionImpl {
 public:
  explicit Changes(Engine& engine) : engine(engine) {}
  size_t get_count() const override { return count; }
  size_t get_size_bytes() const override { return txn->row_bytes(); }
  using TransactionImpl::rmkey;
  using TransactionImpl::set;
  void set(const std::string& prefix, const std::string& key, const ceph::buffer::list& bl) override
  {
    change(prefix, [&](Family family) {
      if (!refuses(family, key))
        txn->put(family, key, bl.to_str());
    });
  }
  void rmkey(const std::string& prefix, const std::string& key) override
  {
    change(prefix, [&](Family family) {
      if (!refuses(family, key))
        txn->erase(family, key);
    });
  }
  void rmkeys_by_prefix(const std::string& prefix) override
  {
    change(prefix, [&](Family family) {
      const auto rows = engine.iterate(family, {}, {});
      for (rows->seek_to_first(); rows->valid(); rows->next()) {
        if (!engine_rows::is_ours(family, rows->key()))
          txn->erase(family, rows->key());
      }
      if (const Status s = rows->status(); !s.ok())
        error = -s.code();
    });
  }
  void rm_range_keys(const std::string& prefix, const std::string& start,
                     const std::string& end) override
  {
    change(prefix, [&](Family family) {
      std::string first = start;
      if (engine_rows::is_ours(family, first_of_engine) && first < behind_engine)
        first = behind_engine;
      if (first < end)
        txn->erase_range(family, first, end);
    });
  }

  std::shared_ptr<Txn> txn = std::make_shared<Txn>();
  int error = 0;   ///< then nothing is to be submitted

 private:
  static constexpr std::string_view first_of_engine{"\0", 1}, behind_engine = "\1";

  bool refuses(Family family, std::string_view key)
  {
    if (!engine_rows::is_ours(family, key))
      return false;
    error = -EPERM;
    return true;
  }
  void change(const std::string& prefix, const std::function<void(Family)>& f)
  {
    if (const auto family = family_of(prefix)) {
      f(*family);
      ++count;
    }
  }

  Engine& engine;
  size_t count = 0;
};

class TableStoreKV::Rows : public WholeSpaceIteratorImpl {
 public:
  explicit Rows(Engine& engine) : engine(engine) {}
  int seek_to_first() override { return seek("", ""); }
  int seek_to_first(const std::string& prefix) override { return seek(prefix, ""); }
  int upper_bound(const std::string& prefix, const std::string& after) override
  {
    return seek(prefix, after + '\0');
  }
  int lower_bound(const std::string& prefix, const std::string& to) override
  {
    return seek(prefix, to);
  }
  int seek_to_last() override { return -EOPNOTSUPP; }
  int seek_to_last(const std::string&) override { return -EOPNOTSUPP; }
  int prev() override { return -EOPNOTSUPP; }
  bool valid() override { return rows && rows->valid(); }
  int next() override
  {
    rows->next();
    return skip_ended();
  }
  std::string key() override { return std::string(rows->key()); }
  std::string_view key_as_sv() override { return rows->key(); }
  std::pair<std::string, std::string> raw_key() override
  {
    return {std::string(prefixes[at].first), key()};
  }
  std::pair<std::string_view, std::string_view> raw_key_as_sv() override
  {
    return {prefixes[at].first, rows->key()};
  }
  bool raw_key_is_prefixed(const std::string& prefix) override
  {
    return prefixes[at].first == prefix;
  }
  ceph::buffer::list value() override
  {
    ceph::buffer::list bl;
    bl.append(rows->value());
    return bl;
  }
  std::string_view value_as_sv() override { return rows->value(); }
  int status() override { return rows ? -rows->status().code() : 0; }
  size_t key_size() override { return rows->key().size(); }
  size_t value_size() override { return rows->value().size(); }

 private:
  int seek(std::string_view prefix, std::string_view key)
  {
    at = std::ranges::lower_bound(prefixes, prefix, {},
                                  &std::pair<std::string_view, Family>::first) -
         prefixes.begin();
    rows = nullptr;
    if (at < prefixes.size()) {
      rows = engine.iterate(prefixes[at].second, {}, {});
      rows->seek(prefixes[at].first == prefix ? key : "");
    }
    return skip_ended();
  }
  /// Goes on to the next family, but not from one that cannot be read.
  int skip_ended()
  {
    while (rows && !rows->valid() && rows->status().ok() && ++at < prefixes.size()) {
      rows = engine.iterate(prefixes[at].second, {}, {});
      rows->seek_to_first();
    }
    return status();
  }

  Engine& engine;
  size_t at = 0;
  std::unique_ptr<RowIterator> rows;
};

int TableStoreKV::open(std::ostream& out, const std::string&)
{
  const int r = is_read_only ? store.mount_readonly() : store.mount();
  is_open = r == 0;
  if (r < 0)
    out << "cannot open the store: " << cpp_strerror(r) << std::endl;
  return r;
}

int TableStoreKV::open_read_only(std::ostream& out, const std::string& families)
{
  is_read_only = true;
  return open(out, families);
}

void TableStoreKV::close()
{
  if (std::exchange(is_open, false))
    store.umount();
}

KeyValueDB::Transaction TableStoreKV::get_transaction()
{
  return std::make_shared<Changes>(store.parts().engine);
}

int TableStoreKV::submit_transaction(Transaction t)
{
  if (is_read_only)
    return -EROFS;
  const auto& changes = static_cast<Changes&>(*t);
  if (changes.error < 0)
    return changes.error;
  const auto& txn = changes.txn;
  txn->barrier = true;
  store.parts().engine.submit(txn);
  store.parts().engine.drain();
  return 0;
}

int TableStoreKV::get(const std::string& prefix, const std::set<std::string>& keys,
                      std::map<std::string, ceph::buffer::list>* out)
{
  const auto family = family_of(prefix);
  for (const std::string& key : keys) {
    std::string value;
    const auto found =
        family ? store.parts().engine.get(*family, key, &value) : Result<bool>(false);
    if (!found.ok())
      return -found.status().code();
    if (*found)
      (*out)[key].append(value);
  }
  return 0;
}

KeyValueDB::WholeSpaceIterator TableStoreKV::get_wholespace_iterator(IteratorOpts)
{
  return std::make_shared<Rows>(store.parts().engine);
}

uint64_t TableStoreKV::get_estimated_size(std::map<std::string, uint64_t>& extra)
{
  extra["table"] = store.parts().engine.space().table_bytes;
  return extra["table"];
}

void TableStoreKV::compact()
{
  store.compact();
}
