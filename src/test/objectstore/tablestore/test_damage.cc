// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Bytes that go bad on the disk: an error for who reads them, never wrong data, and nobody else is
// harmed.
#include <filesystem>

#include "test/objectstore/tablestore/damage_fixture.h"

using namespace tablestore_test;
namespace fs = std::filesystem;

class StoreDamage : public DamageFixture {};

TEST_F(StoreDamage, CleanStoreHasNoErrors)
{
  write(ch, victim, 0, content(1, 5 * MiB));
  write(ch, other, 0, content(2, 100));
  Transaction t;
  t.clone(ch->cid, victim, object("clone", 1, 0x11));
  t.remove(ch->cid, other);
  queue(ch, std::move(t));
  write(ch, victim, 100000, content(3, 4096));
  EXPECT_EQ(0, fsck_offline(false));
  EXPECT_EQ(0, fsck_offline(true));
}

TEST_F(StoreDamage, FlippedBitIsAnErrorOfItsBlockOnly)
{
  write(ch, victim, 0, content(1, size));
  write(ch, other, 0, content(2, size));
  damage_offline([&] { flip_bit(find_content(1, 20000)); });
  EXPECT_EQ(-EIO, read_error(victim));
  EXPECT_EQ(-EIO, read_error(victim, 20000, 1));
  EXPECT_EQ(-EIO, read_error(victim, 16 * KiB + 1, 10)) << "the same block";
  EXPECT_TRUE(same(content(1, 16 * KiB), read(ch, victim, 0, 16 * KiB)));
  EXPECT_TRUE(same(content(1, size - 20 * KiB - 480, 20 * KiB + 480),
                   read(ch, victim, 20 * KiB + 480, size)));
  EXPECT_TRUE(same(content(2, size), read(ch, other)));
  interval_set<uint64_t> pieces;
  pieces.insert(0, 100);
  pieces.insert(20000, 100);
  bufferlist bl;
  EXPECT_EQ(-EIO, store->readv(ch, victim, pieces, bl));
  // The error is the same the second time: nothing bad got into a cache.
  EXPECT_EQ(-EIO, read_error(victim));
}

TEST_F(StoreDamage, DeepFsckReportsAFlippedBitAndShallowDoesNotLook)
{
  write(ch, victim, 0, content(1, size));
  damage_offline([&] { flip_bit(find_content(1, 0)); });
  EXPECT_EQ(0, fsck_offline(false));
  EXPECT_GT(fsck_offline(true), 0);
  // Put right again.
  damage_offline([&] {
    Place place = find(content(1, 512, 4096).to_str());
    flip_bit({place.path, place.offset - 4096});
  });
  EXPECT_EQ(0, fsck_offline(true));
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
}

TEST_F(StoreDamage, DamagedObjectIsRepairedByWritingItAnew)
{
  write(ch, victim, 0, content(1, size));
  damage_offline([&] { flip_bit(find_content(1, 5000)); });
  EXPECT_EQ(-EIO, read_error(victim));
  // As the OSD does from a replica: the whole object.
  Transaction t;
  bufferlist good = content(1, size);
  t.remove(ch->cid, victim);
  t.write(ch->cid, victim, 0, size, good);
  queue(ch, std::move(t));
  EXPECT_TRUE(same(good, read(ch, victim)));
  EXPECT_EQ(0, fsck_offline(true));
}

TEST_F(StoreDamage, DamagedObjectCanBeRemoved)
{
  write(ch, victim, 0, content(1, size));
  damage_offline([&] { flip_bit(find_content(1, 5000)); });
  remove(ch, victim);
  EXPECT_TRUE(list(ch).empty());
  EXPECT_EQ(0, fsck_offline(true));
}

TEST_F(StoreDamage, AlignedOverwriteOfADamagedBlockHealsIt)
{
  write(ch, victim, 0, content(1, size));
  damage_offline([&] { flip_bit(find_content(1, 8 * KiB + 5)); });
  EXPECT_EQ(-EIO, read_error(victim));
  write(ch, victim, 8 * KiB, content(1, 4 * KiB, 8 * KiB));
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
  EXPECT_EQ(0, fsck_offline(true));
}

TEST_F(StoreDamage, EveryUserOfASharedDamagedBlockGetsTheError)
{
  const ghobject_t copy = object("copy", 1, 0x11);
  write(ch, victim, 0, content(1, size));
  Transaction t;
  t.clone(ch->cid, victim, copy);
  queue(ch, std::move(t));
  damage_offline([&] { flip_bit(find_content(1, 30000)); });
  EXPECT_EQ(-EIO, read_error(victim));
  EXPECT_EQ(-EIO, read_error(copy));
  EXPECT_TRUE(same(content(1, 16 * KiB), read(ch, copy, 0, 16 * KiB)));
}

TEST_F(StoreDamage, SwappedBlocksAreFound)
{
  // Each block is good, but not where it belongs.
  write(ch, victim, 0, content(1, size));
  damage_offline([&] {
    const Place first = find(content(1, 4096, 8192).to_str());
    const Place second = find(content(1, 4096, 40960).to_str());
    overwrite(first.path, first.offset, content(1, 4096, 40960).to_str());
    overwrite(second.path, second.offset, content(1, 4096, 8192).to_str());
  });
  EXPECT_EQ(-EIO, read_error(victim, 8192, 100));
  EXPECT_EQ(-EIO, read_error(victim, 40960, 100));
  EXPECT_TRUE(same(content(1, 8192), read(ch, victim, 0, 8192)));
  EXPECT_GT(fsck_offline(true), 0);
}

TEST_F(StoreDamage, StaleBlockIsFound)
{
  // The disk lost a write: what was there before is good data, of another time.
  write(ch, victim, 0, content(1, size));
  wait_durable(ch);
  write(ch, victim, 0, content(2, size));
  damage_offline([&] {
    const Place place = find(content(2, 4096, 12288).to_str());
    overwrite(place.path, place.offset, content(1, 4096, 12288).to_str());
  });
  EXPECT_EQ(-EIO, read_error(victim, 12288, 4096));
}

TEST_F(StoreDamage, ZeroedContainerFileHarmsOnlyReadsOfIt)
{
  write(ch, victim, 0, content(1, size));
  write(ch, other, 0, content(2, 100));
  damage_offline([&] {
    const Place place = find_content(1, 0);
    overwrite(place.path, place.offset, std::string(size, '\0'));
  });
  EXPECT_EQ(-EIO, read_error(victim));
  EXPECT_TRUE(same(content(2, 100), read(ch, other)));
  EXPECT_EQ(int(size), int(size_of(ch, victim)));
  write(ch, object("new", 1, 0x13), 0, content(3, 3 * MiB));
  EXPECT_TRUE(same(content(3, 3 * MiB), read(ch, object("new", 1, 0x13))));
}

TEST_F(StoreDamage, MissingContainerFileIsRefusedUntilItIsBack)
{
  write(ch, victim, 0, content(1, size));
  close();
  const std::string missing = find_content(1, 0).path;
  fs::rename(missing, dir + "/aside");
  expect_mount_refused();
  fs::rename(dir + "/aside", missing);
  open();
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
}

TEST_F(StoreDamage, ShortenedContainerFileIsRefusedUntilItIsWhole)
{
  write(ch, victim, 0, content(1, size));
  close();
  const std::string path = find_content(1, 0).path;
  fs::copy_file(path, dir + "/aside");
  fs::resize_file(path, 4096);
  expect_mount_refused();
  fs::rename(dir + "/aside", path);
  open();
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
}

TEST_F(StoreDamage, OneDamagedLabelCopyIsEnoughAndIsMended)
{
  write(ch, victim, 0, content(1, size));
  for (uint64_t copy : {0, 1, 0}) {
    close();
    overwrite(dir + "/label", copy * 4096 + 100, "damaged");
    ASSERT_NO_FATAL_FAILURE(open());
    EXPECT_TRUE(same(content(1, size), read(ch, victim)));
  }
}

TEST_F(StoreDamage, TwoDamagedLabelCopiesAreRefused)
{
  close();
  expect_clean = false;
  overwrite(dir + "/label", 100, "damaged");
  overwrite(dir + "/label", 4196, "damaged");
  expect_mount_refused();
}

// As Ceph's own tests inject them, by BlueStore's rules.
TEST_F(StoreDamage, InjectedErrorsAreInForceWhileTheOptionIsOn)
{
  write(ch, victim, 0, content(1, size));
  write(ch, other, 0, content(2, size));
  Transaction t;
  bufferlist value_of_name = to_bl("value");
  t.setattr(ch->cid, victim, "name", value_of_name);
  queue(ch, std::move(t));
  store->inject_data_error(victim);
  store->inject_mdata_error(other);
  struct stat st;
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
  EXPECT_EQ(0, store->stat(ch, other, &st, true));
  set("tablestore_debug_inject_read_err", "true");
  EXPECT_EQ(-EIO, read_error(victim));
  EXPECT_EQ("value", attr(ch, victim, "name"));
  EXPECT_EQ(-EIO, store->stat(ch, other, &st, true));
  ceph::buffer::ptr value;
  EXPECT_EQ(-ENODATA, store->getattr(ch, other, "name", value));
  std::map<std::string, ceph::buffer::ptr, std::less<>> all;
  EXPECT_EQ(-EIO, store->getattrs(ch, other, all));
  EXPECT_TRUE(store->exists(ch, other));
  EXPECT_TRUE(same(content(2, size), read(ch, other)));
  set("tablestore_debug_inject_read_err", "false");
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
  EXPECT_EQ(0, store->stat(ch, other, &st, true));
}

TEST_F(StoreDamage, InjectedErrorsAreForgottenWithTheObject)
{
  set("tablestore_debug_inject_read_err", "true");
  write(ch, victim, 0, content(1, size));
  store->inject_data_error(victim);
  store->inject_mdata_error(victim);
  EXPECT_EQ(-EIO, read_error(victim));
  // As recovery replaces an object.
  Transaction t;
  bufferlist bl = content(3, size);
  t.remove(ch->cid, victim);
  t.write(ch->cid, victim, 0, size, bl);
  queue(ch, std::move(t));
  EXPECT_TRUE(same(content(3, size), read(ch, victim)));
  EXPECT_EQ(size, size_of(ch, victim));
}

// As the OSD does it: there is no answer to a transaction but that it is done.
TEST_F(StoreDamage, APartialOverwriteOfADamagedBlockDoesNotEndTheStore)
{
  const ghobject_t copy = object("copy", 1, 0x11);
  write(ch, victim, 0, content(1, size));
  damage_offline([&] { flip_bit(find_content(1, 20000)); });
  write(ch, victim, 20000, content(2, 100));
  EXPECT_EQ(-EIO, read_error(victim, 20000, 100));
  EXPECT_TRUE(same(content(1, 16 * KiB), read(ch, victim, 0, 16 * KiB)));
  Transaction t;
  t.clone(ch->cid, victim, copy);
  queue(ch, std::move(t));
  remount({&ch});
  EXPECT_EQ(-EIO, read_error(victim));
  EXPECT_EQ(-EIO, read_error(copy));
  EXPECT_GT(fsck_offline(true), 0) << "it is said";
  EXPECT_EQ(0, fsck_offline(false));
  write(ch, victim, 16 * KiB, content(1, 4 * KiB, 16 * KiB));
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
  EXPECT_EQ(-EIO, read_error(copy));
  remove(ch, copy);
  EXPECT_EQ(0, fsck_offline(true));
}
