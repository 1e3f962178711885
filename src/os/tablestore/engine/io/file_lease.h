// Does anybody else have a file open?
#pragma once

namespace tablestore {

// fcntl(2), "Leases": while a write lease is held nobody else has the file open, and whoever opens
// it waits in open() until the lease is given back, or for /proc/sys/fs/lease-break-time (45 s).
// Only the owner of the file and CAP_LEASE can have one. By one thread at a time.
class FileLease {
 public:
  explicit FileLease(int fd) : fd_(fd) {}
  bool held() const { return held_; }
  // 0 or an errno. EAGAIN: somebody else has the file open; any other: there are no leases here.
  int take();
  // Somebody waits for the held lease, or no longer: the kernel's patience has an end.
  bool is_wanted() const;
  void give_back();

 private:
  int fd_;
  bool held_ = false;
};

}  // namespace tablestore
