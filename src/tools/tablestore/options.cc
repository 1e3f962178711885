// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "tools/tablestore/options.h"

#include <iostream>

#include <boost/program_options.hpp>

#include "tools/tablestore/failure.h"
#include "tools/tablestore/verbs.h"

namespace po = boost::program_options;

namespace tablestore_tool {

namespace {

po::options_description describe(Options& o, std::string& size, std::string& value)
{
  po::options_description all("Options");
  auto add = all.add_options();
  add("help,h", "this text");
  add("path", po::value(&o.path), "the directory of the OSD, as /var/lib/ceph/osd/ceph-7");
  add("format", po::value(&o.format), "plain (default), json, or json-pretty");
  add("deep", po::bool_switch(&o.deep), "fsck, repair: read all data, too");
  add("containers", po::bool_switch(&o.containers),
      "compact: empty container files of which little is in use, in place of the table");
  add("max-live-percent", po::value(&o.max_live_percent),
      "compact --containers, shrink: of files of which at most so much is in use (25)");
  add("size", po::value(&size), "expand, shrink: what the store may take, as 200G");
  add("collection", po::value(&o.collection), "list: of this one, as 1.0_head or meta");
  add("object", po::value(&o.object), "dump-onode: its name, as list shows it");
  add("key,k", po::value(&o.key), "set-label-key, rm-label-key: its name");
  add("value,v", po::value(&value), "set-label-key: its value");
  add("limit", po::value(&o.limit), "list, free-dump, log-dump: no more than so many");
  add("yes-i-really-really-mean-it", po::bool_switch(&o.yes), "zap: it cannot be undone");
  return all;
}

void print_verbs(bool that_change)
{
  constexpr size_t columns = 16;
  for (const Verb& verb : verbs) {
    if (verb.changes == that_change)
      std::cout << "  " << verb.name << std::string(columns - verb.name.size(), ' ') << verb.help
                << "\n";
  }
}

void print_help(const po::options_description& described)
{
  std::cout << "ceph-tablestore-tool VERB --path DIR [options]\n\n"
               "Looks at the store of an OSD that is stopped, checks it and mends it.\n\n"
               "Verbs that change nothing on the disk, and work on a read-only mount:\n";
  print_verbs(false);
  std::cout << "\nVerbs that change the store:\n";
  print_verbs(true);
  std::cout << "\n" << described
            << "\nOptions of Ceph are taken as well, as --tablestore_accept_log_loss=true.\n\n"
               "Exit codes: 0 done; 1 errors are left in the store; 2 wrong command line;\n"
               "3 the store is in use; 4 nothing there; 5 the store or the disk fails;\n"
               "6 no space; 130 interrupted.\n"
               "Man page: ceph-tablestore-tool(8).\n";
}

}  // namespace

uint64_t parse_bytes(const std::string& text)
{
  size_t digits = 0;
  uint64_t bytes = 0;
  try {
    bytes = std::stoull(text, &digits);
  } catch (const std::exception&) {
    throw Failure(exit_usage, "not a size: " + text + "; it is given as 200G");
  }
  const std::string unit = text.substr(digits);
  const std::string units = "KMGTP";
  if (unit.empty())
    return bytes;
  const size_t power = units.find(unit.front());
  const bool known = unit.size() == 1 || unit.substr(1) == "i" || unit.substr(1) == "iB" ||
                     unit.substr(1) == "B";
  if (power == units.npos || !known || text.front() == '-' ||
      bytes > (UINT64_MAX >> (10 * (power + 1))))
    throw Failure(exit_usage, "not a size: " + text + "; it is given as 200G");
  return bytes << (10 * (power + 1));
}

std::optional<Options> parse_options(int argc, char** argv)
{
  Options o;
  std::string size, value;
  const po::options_description described = describe(o, size, value);
  po::options_description with_verb;
  with_verb.add(described).add_options()("verb", po::value(&o.verb));
  po::positional_options_description positional;
  positional.add("verb", 1);
  po::variables_map found;
  try {
    const auto parsed = po::command_line_parser(argc, argv)
                            .options(with_verb)
                            .positional(positional)
                            .allow_unregistered()
                            .style(po::command_line_style::default_style &
                                   ~po::command_line_style::allow_guessing)
                            .run();
    o.of_ceph = po::collect_unrecognized(parsed.options, po::exclude_positional);
    po::store(parsed, found);
    if (found.count("help") || argc < 2) {
      print_help(described);
      return std::nullopt;
    }
    po::notify(found);
  } catch (const po::error& e) {
    throw Failure(exit_usage, std::string(e.what()) + "; see --help");
  }
  if (!find_verb(o.verb))
    throw Failure(exit_usage, o.verb.empty() ? "which verb? See --help"
                                             : "there is no verb " + o.verb + "; see --help");
  if (o.path.empty())
    throw Failure(exit_usage, "which store? Give --path DIR, as /var/lib/ceph/osd/ceph-7");
  if (o.format != "plain" && o.format != "json" && o.format != "json-pretty")
    throw Failure(exit_usage, "--format is plain, json, or json-pretty, not " + o.format);
  if (o.max_live_percent < 1 || o.max_live_percent > 100)
    throw Failure(exit_usage, "--max-live-percent is from 1 to 100");
  if (found.count("size"))
    o.size = parse_bytes(size);
  if (found.count("value"))
    o.value = value;
  return o;
}

}  // namespace tablestore_tool
