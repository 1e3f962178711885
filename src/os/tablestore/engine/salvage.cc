#include "os/tablestore/engine/salvage.h"

#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/table/engine_rows.h"

namespace tablestore {

namespace {

constexpr size_t erased_bytes_max = 1 << 20;  // at once

using engine_rows::is_ours;

// Of rows in the order of their keys, but for the engine's own, which each commit changes.
class RowsChecksum {
 public:
  void add(Family family, std::string_view key, std::string_view value) {
    if (is_ours(family, key)) return;
    const uint64_t lengths[] = {key.size(), value.size()};
    for (std::string_view part : {std::string_view(reinterpret_cast<const char*>(lengths),
                                                   sizeof(lengths)),
                                  key, value})
      crc_ = crc32c(crc_, part.data(), part.size());
  }
  uint32_t crc() const { return crc_; }

 private:
  uint32_t crc_ = 0;
};

class RowsOfDamage {
 public:
  RowsOfDamage(const SalvageParts& parts,
               const std::function<void(Family family, std::string_view key)>& lost)
      : parts_(parts), lost_(lost) {}
  // The checksum of the rows that are left.
  Result<uint32_t> erase_lost(const DamagedTableFile& file);
  void commit();

 private:
  const SalvageParts& parts_;
  const std::function<void(Family family, std::string_view key)>& lost_;
  std::shared_ptr<Txn> txn_ = std::make_shared<Txn>();
};

Result<uint32_t> RowsOfDamage::erase_lost(const DamagedTableFile& file) {
  RowsChecksum left;
  const auto rows = parts_.table.iterate(file.family, file.first, "", AtDamage::step_over);
  std::string value;
  for (rows->seek_to_first(); rows->valid() && rows->key() <= file.last; rows->next()) {
    const auto found = parts_.table.get(file.family, rows->key(), &value);
    if (found.ok() && *found) left.add(file.family, rows->key(), value);
    if (found.ok()) continue;
    if (found.status().code() != EIO) return found.status();
    const bool ours = is_ours(file.family, rows->key());
    // What is left of ours after write_own_rows() is of containers that were removed.
    if (ours && !rows->key().starts_with(engine_rows::allocation_prefix)) return found.status();
    if (!ours) lost_(file.family, rows->key());
    txn_->erase(file.family, rows->key());
    if (txn_->row_bytes() > erased_bytes_max) commit();
  }
  if (!rows->status().ok()) return rows->status();
  return left.crc();
}

void RowsOfDamage::commit() {
  if (txn_->row_bytes() > 0) parts_.commit(std::exchange(txn_, std::make_shared<Txn>()));
}

// Above all files that there are now.
Status write_own_rows(const SalvageParts& parts) {
  // With each transaction goes the row `applied`; this one has a row that nobody has.
  auto txn = std::make_shared<Txn>();
  txn->erase(Family::super, engine_rows::applied() + " of a salvage");
  parts.commit(std::move(txn));
  // With each checkpoint go log_start and the allocation of what has changed.
  parts.allocator.mark_all_changed();
  return parts.checkpoint();
}

Status check_rewritten(Table& table, const DamagedTableFile& file, uint32_t crc) {
  RowsChecksum found;
  const auto rows = table.iterate(file.family, file.first, "");
  for (rows->seek_to_first(); rows->valid() && rows->key() <= file.last; rows->next())
    found.add(file.family, rows->key(), rows->value());
  if (!rows->status().ok()) return rows->status();
  if (found.crc() == crc) return {};
  return Status(EIO, file.path + ": while what was left of it was written anew, more became "
                                 "unreadable; rows are missing, or are as they were before: the "
                                 "disk is failing, make this OSD anew, or scrub all of it deeply");
}

}  // namespace

Result<std::vector<DamagedTableFile>> salvage(
    const SalvageParts& parts,
    const std::function<void(Family family, std::string_view key)>& lost) {
  const auto found = parts.table.find_damage();
  if (!found.ok() || found->empty()) return found;
  const std::vector<DamagedTableFile>& files = *found;
  if (parts.found)
    if (auto s = parts.found(files); !s.ok()) return s;
  // What is read well from there alone would be in no file that is written anew.
  parts.table.drop_caches();
  if (auto s = write_own_rows(parts); !s.ok()) return s;
  RowsOfDamage rows(parts, lost);
  std::vector<uint32_t> left;
  for (const DamagedTableFile& file : files) {
    const auto crc = rows.erase_lost(file);
    if (!crc.ok()) return crc.status();
    left.push_back(*crc);
    rows.commit();
  }
  if (auto s = parts.checkpoint(); !s.ok()) return s;
  if (auto s = parts.table.rewrite(files); !s.ok()) return s;
  for (size_t i = 0; i < files.size(); ++i)
    if (auto s = check_rewritten(parts.table, files[i], left[i]); !s.ok()) return s;
  return files;
}

}  // namespace tablestore
