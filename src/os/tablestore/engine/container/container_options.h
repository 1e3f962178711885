// What the containers of one store are to be.
#pragma once

#include <cstdint>

namespace tablestore {

struct ContainerOptions {
  uint64_t container_bytes = 64 << 20;   // size of every container file, from the label; a multiple
                                         // of 4 MiB
  uint64_t capacity_bytes = 0;           // containers and the rest of the store never take more
                                         // in sum; 0 = no cap but the file system
  unsigned largest_prepared_class = 4;   // slots up to 64 KiB are written ahead of use
  uint64_t prepare_ahead_bytes = 64 << 20;       // keep so much prepared and free per class in use
  uint64_t prepare_bytes_per_second = 1 << 30;   // at most (PreparePace); 0: nothing is prepared
  uint64_t stock_bytes = 0;                      // keep so much in whole containers, written while
                                                 // the store is idle; at most an eighth of all
  uint64_t punch_bytes_per_second = 100 << 20;   // 0: no space is returned
  // A container in which nothing was written during so many idle shrink steps may be removed or
  // punched.
  uint64_t quiet_steps = 60;
  // What is given back only to the rest of the store: while containers have no more than this in
  // sum, none is removed or punched unless that lacks space.
  uint64_t provision_bytes = 0;
  uint64_t last_resort_bytes = 0;        // kept free for reserve_at_last()
  unsigned open_threads = 1;             // that open files at the start
};

}  // namespace tablestore
