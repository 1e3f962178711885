// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/usage.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/Formatter.h"
#include "test/objectstore/tablestore/bench/flush.h"

namespace fs = std::filesystem;

namespace store_bench {

namespace {

constexpr uint64_t sector_bytes = 512;   // the unit of /sys/.../stat, whatever the disk's is

std::string content_of(const std::string& path)
{
  std::ifstream in(path);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

/// "name: value" lines; 0 where the name is missing.
uint64_t field_of(const std::string& text, const std::string& name)
{
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":"))
      return std::stoull(line.substr(name.size() + 1));
  }
  return 0;
}

double seconds(const timeval& t)
{
  return t.tv_sec + t.tv_usec / 1e6;
}

void add_process(Usage& u)
{
  rusage r = {};
  ::getrusage(RUSAGE_SELF, &r);
  u.user_seconds = seconds(r.ru_utime);
  u.system_seconds = seconds(r.ru_stime);
  u.context_switches = r.ru_nvcsw + r.ru_nivcsw;
  const std::string io = content_of("/proc/self/io");
  u.write_syscalls = field_of(io, "syscw");
  u.read_bytes = field_of(io, "read_bytes");
  u.write_bytes = field_of(io, "write_bytes");
  u.flushes = flushes_passed_on();
  u.imitated_flushes = flushes_imitated();
}

void add_disk(Usage& u, const std::string& stat_file)
{
  if (stat_file.empty())
    return;
  // reads merged sectors ms, writes merged sectors ms, 3 of queueing, discards merged sectors ms,
  // flushes ms
  uint64_t v[17] = {};
  std::istringstream in(content_of(stat_file));
  for (uint64_t& each : v)
    in >> each;
  u.disk_reads = v[0];
  u.disk_read_bytes = v[2] * sector_bytes;
  u.disk_writes = v[4];
  u.disk_write_bytes = v[6] * sector_bytes;
  u.disk_discarded_bytes = v[13] * sector_bytes;
  u.disk_flushes = v[15];
}

void add_machine(Usage& u)
{
  // cpu user nice system idle iowait irq softirq steal
  std::istringstream in(content_of("/proc/stat"));
  std::string cpu;
  uint64_t v[8] = {};
  in >> cpu;
  for (uint64_t& each : v)
    in >> each;
  const double tick = 1.0 / ::sysconf(_SC_CLK_TCK);
  u.machine_busy_seconds = double(v[0] + v[1] + v[2] + v[5] + v[6]) * tick;
  u.machine_stolen_seconds = double(v[7]) * tick;
}

}  // namespace

Usage Usage::operator-(const Usage& e) const
{
  Usage d;
  d.user_seconds = user_seconds - e.user_seconds;
  d.system_seconds = system_seconds - e.system_seconds;
  d.context_switches = context_switches - e.context_switches;
  d.write_syscalls = write_syscalls - e.write_syscalls;
  d.read_bytes = read_bytes - e.read_bytes;
  d.write_bytes = write_bytes - e.write_bytes;
  d.flushes = flushes - e.flushes;
  d.imitated_flushes = imitated_flushes - e.imitated_flushes;
  d.disk_reads = disk_reads - e.disk_reads;
  d.disk_read_bytes = disk_read_bytes - e.disk_read_bytes;
  d.disk_writes = disk_writes - e.disk_writes;
  d.disk_write_bytes = disk_write_bytes - e.disk_write_bytes;
  d.disk_flushes = disk_flushes - e.disk_flushes;
  d.disk_discarded_bytes = disk_discarded_bytes - e.disk_discarded_bytes;
  d.machine_busy_seconds = machine_busy_seconds - e.machine_busy_seconds;
  d.machine_stolen_seconds = machine_stolen_seconds - e.machine_stolen_seconds;
  return d;
}

void Usage::dump(ceph::Formatter& f) const
{
  f.dump_float("user_seconds", user_seconds);
  f.dump_float("system_seconds", system_seconds);
  f.dump_unsigned("context_switches", context_switches);
  f.dump_unsigned("write_syscalls", write_syscalls);
  f.dump_unsigned("read_bytes", read_bytes);
  f.dump_unsigned("write_bytes", write_bytes);
  f.dump_unsigned("flushes", flushes);
  f.dump_unsigned("imitated_flushes", imitated_flushes);
  f.dump_unsigned("disk_reads", disk_reads);
  f.dump_unsigned("disk_read_bytes", disk_read_bytes);
  f.dump_unsigned("disk_writes", disk_writes);
  f.dump_unsigned("disk_write_bytes", disk_write_bytes);
  f.dump_unsigned("disk_flushes", disk_flushes);
  f.dump_unsigned("disk_discarded_bytes", disk_discarded_bytes);
  f.dump_float("machine_busy_seconds", machine_busy_seconds);
  f.dump_float("machine_stolen_seconds", machine_stolen_seconds);
}

UsageMeter::UsageMeter(const std::string& dir)
{
  struct stat block = {}, st = {};
  if (::stat(dir.c_str(), &st) < 0)
    return;
  const bool on_device = ::stat((dir + "/block").c_str(), &block) == 0 && S_ISBLK(block.st_mode);
  const dev_t number = on_device ? block.st_rdev : st.st_dev;
  const std::string link =
    "/sys/dev/block/" + std::to_string(major(number)) + ":" + std::to_string(minor(number));
  std::error_code missing;
  const fs::path device = fs::canonical(link, missing);
  if (missing)
    return;
  disk_stat = device / "stat";
  disk_name = device.filename();
}

Usage UsageMeter::now() const
{
  Usage u;
  add_process(u);
  add_disk(u, disk_stat);
  add_machine(u);
  return u;
}

uint64_t peak_memory_bytes()
{
  return field_of(content_of("/proc/self/status"), "VmHWM") << 10;
}

void reset_peak_memory()
{
  std::ofstream("/proc/self/clear_refs") << "5";
}

std::string load_average()
{
  std::istringstream in(content_of("/proc/loadavg"));
  std::string one, five, fifteen;
  in >> one >> five >> fifteen;
  return one + " " + five + " " + fifteen;
}

uint64_t directory_bytes(const std::string& dir)
{
  uint64_t bytes = 0;
  std::error_code gone;   // files come and go meanwhile
  for (auto p = fs::recursive_directory_iterator(dir, gone);
       p != fs::recursive_directory_iterator(); p.increment(gone)) {
    struct stat st = {};
    if (::lstat(p->path().c_str(), &st) == 0)
      bytes += uint64_t(st.st_blocks) * sector_bytes;
  }
  return bytes;
}

}  // namespace store_bench
