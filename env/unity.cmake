# Ceph's own sources several to one compilation, where they allow it.
#
# Most of the time that Ceph takes to build goes into what its headers bring to each file anew.
# CMake can compile several files of a library as one ("unity build"). Ceph's CMake includes this
# from outside (CMAKE_PROJECT_ceph_INCLUDE): no file of Ceph's is changed for it, and a build
# without it, a packager's, makes the same programs. Our own files stay alone: they are what
# changes from one build to the next.

set(TOGETHER osd common-objs common-common-objs common-msg-objs common-auth-objs)
set(BATCH 6)

# Files, below src, that share no compilation with others.
set(ALONE
  # In two libraries that one program links: whoever takes one must not get others with it.
  common/TrackedOp.cc osd/ClassHandler.cc osd/osd_types.cc osdc/Objecter.cc osdc/Striper.cc
  # Names at file scope, or macros, that another file of the library has too.
  auth/cephx/CephxKeyServer.cc common/OutputDataSocket.cc common/numa.cc msg/async/ProtocolV2.cc
  osd/Session.cc
  # Large enough: with others they would keep one processor busy when all else is done.
  osd/OSD.cc osd/PrimaryLogPG.cc
)

# Before each file: what common/dout.h has files define for their messages begins anew, and the
# functions that they define for it have names of their own.
set(BEFORE_EACH "\
#undef dout_subsys
#undef dout_context
#undef dout_prefix
#define dout_prefix *_dout
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define _prefix JOINED(_prefix_, FILE_ID)
#define _prefix_fn JOINED(_prefix_fn_, FILE_ID)")

function(compile_together target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(directory ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${directory})
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/src ${path})
    if(name IN_LIST ALONE)
      set_source_files_properties(${path} TARGET_DIRECTORY ${target}
        PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON
    UNITY_BUILD_BATCH_SIZE ${BATCH}
    UNITY_BUILD_UNIQUE_ID FILE_ID
    UNITY_BUILD_CODE_BEFORE_INCLUDE "${BEFORE_EACH}")
endfunction()

function(compile_all_together)
  foreach(target IN LISTS TOGETHER)
    compile_together(${target})
  endforeach()
endfunction()

cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL compile_all_together)
