// Gives a fuzz target inputs without libFuzzer, so that any compiler will do: what CI runs. Each of
// the inputs that it is given runs once, then as many as -runs says, which are made of these by
// random changes. It does not see what an input reaches: only libFuzzer searches (`./run fuzz`).
//
//   fuzz_TARGET [-runs=N] [-seed=N] [-timeout=SECONDS of an input] FILE|DIRECTORY ...
//
// While an input runs it is in the file "input" of the working directory, and whatever ends the
// process (require(), a sanitizer, a signal) leaves it there.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <set>

#include "test/tablestore/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tablestore::fuzz {
namespace {

constexpr size_t input_bytes_max = 4096;  // of those that are made, unless a given one is larger
constexpr unsigned changes_max = 5;       // of one input

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(2);
}

// Makes inputs of others. Same inputs and same seed, same results.
class Mutator {
 public:
  Mutator(const std::vector<std::string>& inputs, uint64_t seed) : inputs_(inputs), random_(seed) {
    for (const std::string& each : inputs) bytes_max_ = std::max(bytes_max_, each.size());
  }

  std::string next() {
    std::string bytes = any_input();
    for (uint64_t changes = 1 + below(changes_max); changes > 0; --changes) change(bytes);
    if (bytes.size() > bytes_max_) bytes.resize(bytes_max_);
    return bytes;
  }

 private:
  uint64_t below(uint64_t end) { return random_() % end; }
  const std::string& any_input() { return inputs_[below(inputs_.size())]; }
  // Mostly short.
  size_t length_within(size_t bytes) {
    return 1 + below(std::max<size_t>(bytes >> below(8), 1));
  }

  void change(std::string& bytes) {
    if (bytes.empty()) bytes.push_back(char(random_()));
    const size_t at = below(bytes.size());
    const size_t rest = bytes.size() - at;
    switch (below(9)) {
      case 0: bytes[at] ^= char(1 << below(8)); return;
      case 1: bytes[at] = char(random_()); return;
      case 2: return put_number(bytes, at, interesting(rest));
      case 3: return add_to_number(bytes, at);
      case 4: bytes.erase(at, length_within(rest)); return;
      case 5: bytes.insert(at, length_within(64), char(below(2) ? random_() : 0)); return;
      case 6: return put(bytes, at, part_of(std::string(bytes)));
      case 7: return put(bytes, at, part_of(any_input()));
      default: return splice(bytes, at);
    }
  }

  // Where comparisons turn over: powers of two and their neighbours, and the input's own sizes.
  uint64_t interesting(size_t rest) {
    const uint64_t around = below(3) - 1;
    if (below(4) == 0) return rest + around;
    return (uint64_t(1) << below(64)) + around;
  }

  size_t number_bytes(const std::string& bytes, size_t at) {
    return std::min<size_t>(size_t(1) << below(4), bytes.size() - at);
  }

  void put_number(std::string& bytes, size_t at, uint64_t value) {
    const size_t count = number_bytes(bytes, at);
    std::memcpy(bytes.data() + at, &value, count);
    if (below(4) == 0) std::reverse(bytes.begin() + at, bytes.begin() + at + count);
  }

  void add_to_number(std::string& bytes, size_t at) {
    const size_t count = number_bytes(bytes, at);
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, count);
    value += below(33) - 16;
    std::memcpy(bytes.data() + at, &value, count);
  }

  std::string part_of(const std::string& other) {
    if (other.empty()) return {};
    const size_t from = below(other.size());
    return other.substr(from, length_within(other.size() - from));
  }

  // Over what is there, or between.
  void put(std::string& bytes, size_t at, const std::string& part) {
    bytes.replace(at, below(2) ? std::min(part.size(), bytes.size() - at) : 0, part);
  }

  // The front of one and the back of another.
  void splice(std::string& bytes, size_t at) {
    const std::string& other = any_input();
    if (other.empty()) return;
    bytes.resize(at);
    bytes += other.substr(below(other.size()));
  }

  const std::vector<std::string>& inputs_;
  std::mt19937_64 random_;
  size_t bytes_max_ = input_bytes_max;
};

// Runs inputs, each in memory of just its size, so that a read behind it is noticed.
class Runner {
 public:
  explicit Runner(unsigned timeout_seconds) : timeout_seconds_(timeout_seconds) {
    if (file_ < 0) fail(std::string(path) + " cannot be written");
  }
  ~Runner() {
    ::close(file_);
    ::unlink(path);
  }
  Runner(const Runner&) = delete;

  void run(const std::string& bytes) {
    if (::pwrite(file_, bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()) ||
        ::ftruncate(file_, off_t(bytes.size())) != 0)
      fail(std::string(path) + " cannot be written");
    const auto copy = std::make_unique_for_overwrite<uint8_t[]>(bytes.size());
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    ::alarm(timeout_seconds_);  // SIGALRM ends the process
    LLVMFuzzerTestOneInput(copy.get(), bytes.size());
    ::alarm(0);
    ++runs_;
  }
  uint64_t runs() const { return runs_; }

 private:
  static constexpr char path[] = "input";
  const int file_ = ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const unsigned timeout_seconds_;
  uint64_t runs_ = 0;
};

// In an order that does not depend on the file system.
void read_inputs(const std::filesystem::path& place, std::vector<std::string>* inputs) {
  std::set<std::filesystem::path> files;
  if (std::filesystem::is_directory(place))
    for (const auto& entry : std::filesystem::directory_iterator(place)) files.insert(entry);
  else
    files.insert(place);
  if (files.empty()) fail(place.string() + " has no inputs");
  for (const auto& path : files) {
    std::ifstream in(path, std::ios::binary);
    if (!in) fail(path.string() + " cannot be read");
    inputs->emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
}

int main(int argc, char** argv) {
  uint64_t runs = 0, seed = 1, timeout_seconds = 0;
  std::vector<std::string> inputs;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t value = word.find('=') + 1;
    if (word.starts_with("-runs="))
      runs = std::strtoull(argv[i] + value, nullptr, 0);
    else if (word.starts_with("-seed="))
      seed = std::strtoull(argv[i] + value, nullptr, 0);
    else if (word.starts_with("-timeout="))
      timeout_seconds = std::strtoull(argv[i] + value, nullptr, 0);
    else if (word.starts_with("-"))
      fail(word + ": there are -runs=N, -seed=N and -timeout=SECONDS");
    else
      read_inputs(word, &inputs);
  }
  if (inputs.empty()) fail(std::string(argv[0]) + ": no inputs are given");
  Runner runner{unsigned(timeout_seconds)};
  for (const std::string& bytes : inputs) runner.run(bytes);
  for (Mutator mutator(inputs, seed); runs > 0; --runs) runner.run(mutator.next());
  std::printf("stat::number_of_executed_units: %llu\n",
              static_cast<unsigned long long>(runner.runs()));
  return 0;
}

}  // namespace
}  // namespace tablestore::fuzz

int main(int argc, char** argv) { return tablestore::fuzz::main(argc, argv); }
