// What tuning learned, on disk: one row a candidate, one a tuned program. Private; the artifact to share is a
// schedule's text.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tang::tune {

struct Row {
  std::string kind, key, value; // kind: "candidate", "program", "machine", "ranking"
  int64_t at = 0;               // when it was written, seconds since 1970
};

// SQLite in one file. Any number of processes may use it at once, and any of them may be killed at any
// moment. Each row has a checksum over its kind, key and value: a row that does not match is a miss. A file
// that is damaged as a whole is set aside and begun anew. Nothing here throws but the constructor; when the
// disk says no, `trouble` has one message and everything goes on without the cache.
class Store {
public:
  // Throws Error when the folder cannot be used (see device::private_folder) or no file can be made in it.
  explicit Store(const std::string& folder);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  std::optional<std::string> find(const std::string& kind, const std::string& key);
  bool put(const std::string& kind, const std::string& key, const std::string& value);
  std::vector<Row> rows(const std::string& kind = ""); // sound ones, newest first; empty kind: all
  // Removes rows older than `before`, then the oldest beyond `most` rows; how many went.
  int64_t gc(int64_t before, int64_t most);

  const std::string& path() const { return path_; }

  const std::string& trouble() const { return trouble_; } // empty: none so far

private:
  struct Handle;
  bool open();
  void damaged(const std::string& why);
  bool with(const std::function<bool(Handle&)>& body); // again after damage; false: not done
  std::string folder_, path_, trouble_;
  std::unique_ptr<Handle> db_;
  int opened_ = 0;
};

// Rows as text, one a line, each with its checksum; what `import` reads. Lines that do not match are left
// out.
std::string exported(const std::vector<Row>& rows);
std::vector<Row> imported(const std::string& text, int64_t& damaged);

} // namespace tang::tune
