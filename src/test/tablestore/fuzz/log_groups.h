// Makes damaged log groups sound again where that is wanted, so that what lies behind their checks
// is reached.
#pragma once

#include <cstring>
#include <span>

#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/format/log_group.h"
#include "os/tablestore/engine/log/log_reader.h"

namespace tablestore::fuzz {

inline constexpr StoreUuid uuid = {'f', 'u', 'z', 'z', 'e', 'd', ' ', 's', 't', 'o', 'r', 'e'};

inline void make_crc_right(LogGroupHeader& header, std::span<const std::byte> payload) {
  const uint32_t crc = crc32c(0, &header, offsetof(LogGroupHeader, crc));
  header.crc = crc32c(crc, payload.data(), payload.size());
}

// What of a group is mended: bits of the header's `reserved`, which means nothing to the engine.
enum Mend : uint32_t { mend_place = 1, mend_chain = 2, mend_crc = 4, mend_all = 7 };

// Goes over a log from `start` on, as a reader does, and mends each group as its header asks, and
// `always`. `log` is the ring's content; groups may wrap around its end.
inline void mend_log(std::span<std::byte> log, const LogPosition& start, uint32_t always = 0) {
  LogPosition at = start;
  auto copy = [&](uint64_t position, std::span<std::byte> bytes, bool out) {
    for (size_t i = 0; i < bytes.size();) {
      const uint64_t from = (position + i) % log.size();
      const size_t piece = std::min<size_t>(bytes.size() - i, log.size() - from);
      if (out)
        std::memcpy(bytes.data() + i, log.data() + from, piece);
      else
        std::memcpy(log.data() + from, bytes.data() + i, piece);
      i += piece;
    }
  };
  for (uint64_t done = 0; done + block_bytes <= log.size();) {
    LogGroupHeader h;
    const auto head = std::as_writable_bytes(std::span(&h, 1));
    copy(start.position + done, head, true);
    const uint64_t bytes = h.total_bytes();
    const uint32_t mend = h.reserved | always;
    const bool in_place = mend & mend_place || h.position == start.position + done;
    if (std::memcmp(h.magic, LogGroupHeader::expected_magic, sizeof(h.magic)) != 0 || !in_place ||
        bytes > log.size() - done) {
      done += block_bytes;
      continue;
    }
    if (mend & mend_place) {
      std::memcpy(h.store_uuid, uuid.data(), uuid.size());
      h.position = start.position + done;
    }
    if (mend & mend_chain) {
      h.epoch = h.flags & LogGroupHeader::begins_epoch ? at.epoch + 1 : at.epoch;
      h.first_lsn = at.next_lsn;
      h.previous_crc = at.previous_crc;
    }
    if (mend & mend_crc) {
      std::vector<std::byte> payload(h.payload_bytes);
      copy(start.position + done + sizeof(h), payload, true);
      make_crc_right(h, payload);
    }
    copy(start.position + done, head, false);
    at.epoch = h.epoch;
    at.next_lsn = h.first_lsn + h.transactions;
    at.previous_crc = h.crc;
    done += bytes;
  }
}

}  // namespace tablestore::fuzz
