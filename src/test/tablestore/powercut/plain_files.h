// What a file system keeps by itself: threads that write to files of their own and flush them. The
// control to everything else here: what is lost from these, no store can keep.
#pragma once

#include <string>

namespace tablestore::powercut {

// Exit statuses of processes, as in life.h. `report_fd`: a LifeReport, whose sequences are threads.
int make_plain_files(const std::string& dir, int report_fd);
int live_on_plain_files(const std::string& dir, int report_fd);

}  // namespace tablestore::powercut
