// The release of TableStore that this is: the one place. Packages, `ceph-osd --version`, the label
// and `ceph osd metadata` take it from here. Plain C++ without an include: Ceph's common/version.cc
// and packaging/ read this file, too.
#pragma once

#define TABLESTORE_RELEASE_MAJOR 0
#define TABLESTORE_RELEASE_MINOR 1

#define TABLESTORE_QUOTED(x) #x
#define TABLESTORE_RELEASE_TEXT(major, minor) TABLESTORE_QUOTED(major) "." TABLESTORE_QUOTED(minor)
#define TABLESTORE_RELEASE \
  TABLESTORE_RELEASE_TEXT(TABLESTORE_RELEASE_MAJOR, TABLESTORE_RELEASE_MINOR)
