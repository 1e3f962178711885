// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "tools/tablestore/verbs.h"

namespace tablestore_tool {

namespace {

Exit check(Call& call, bool deep, bool for_repair)
{
  using namespace std::chrono;
  refuse_in_use(call, for_repair ? Mount::For::use : Mount::For::reading);
  std::vector<std::string> findings;
  const tablestore::CheckOptions options{
      .deep = deep,
      .repair = for_repair,
      .told = [&](const std::string& finding) { findings.push_back(finding); },
      .goes_on = [&](uint64_t done, uint64_t total) { return call.progress.advance(done, total); },
  };
  TableStore store(call.cct, call.options.path);
  tablestore::CheckResult result;
  const auto began = steady_clock::now();
  call.progress.begin(call.options.verb);
  const int r = store.check(options, &result);
  call.progress.end();
  if (r < 0 && r != -ECANCELED && findings.empty())
    require(r, "cannot check the store in " + call.options.path);
  ceph::Formatter& f = call.f;
  f.dump_string("path", call.options.path);
  f.dump_bool("deep", deep);
  f.dump_bool("repair", for_repair);
  f.dump_bool("complete", r >= 0);
  f.dump_float("seconds", duration<double>(steady_clock::now() - began).count());
  f.dump_unsigned("objects", result.objects);
  f.dump_unsigned("errors", result.errors);
  f.dump_unsigned("repaired", result.repaired);
  f.dump_unsigned("left", result.errors - result.repaired);
  f.dump_unsigned("memory_bytes", result.memory_bytes);
  f.open_array_section("findings");
  for (const std::string& finding : findings)
    f.dump_string("finding", finding);
  f.close_section();
  f.open_object_section("losses");
  for (const auto& [name, line] : result.losses)
    f.dump_string(name, line);
  f.close_section();
  if (r < 0 && r != -ECANCELED) {
    // What it has found until then: of what a repair gave up nobody else knows any more.
    f.close_section();
    call.flush();
    require(r, "cannot check the store in " + call.options.path);
  }
  if (r < 0)
    return exit_interrupted;
  return r > 0 || (!result.losses.empty() && !for_repair) ? exit_errors : exit_done;
}

}  // namespace

Exit fsck(Call& call) { return check(call, call.options.deep, false); }
Exit repair(Call& call) { return check(call, call.options.deep, true); }
Exit quick_fix(Call& call) { return check(call, false, true); }

}  // namespace tablestore_tool
