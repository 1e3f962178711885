#include "test/tablestore/powercut/lineage.h"

#include <chrono>
#include <csignal>
#include <thread>

#include "test/tablestore/powercut/life.h"

namespace tablestore::powercut {

namespace {

// A process that does nothing for so long hangs.
constexpr unsigned patience_seconds = 300;

std::shared_ptr<Journal> new_journal() {
  auto journal = Journal::create();
  if (!journal.ok()) throw Failure{journal.status().what()};
  return journal.take();
}

template <typename Condition>
void wait_for(const char* what, Condition reached) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(patience_seconds);
  while (!reached()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw Failure{std::string("waited too long for ") + what};
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}

std::string how_it_ended(int status) {
  return status < 0 ? "was killed by signal " + std::to_string(-status)
                    : "ended with status " + std::to_string(status);
}

}  // namespace

Lineage::Lineage(std::string dir, std::string scratch, uint64_t seed, Tally* tally)
    : dir_(std::move(dir)), scratch_(std::move(scratch)), seed_(seed), tally_(tally) {
  evidence_.journal = new_journal();
  evidence_.journal->begin({}, 0);
}

std::vector<std::string> Lineage::arguments(const char* what, const std::string& dir) const {
  return {what, "--dir", dir, "--shape", std::to_string(seed_)};
}

void Lineage::make() {
  Child child(arguments("make", dir_), scratch_ + "/make.log");
  if (const int status = child.wait(patience_seconds); status != lived)
    throw Failure{"mkfs of the store " + how_it_ended(status) + ":\n  " + child.words()};
}

void Lineage::start() {
  journal_ = new_journal();
  auto a = arguments("live", dir_);
  for (const auto& [name, value] :
       {std::pair("--seed", seed_ + ++lives_), {"--acknowledged", evidence_.acknowledged},
        {"--previous", uint64_t(evidence_.journal->fd())},
        {"--journal", uint64_t(journal_->fd())}}) {
    a.push_back(name);
    a.push_back(std::to_string(value));
  }
  ++tally_->lives;
  child_ = std::make_unique<Child>(a, scratch_ + "/live.log");
}

void Lineage::check_alive() {
  if (const auto status = child_->ended())
    throw Failure{"life " + std::to_string(lives_) + " " + how_it_ended(*status) + ":\n  " +
                  child_->words()};
}

void Lineage::wait_until_begun() {
  wait_for("a store to open", [this] {
    check_alive();
    return journal_->begun();
  });
}

Evidence Lineage::evidence() const {
  if (!journal_->begun()) return {evidence_.journal, evidence_.acknowledged, true};
  return {journal_, journal_->acknowledged_lsn(), false};
}

void Lineage::wait_until_durable() {
  if (!journal_->begun()) return;
  uint64_t counts[max_writers];
  for (unsigned w = 0; w < max_writers; ++w) counts[w] = journal_->count(w);
  wait_for("a transaction to become durable", [&] {
    check_alive();
    for (unsigned w = 0; w < max_writers; ++w)
      if (!journal_->all_durable(w, counts[w])) return false;
    return true;
  });
}

void Lineage::end(int signal, int expected_status) {
  check_alive();
  child_->signal(signal);
  const int status = child_->wait(patience_seconds);
  if (status != expected_status)
    throw Failure{"life " + std::to_string(lives_) + " " + how_it_ended(status) + ":\n  " +
                  child_->words()};
  for (size_t i = 0; i < std::size(counter_names); ++i)
    tally_->counters[counter_names[i].first] += journal_->counter(i);
}

void Lineage::set_evidence(Evidence evidence) {
  tally_->transactions += evidence.acknowledged - evidence_.acknowledged;
  evidence_ = std::move(evidence);
}

void Lineage::kill() {
  end(SIGKILL, -SIGKILL);
  ++tally_->kills;
  if (!journal_->begun()) ++tally_->kills_opening;
  set_evidence(evidence());
}

void Lineage::lose_power(const Evidence& evidence) {
  end(SIGKILL, -SIGKILL);
  set_evidence(evidence);
}

void Lineage::end_in_order() {
  wait_until_begun();
  end(SIGTERM, lived);
  ++tally_->ends;
  set_evidence(evidence());
}

void Lineage::judge(const std::string& dir, const Evidence& evidence) {
  auto a = arguments("judge", dir);
  for (const auto& [name, value] : {std::pair("--acknowledged", evidence.acknowledged),
                                    {"--previous", uint64_t(evidence.journal->fd())}}) {
    a.push_back(name);
    a.push_back(std::to_string(value));
  }
  Child child(a, scratch_ + "/judge.log");
  if (const int status = child.wait(patience_seconds); status != lived)
    throw Failure{"the process that judges " + how_it_ended(status) + ":\n  " + child.words()};
}

}  // namespace tablestore::powercut
