#include "tang/device/cache.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tang/base/error.hpp"

namespace tang::device {

namespace {
constexpr char magic[] = "tang-1\n";
constexpr size_t trailer = sizeof magic - 1 + 16 + 32 + 32; // magic, length, checksum, key

std::string trailer_of(const std::string& key, const std::string& bytes) {
  char length[24];
  std::snprintf(length, sizeof length, "%016zx", bytes.size());
  return magic + std::string(length) + digest(bytes) + key;
}

// Files that a killed process left behind, once they are an hour old.
void sweep(const std::string& folder) {
  DIR* d = opendir(folder.c_str());
  if (!d) return;
  while (dirent* e = readdir(d)) {
    if (std::strncmp(e->d_name, "tmp.", 4)) continue;
    const std::string path = folder + "/" + e->d_name;
    struct stat s;
    if (!stat(path.c_str(), &s) && time(nullptr) - s.st_mtime > 3600) unlink(path.c_str());
  }
  closedir(d);
}
} // namespace

std::string digest(const std::string& bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  char s[40];
  std::snprintf(s, sizeof s, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
  return s;
}

std::optional<std::string> read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  std::string out;
  struct stat s;
  bool ok = fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
  if (ok) out.resize(size_t(s.st_size));
  for (size_t at = 0; ok && at < out.size();) {
    const ssize_t n = read(fd, &out[at], out.size() - at);
    if (n < 0 && errno == EINTR) continue;
    ok = n > 0;
    at += size_t(n > 0 ? n : 0);
  }
  close(fd);
  return ok ? std::optional(std::move(out)) : std::nullopt;
}

bool write_file(const std::string& path, const std::string& bytes, bool synced) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  bool ok = true;
  for (size_t at = 0; ok && at < bytes.size();) {
    const ssize_t n = write(fd, &bytes[at], bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    ok = n > 0;
    at += size_t(n > 0 ? n : 0);
  }
  if (ok && synced) ok = fsync(fd) == 0;
  ok &= close(fd) == 0;
  if (!ok) unlink(path.c_str());
  return ok;
}

std::string private_folder(std::string folder, const std::string& what) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  for (size_t at = 1; at <= folder.size(); ++at)
    if (at == folder.size() || folder[at] == '/') mkdir(folder.substr(0, at).c_str(), 0700);
  struct stat s;
  auto refuse = [&](const std::string& why) {
    throw Error({}, what + " cannot use `" + folder + "`", {{why, {}}},
                "name a folder that only you can write to");
  };
  if (lstat(folder.c_str(), &s)) refuse(std::strerror(errno));
  if (!S_ISDIR(s.st_mode)) refuse("it is not a folder");
  if (s.st_uid != geteuid()) refuse("it belongs to another user");
  if (s.st_mode & 022) refuse("others may write to it");
  return folder;
}

Cache::Cache(std::string folder) : folder_(private_folder(std::move(folder), "the kernel cache")) {
  sweep(folder_);
}

std::optional<std::string> Cache::find(const std::string& key) const {
  auto file = read_file(path(key));
  if (!file || file->size() < trailer) return std::nullopt;
  const std::string tail = file->substr(file->size() - trailer);
  file->resize(file->size() - trailer);
  if (tail != trailer_of(key, *file)) return std::nullopt;
  return file;
}

bool Cache::store(const std::string& key, const std::string& bytes) const {
  static std::atomic<unsigned> counter{0};
  const std::string tmp = folder_ + "/tmp." + std::to_string(getpid()) + "." + std::to_string(counter++);
  unlink(tmp.c_str()); // of a dead process that had our number
  if (!write_file(tmp, bytes + trailer_of(key, bytes), true)) return false;
  if (rename(tmp.c_str(), path(key).c_str())) {
    unlink(tmp.c_str());
    return false;
  }
  const int fd = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    fsync(fd);
    close(fd);
  }
  return true;
}

} // namespace tang::device
