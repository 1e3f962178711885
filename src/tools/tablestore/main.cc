// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// ceph-tablestore-tool: what an operator does with the store of an OSD that is stopped.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "common/ceph_argparse.h"
#include "common/ceph_context.h"
#include "common/ceph_json.h"
#include "common/config.h"
#include "global/global_context.h"
#include "global/global_init.h"
#include "tools/tablestore/captured_log.h"
#include "tools/tablestore/plain_formatter.h"
#include "tools/tablestore/verbs.h"

using namespace tablestore_tool;

namespace {

constexpr const char* program = "ceph-tablestore-tool: ";

/// What its OSD is started with, as far as the directory tells: its name, and a capacity that was
/// given to ceph-volume.
std::vector<std::string> osd_options(const std::string& path)
{
  std::vector<std::string> found;
  std::ifstream in(path + "/whoami");
  std::string number;
  in >> number;
  if (!number.empty() && number.find_first_not_of("0123456789") == number.npos)
    found.push_back("--name=osd." + number);
  const std::string settings = path + "/ceph-volume.json";
  JSONParser json;
  uint64_t capacity = 0;
  if (std::filesystem::exists(settings)) {
    try {
      if (!json.parse(settings.c_str()))
        throw JSONDecoder::err("it cannot be read, or is not JSON");
      JSONDecoder::decode_json("capacity", capacity, &json);
    } catch (const JSONDecoder::err& e) {
      std::cerr << program << settings << ": " << e.what() << ". A capacity that was given to "
                << "ceph-volume is not known: give it again, with 'ceph-volume tablestore activate "
                << "--capacity'" << std::endl;
    }
  }
  if (capacity > 0)
    found.push_back("--tablestore_capacity=" + std::to_string(capacity));
  return found;
}

/// Of an OSD: its section of ceph.conf has what the store was made with. No monitor is asked.
boost::intrusive_ptr<CephContext> make_context(const Options& options, const CapturedLog& log)
{
  // In this order: what the OSD's own configuration has is overruled, what the caller gives counts.
  std::vector<std::string> words = osd_options(options.path);
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
           {"log_to_stderr", "false"},
           {"err_to_stderr", "false"},
           {"log_to_file", "true"},
           {"log_file", log.path()},
           {"log_max_recent", "1"},
           {"admin_socket", ""},
           {"debug_tablestore", "0/0"},
           {"tablestore_stock_size", "0"},   // it would be made while `trim` gives it back
           // Nor is free space given back but by what is asked: an OSD may be to keep it.
           {"tablestore_punch_rate", "0"},
       })
    words.push_back("--" + std::string(name) + "=" + value);
  words.insert(words.end(), options.of_ceph.begin(), options.of_ceph.end());
  std::vector<const char*> args;
  for (const std::string& word : words)
    args.push_back(word.c_str());
  // Where there is none, nobody needs to be told.
  const bool has_file = std::filesystem::exists("/etc/ceph/ceph.conf");
  auto cct = global_init(
      nullptr, args, CEPH_ENTITY_TYPE_OSD, CODE_ENVIRONMENT_UTILITY,
      CINIT_FLAG_NO_MON_CONFIG | (has_file ? 0 : CINIT_FLAG_NO_DEFAULT_CONFIG_FILE));
  common_init_finish(g_ceph_context);
  if (!args.empty())
    throw Failure(exit_usage, std::string("unknown: ") + args.front() + "; see --help");
  return cct;
}

void require_store(const Options& options)
{
  std::ifstream in(options.path + "/type");
  std::string type;
  in >> type;
  if (type != "tablestore" && !std::ifstream(options.path + "/label"))
    throw Failure(exit_no_store, options.path + " holds no TableStore" +
                                     (type.empty() ? "" : ", its file \"type\" says " + type));
}

int run(const Options& options, CephContext* cct)
{
  const bool for_people = options.format == "plain";
  std::unique_ptr<ceph::Formatter> f;
  if (for_people)
    f = std::make_unique<PlainFormatter>();
  else
    f.reset(ceph::Formatter::create(options.format));
  Progress progress(for_people);
  Call call{cct, options, *f, progress, [&] { f->flush(std::cout); }};
  f->open_object_section("ceph-tablestore-tool");
  const Exit code = find_verb(options.verb)->run(call);
  f->close_section();
  f->flush(std::cout);
  if (!for_people)
    std::cout << "\n";
  std::cout.flush();
  return std::cout ? code : exit_failed;
}

}  // namespace

int main(int argc, char** argv)
{
  boost::intrusive_ptr<CephContext> cct;
  const CapturedLog log;
  try {
    const auto options = parse_options(argc, argv);
    if (!options)
      return exit_done;
    cct = make_context(*options, log);
    require_store(*options);
    end_on_interrupts();
    return run(*options, cct.get());
  } catch (const Failure& e) {
    const bool in_the_log = cct && e.reason == Failure::Reason::is_in_the_log;
    const std::string why = in_the_log ? log.last_error(cct.get()) : "";
    std::cerr << program << e.what() << (why.empty() ? "" : ": " + why) << std::endl;
    return e.code;
  } catch (const std::exception& e) {
    std::cerr << program << e.what() << std::endl;
    return exit_failed;
  }
}
