// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "tools/tablestore/plain_formatter.h"

#include <cstdio>
#include <ostream>

#include "include/ceph_assert.h"

namespace tablestore_tool {

void PlainFormatter::flush(std::ostream& os)
{
  end_stream();
  os << text;
  text.clear();
}

void PlainFormatter::reset()
{
  text.clear();
  sections.clear();
  in_stream = false;
}

void PlainFormatter::open(std::string_view name, bool is_array)
{
  end_stream();
  if (sections.empty()) {
    sections.push_back({is_array, "", false, true});
    return;
  }
  const bool is_element = sections.back().is_array;
  if (!is_element)
    line(std::string(name) + ":");
  sections.back().is_empty = false;
  sections.push_back({is_array, sections.back().indent + "  ", is_element, true});
}

void PlainFormatter::close_section()
{
  end_stream();
  ceph_assert(!sections.empty());
  const bool is_empty = sections.back().is_empty;
  const bool is_titled = sections.size() > 1 && !sections[sections.size() - 2].is_array;
  sections.pop_back();
  if (is_empty && is_titled && text.ends_with(":\n"))
    text.replace(text.size() - 1, 1, " none\n");
}

void PlainFormatter::line(std::string_view content)
{
  ceph_assert(!sections.empty());
  Section& in = sections.back();
  in.is_empty = false;
  if (in.begins_element)
    text += in.indent.substr(2) + "- ";
  else
    text += in.indent + (in.is_array ? "- " : "");
  in.begins_element = false;
  text += content;
  text += '\n';
}

void PlainFormatter::put(std::string_view name, std::string_view value)
{
  end_stream();
  if (sections.back().is_array)
    line(value);
  else
    line(std::string(name) + ": " + std::string(value));
}

void PlainFormatter::dump_float(std::string_view name, double d)
{
  char number[40];
  std::snprintf(number, sizeof(number), "%.3f", d);
  put(name, number);
}

void PlainFormatter::dump_string(std::string_view name, std::string_view s) { put(name, s); }

std::ostream& PlainFormatter::dump_stream(std::string_view name)
{
  end_stream();
  in_stream = true;
  stream_name = name;
  stream.str("");
  return stream;
}

void PlainFormatter::end_stream()
{
  if (!in_stream)
    return;
  in_stream = false;
  put(stream_name, stream.str());
}

void PlainFormatter::dump_format_va(std::string_view name, const char*, bool, const char* fmt,
                                    va_list ap)
{
  char value[1024];
  std::vsnprintf(value, sizeof(value), fmt, ap);
  put(name, value);
}

}  // namespace tablestore_tool
