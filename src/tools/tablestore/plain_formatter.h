// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdarg>
#include <sstream>
#include <string>
#include <vector>

#include "common/Formatter.h"

namespace tablestore_tool {

/// For people: a line each, "name: value", what is inside of something indented. What is in an
/// array begins with "- ".
class PlainFormatter : public ceph::Formatter {
 public:
  void enable_line_break() override {}
  void flush(std::ostream& os) override;
  void reset() override;
  void output_header() override {}
  void output_footer() override {}
  void set_status(int, const char*) override {}
  void open_array_section(std::string_view name) override { open(name, true); }
  void open_array_section_in_ns(std::string_view name, const char*) override { open(name, true); }
  void open_object_section(std::string_view name) override { open(name, false); }
  void open_object_section_in_ns(std::string_view name, const char*) override { open(name, false); }
  void close_section() override;
  void dump_null(std::string_view name) override { put(name, "none"); }
  void dump_unsigned(std::string_view name, uint64_t u) override { put(name, std::to_string(u)); }
  void dump_int(std::string_view name, int64_t s) override { put(name, std::to_string(s)); }
  void dump_float(std::string_view name, double d) override;
  void dump_bool(std::string_view name, bool b) override { put(name, b ? "yes" : "no"); }
  void dump_string(std::string_view name, std::string_view s) override;
  std::ostream& dump_stream(std::string_view name) override;
  void dump_format_va(std::string_view name, const char* ns, bool quoted, const char* fmt,
                      va_list ap) override;
  int get_len() const override { return int(text.size()); }
  void write_raw_data(const char* data) override { text += data; }

 private:
  struct Section {
    bool is_array;
    std::string indent;   ///< of the lines in it
    bool begins_element;  ///< the next line is the first one of an element of an array
    bool is_empty;
  };
  void open(std::string_view name, bool is_array);
  void put(std::string_view name, std::string_view value);
  void line(std::string_view content);
  void end_stream();

  std::string text;
  std::vector<Section> sections;
  std::ostringstream stream;
  std::string stream_name;
  bool in_stream = false;
};

}  // namespace tablestore_tool
