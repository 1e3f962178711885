// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/errno.h"
#include "common/safe_io.h"
#include "include/buffer.h"
#include "os/ObjectStore.h"
#include "tools/tablestore/open_label.h"

namespace tablestore_tool {

using namespace tablestore;

namespace {

void require_key(const Options& options)
{
  if (options.key.empty())
    throw Failure(exit_usage, "which key? Give --key NAME");
}

void change_label(Call& call, const std::function<void(Label&)>& change)
{
  LockedStore store(call, StoreDir::Open::use);
  auto label = read_label(store.disk());
  require_ok(label.status());
  change(*label);
  require_ok(write_label(store.disk(), *label));
  call.f.open_object_section("keys");
  for (const auto& [key, value] : label->keys)
    call.f.dump_string(key, value);
  call.f.close_section();
}

/// Keys that are no files of the directory, or another one.
bool is_name_of_file(const std::string& key)
{
  return key != capacity_key && key != "osd_key" && key != "type" && key != "fsid" &&
         key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == key.npos;
}

std::string content_of(const std::string& file)
{
  std::string text, why;
  bufferlist found;
  if (const int r = found.read_file(file.c_str(), &why); r < 0 && r != -ENOENT)
    throw Failure(exit_failed, why);
  text = found.to_str();
  while (text.ends_with('\n'))
    text.pop_back();
  return text;
}

/// All of it or nothing, also after a power cut. Of the owner of the label, whoever runs the tool.
void make_file(const std::string& file, const std::string& text, mode_t mode)
{
  const std::string made = file + ".new";
  ::unlink(made.c_str());
  const int fd = ::open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  int r = fd < 0 ? -errno : 0;
  struct stat label;
  const std::string dir = file.substr(0, file.rfind('/'));
  if (r == 0 && (::stat((dir + "/label").c_str(), &label) != 0 ||
                 ::fchown(fd, label.st_uid, label.st_gid) != 0))
    r = -errno;
  if (r == 0)
    r = safe_write(fd, text.data(), text.size());
  if (r == 0 && ::fsync(fd) != 0)
    r = -errno;
  if (fd >= 0 && ::close(fd) != 0 && r == 0)
    r = -errno;
  if (r == 0 && ::rename(made.c_str(), file.c_str()) != 0)
    r = -errno;
  if (r < 0)
    throw Failure(exit_of(r), "cannot write " + file + ": " + cpp_strerror(r));
}

}  // namespace

Exit set_label_key(Call& call)
{
  require_key(call.options);
  if (!call.options.value)
    throw Failure(exit_usage, "which value? Give --value TEXT");
  if (call.options.key == capacity_key)
    throw Failure(exit_usage, "the key capacity is set by expand and shrink");
  change_label(call, [&](Label& label) { label.keys[call.options.key] = *call.options.value; });
  return exit_done;
}

Exit rm_label_key(Call& call)
{
  require_key(call.options);
  change_label(call, [&](Label& label) {
    if (label.keys.erase(call.options.key) == 0)
      throw Failure(exit_no_store, "the label has no key " + call.options.key);
  });
  return exit_done;
}

/// What is there stays; where it says something else than the label, nothing is made.
Exit prime(Call& call)
{
  LockedStore store(call, StoreDir::Open::create);
  const Label label = read_label_of(call.options.path);
  std::map<std::string, std::string> wanted = {{"type", "tablestore"},
                                               {"fsid", as_text(label.store_uuid)}};
  for (const auto& [key, value] : label.keys) {
    if (is_name_of_file(key))
      wanted[key] = value;
    if (const auto whoami = label.keys.find("whoami");
        key == "osd_key" && whoami != label.keys.end())
      wanted["keyring"] = "[osd." + whoami->second + "]\nkey = " + value;
  }
  std::erase_if(wanted, [&](const auto& entry) {
    const std::string file = call.options.path + "/" + entry.first;
    const std::string there = content_of(file);
    if (there.empty())
      return false;
    if (there != entry.second && entry.first != "keyring")
      throw Failure(exit_failed, file + " says " + there + ", and the label " + entry.second +
                                     ": which of the two is right?");
    return true;
  });
  call.f.open_array_section("made");
  for (const auto& [name, text] : wanted) {
    make_file(call.options.path + "/" + name, text + "\n", name == "keyring" ? 0600 : 0644);
    call.f.dump_string("file", name);
  }
  call.f.close_section();
  require_ok(store.disk().sync_dir(""));
  return exit_done;
}

}  // namespace tablestore_tool
