// Which cases of all short histories are run, and which one is on.
//
// A case is named by words with commas between them, each of which chooses on one level:
//   wrapped,in_order,write_small+remove,apart,7,torn              a crash
//   fresh,in_order,write_small,apart,rest,drop,rot@log/0@12       and damage after it
// The first words of a name are those of all cases that begin with them, and an empty word is any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tablestore::sim {

class Cases {
 public:
  // By their names; empty: all.
  explicit Cases(const std::string& wanted);

  // Goes on with `word` on that level, and on none below it. `story` says the same to people.
  // False: nobody wants it.
  bool enter(size_t level, const std::string& word, const std::string& story);

  // Of the case that is on.
  std::string name() const { return join(words_, ","); }
  std::string story() const { return join(stories_, ", "); }
  // Of all that is random in it, so that it is the same when it is run by itself.
  uint64_t seed() const;

 private:
  static std::string join(const std::vector<std::string>& parts, const char* between);

  std::vector<std::string> wanted_, words_, stories_;
};

}  // namespace tablestore::sim
