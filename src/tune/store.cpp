#include "tang/tune/store.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <ctime>

#include "tang/base/error.hpp"
#include "tang/device/cache.hpp"

namespace tang::tune {

namespace {
constexpr int layout = 1;
constexpr int wait_ms = 10000;         // for a writer
constexpr int most_steps = 50'000'000; // of SQLite's machine a statement: a damaged tree cannot hold us

std::string checksum(const std::string& kind, const std::string& key, const std::string& value) {
  return device::digest(kind + '\0' + key + '\0' + value);
}

bool is_damage(int code) {
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT ||
         code == SQLITE_INTERRUPT || code == SQLITE_SCHEMA || code == SQLITE_MISMATCH ||
         code == SQLITE_ERROR || code == SQLITE_TOOBIG;
}
} // namespace

struct Store::Handle {
  sqlite3* db = nullptr;
  ino_t inode = 0; // of the file as it was opened
  int code = SQLITE_OK;

  ~Handle() { sqlite3_close_v2(db); }

  bool fail(int c) {
    code = c & 0xff;
    return false;
  }

  bool run(const char* sql) {
    const int c = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
    return c == SQLITE_OK || fail(c);
  }

  // Binds texts and integers in order, calls `row` for each result.
  bool query(const char* sql, const std::vector<std::string>& texts, const std::vector<int64_t>& numbers,
             const std::function<void(sqlite3_stmt*)>& row) {
    sqlite3_stmt* s = nullptr;
    if (const int c = sqlite3_prepare_v2(db, sql, -1, &s, nullptr); c != SQLITE_OK) return fail(c);
    int at = 0;
    for (auto& t : texts) sqlite3_bind_text(s, ++at, t.data(), int(t.size()), SQLITE_TRANSIENT);
    for (int64_t n : numbers) sqlite3_bind_int64(s, ++at, n);
    int steps = 0;
    sqlite3_progress_handler(
        db, 10000, [](void* n) { return int(++*static_cast<int*>(n) > most_steps / 10000); }, &steps);
    int c;
    while ((c = sqlite3_step(s)) == SQLITE_ROW) row(s);
    sqlite3_progress_handler(db, 0, nullptr, nullptr);
    sqlite3_finalize(s);
    return c == SQLITE_DONE || fail(c);
  }
};

namespace {
std::string text_of(sqlite3_stmt* s, int column) {
  const void* p = sqlite3_column_blob(s, column);
  return p ? std::string(static_cast<const char*>(p), size_t(sqlite3_column_bytes(s, column)))
           : std::string();
}
} // namespace

Store::Store(const std::string& folder)
    : folder_(device::private_folder(folder, "the tuning cache")), path_(folder_ + "/tuning.db") {
  if (!open() && !open())
    throw Error({}, "the tuning cache cannot use `" + path_ + "`", {{trouble_, {}}},
                "free some disk space, or name another folder");
}

Store::~Store() = default;

bool Store::open() {
  db_ = std::make_unique<Handle>();
  Handle& h = *db_;
  ++opened_;
  struct stat link;
  if (!lstat(path_.c_str(), &link) && (!S_ISREG(link.st_mode) || link.st_uid != geteuid())) {
    trouble_ = S_ISREG(link.st_mode) ? "it belongs to another user" : "it is not a plain file";
    return db_.reset(), false;
  }
  const int c = sqlite3_open_v2(path_.c_str(), &h.db,
                                SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  bool ok = c == SQLITE_OK || h.fail(c);
  if (ok) {
    sqlite3_busy_timeout(h.db, wait_ms);
    sqlite3_limit(h.db, SQLITE_LIMIT_LENGTH, 16 << 20);
    sqlite3_db_config(h.db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    // A rollback journal: after a kill the next one to open undoes what was half done, and there is no shared
    // memory to be damaged. Losing power may lose rows, which is a miss.
    ok = h.run("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;"
               "PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=OFF;");
    auto known = [&] {
      int64_t v = -1;
      const bool read =
          h.query("PRAGMA user_version", {}, {}, [&](sqlite3_stmt* q) { v = sqlite3_column_int64(q, 0); });
      return read ? v : -1;
    };
    if (ok && known() != layout) {
      ok = h.run("BEGIN IMMEDIATE"); // others may be making it at this moment
      if (ok && known() != layout)
        ok = h.run(
            "DROP TABLE IF EXISTS rows;"
            "CREATE TABLE rows(kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, at INTEGER NOT "
            "NULL, sum TEXT NOT NULL, PRIMARY KEY(kind, key)) WITHOUT ROWID; PRAGMA user_version=1");
      ok = ok && h.run("COMMIT");
    }
  }
  struct stat s;
  if (!stat(path_.c_str(), &s)) h.inode = s.st_ino;
  chmod(path_.c_str(), 0600);
  if (ok) return true;
  const int code = h.code;
  trouble_ = h.db ? sqlite3_errmsg(h.db) : sqlite3_errstr(code);
  if (is_damage(code)) damaged(trouble_);
  db_.reset();
  return false;
}

// Sets the file aside, unless another process has done so already.
void Store::damaged(const std::string&) {
  const int lock =
      ::open((folder_ + "/tuning.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return;
  flock(lock, LOCK_EX);
  struct stat s;
  if (db_ && !stat(path_.c_str(), &s) && (!db_->inode || s.st_ino == db_->inode)) {
    unlink((path_ + "-journal").c_str());
    rename(path_.c_str(), (path_ + ".damaged").c_str());
  }
  close(lock);
}

bool Store::with(const std::function<bool(Handle&)>& body) {
  for (int tries = 0; tries < 3; ++tries) {
    if (!db_ && (opened_ > 64 || !open())) continue;
    struct stat s;
    if (stat(path_.c_str(), &s) || s.st_ino != db_->inode) { // set aside by another
      db_.reset();
      continue;
    }
    if (body(*db_)) return true;
    const int code = db_->code;
    trouble_ =
        "the tuning cache: " + std::string(code == (sqlite3_errcode(db_->db) & 0xff) ? sqlite3_errmsg(db_->db)
                                                                                     : sqlite3_errstr(code));
    if (sqlite3_get_autocommit(db_->db) == 0) db_->run("ROLLBACK");
    if (!is_damage(code)) return false; // full, read-only, busy: not for us to mend
    damaged(trouble_);
    db_.reset();
  }
  return false;
}

std::optional<std::string> Store::find(const std::string& kind, const std::string& key) {
  std::optional<std::string> out;
  with([&](Handle& h) {
    out.reset();
    return h.query("SELECT value, sum FROM rows WHERE kind=? AND key=?", {kind, key}, {},
                   [&](sqlite3_stmt* s) {
                     std::string value = text_of(s, 0);
                     if (text_of(s, 1) == checksum(kind, key, value)) out = std::move(value);
                   });
  });
  return out;
}

bool Store::put(const std::string& kind, const std::string& key, const std::string& value) {
  return with([&](Handle& h) {
    bool there = false;
    bool ok = h.query("INSERT OR REPLACE INTO rows(kind, key, value, sum, at) VALUES(?, ?, ?, ?, ?)",
                      {kind, key, value, checksum(kind, key, value)}, {int64_t(std::time(nullptr))},
                      [](sqlite3_stmt*) {});
    ok = ok && h.query("SELECT value FROM rows WHERE kind=? AND key=?", {kind, key}, {},
                       [&](sqlite3_stmt* s) { there = text_of(s, 0) == value; });
    return ok && (there || h.fail(SQLITE_CORRUPT)); // a damaged tree may take rows and not find them again
  });
}

std::vector<Row> Store::rows(const std::string& kind) {
  std::vector<Row> out;
  with([&](Handle& h) {
    out.clear();
    return h.query(
        "SELECT kind, key, value, sum, at FROM rows WHERE ?1='' OR kind=?1 ORDER BY at DESC, kind, key",
        {kind}, {}, [&](sqlite3_stmt* s) {
          Row r{text_of(s, 0), text_of(s, 1), text_of(s, 2), sqlite3_column_int64(s, 4)};
          if (text_of(s, 3) == checksum(r.kind, r.key, r.value)) out.push_back(std::move(r));
        });
  });
  return out;
}

int64_t Store::gc(int64_t before, int64_t most) {
  int64_t gone = 0;
  with([&](Handle& h) {
    bool ok = h.query("DELETE FROM rows WHERE at < ?", {}, {before}, [](sqlite3_stmt*) {});
    gone = sqlite3_changes(h.db);
    ok = ok &&
         h.query("DELETE FROM rows WHERE (kind, key) IN (SELECT kind, key FROM rows ORDER BY at DESC, kind, "
                 "key LIMIT -1 OFFSET ?)",
                 {}, {most}, [](sqlite3_stmt*) {});
    gone += sqlite3_changes(h.db);
    return ok && h.run("VACUUM");
  });
  return gone;
}

namespace {
std::string hex(const std::string& s) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (unsigned char c : s) out += digits[c >> 4], out += digits[c & 15];
  return out;
}

std::optional<std::string> unhex(const std::string& s) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string out;
  if (s.size() % 2) return std::nullopt;
  for (size_t k = 0; k < s.size(); k += 2) {
    if (digit(s[k]) < 0 || digit(s[k + 1]) < 0) return std::nullopt;
    out += char(digit(s[k]) * 16 + digit(s[k + 1]));
  }
  return out;
}
} // namespace

std::string exported(const std::vector<Row>& rows) {
  std::string out = "tang-tuning 1\n";
  for (auto& r : rows)
    out += checksum(r.kind, r.key, r.value) + " " + r.kind + " " + hex(r.key) + " " + hex(r.value) + "\n";
  return out;
}

std::vector<Row> imported(const std::string& text, int64_t& damaged) {
  std::vector<Row> out;
  damaged = 0;
  if (text.compare(0, 14, "tang-tuning 1\n"))
    throw Error({}, "this is no exported tuning cache", {}, "its first line is `tang-tuning 1`");
  for (size_t from = 14; from < text.size();) {
    const size_t to = std::min(text.find('\n', from), text.size());
    std::vector<std::string> words(1);
    for (size_t k = from; k < to; ++k) {
      if (text[k] == ' ')
        words.emplace_back();
      else
        words.back() += text[k];
    }
    from = to + 1;
    Row r;
    if (words.size() == 4) {
      const auto key = unhex(words[2]), value = unhex(words[3]);
      if (key && value) r = {words[1], *key, *value, 0};
    }
    if (r.kind.empty() || checksum(r.kind, r.key, r.value) != words[0])
      ++damaged;
    else
      out.push_back(std::move(r));
  }
  return out;
}

} // namespace tang::tune
