#include "test/tablestore/powercut/lineage.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "test/tablestore/powercut/life.h"

namespace tablestore::powercut {

namespace {

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

// Some of Ceph's options, so that stores differ.
std::vector<std::string> options_of_shape(uint64_t shape) {
  std::vector<std::string> options;
  if (shape % 2) options.push_back("--tablestore-table-memtable-size=1M");
  if (shape / 2 % 2) options.push_back("--tablestore-cache-size=1M");
  if (shape / 4 % 3 == 0) options.push_back("--tablestore-prepare-rate=0");
  if (shape / 12 % 2) options.push_back("--tablestore-punch-rate=1G");
  if (shape / 24 % 4 == 0) options.push_back("--tablestore-io-uring=false");
  return options;
}

}  // namespace

Lineage::Lineage(const CampaignOptions& options, uint64_t seed, Tally* tally)
    : options_(options), seed_(seed), tally_(tally) {
  evidence_.journal = new_journal();
  evidence_.journal->begin({}, 0);
}

std::unique_ptr<Child> Lineage::run(const char* what, const Place& place, const Evidence& evidence,
                                    const Journal& journal) {
  LifeReport& report = journal.report();
  report.shape = seed_;
  report.seed = seed_ + lives_;
  std::ranges::copy(evidence.acknowledged, report.floor);
  std::vector<std::string> words = place.inside;
  const std::string log = options_.dir + "/" + what + ".log";
  if (options_.plain) {
    const bool makes = std::string(what) == "make";
    for (const std::string& word : {std::string("/proc/self/exe"),
                                    std::string(makes ? "plain-make" : "plain-live"), place.dir,
                                    std::to_string(journal.fd())})
      words.push_back(word);
    return std::make_unique<Child>(words, -1, log);
  }
  if (options_.store_program.empty()) {
    for (const std::string& word :
         {std::string("/proc/self/exe"), std::string(what), std::string("--dir"), place.dir,
          std::string("--previous"), std::to_string(evidence.journal->fd()),
          std::string("--journal"), std::to_string(journal.fd())})
      words.push_back(word);
    return std::make_unique<Child>(words, -1, log);
  }
  for (const std::string& word : {options_.store_program, std::string("--tablestore-test-child"),
                                  std::string(what), place.dir})
    words.push_back(word);
  const auto more = options_of_shape(seed_);
  words.insert(words.end(), more.begin(), more.end());
  return std::make_unique<Child>(words, journal.fd(), log);
}

void Lineage::run_to_end(const char* what, const Place& place, const Evidence& evidence) {
  const auto journal = new_journal();
  const auto child = run(what, place, evidence, *journal);
  if (const int status = child->wait(patience_seconds); status != lived)
    throw Failure{std::string("\"") + what + "\" " + how_it_ended(status) + ":\n  " +
                  child->words()};
}

void Lineage::make(const Place& place) { run_to_end("make", place, evidence_); }

void Lineage::judge(const Place& place, const Evidence& evidence) {
  run_to_end("judge", place, evidence);
}

void Lineage::start(const Place& place) {
  journal_ = new_journal();
  journal_->report().writes = true;
  ++lives_;
  ++tally_->lives;
  child_ = run("live", place, evidence_, *journal_);
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
  Evidence e = evidence_;
  e.opening = !journal_->begun();
  if (e.opening) return e;
  e.journal = journal_;
  for (unsigned i = 0; i < LifeReport::sequences; ++i)
    e.acknowledged[i] = journal_->report().acknowledged[i];
  return e;
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
  const bool engine = options_.store_program.empty() && !options_.plain;
  for (size_t i = 0; engine && i < std::size(counter_names); ++i)
    tally_->counters[counter_names[i].first] += journal_->counter(i);
}

void Lineage::set_evidence(Evidence evidence) {
  for (unsigned i = 0; i < LifeReport::sequences; ++i)
    tally_->transactions += evidence.acknowledged[i] - evidence_.acknowledged[i];
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

}  // namespace tablestore::powercut
