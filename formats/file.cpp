#include "tang/formats/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "tang/base/error.hpp"

namespace tang::formats {

namespace {
struct Descriptor {
  int fd;

  explicit Descriptor(int number) : fd(number) {}

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  ~Descriptor() { close(); }

  int close() {
    const int old = fd;
    fd = -1;
    return old < 0 ? 0 : ::close(old);
  }
};

std::string reason(int code) { return std::strerror(code); }

std::vector<uint8_t> allocate(const std::string& path, uint64_t size) {
  constexpr uint64_t most = uint64_t(1) << 40; // a sparse file may claim more than there can be
  try {
    if (size > std::min<uint64_t>(most, SIZE_MAX / 2)) throw std::bad_alloc();
    return std::vector<uint8_t>(static_cast<size_t>(size));
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {}
  reject(path, "does not fit into memory", {"the file has " + std::to_string(size) + " bytes"},
         "use a smaller or quantized file, or a machine with more memory");
}

// A name beside the target that nobody has yet.
int open_part(const std::string& path, std::string& part) {
  for (int i = 0; i < 100; i++) {
    part = path + ".part" + std::to_string(::getpid()) + "." + std::to_string(i);
    const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

bool write_all(int fd, std::span<const uint8_t> piece) {
  while (!piece.empty()) {
    const ssize_t n = ::write(fd, piece.data(), std::min<size_t>(piece.size(), 1u << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    piece = piece.subspan(size_t(n));
  }
  return true;
}
} // namespace

File read_file(const std::string& path) {
  const std::string fix = "check the path and its permissions";
  if (path.find('\0') != std::string::npos) reject(path, "is no path", {"it contains a zero byte"}, fix);
  // Non-blocking, since opening a pipe would wait for a writer before it can be refused.
  Descriptor in(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (in.fd < 0) reject(path, "cannot be opened", {reason(errno)}, fix);
  struct stat status;
  if (::fstat(in.fd, &status) != 0) reject(path, "cannot be read", {reason(errno)}, fix);
  if (!S_ISREG(status.st_mode)) {
    reject(path, "is not a regular file",
           {S_ISDIR(status.st_mode) ? "it is a folder" : "it is a device or a pipe"},
           "name a file; copy the content of a pipe into a file first");
  }
  File file{path, allocate(path, uint64_t(status.st_size))};
  for (uint64_t done = 0; done < file.size();) {
    const size_t want = size_t(std::min<uint64_t>(file.size() - done, 1u << 30));
    const ssize_t n = ::pread(in.fd, file.bytes.data() + done, want, off_t(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) reject(path, "cannot be read", {reason(errno)}, fix);
    if (n == 0) {
      reject(path, "became shorter while it was read",
             {"it had " + std::to_string(file.size()) + " bytes when it was opened",
              "it ended after " + std::to_string(done)},
             "wait until the program that writes it is done");
    }
    done += uint64_t(n);
  }
  return file;
}

void write_file(const std::string& path, const std::vector<std::span<const uint8_t>>& pieces) {
  const std::string fix = "check the folder, its permissions and the free space";
  std::string part;
  Descriptor out(open_part(path, part));
  if (out.fd < 0) reject(path, "cannot be written", {reason(errno)}, fix);
  bool ok = true;
  for (auto& piece : pieces) ok = ok && write_all(out.fd, piece);
  ok = ok && ::fsync(out.fd) == 0;
  ok = ok && out.close() == 0;
  ok = ok && std::rename(part.c_str(), path.c_str()) == 0;
  if (ok) return;
  const int code = errno;
  ::unlink(part.c_str());
  reject(path, "cannot be written", {reason(code)}, fix);
}

std::string shown(std::string_view text, size_t most) {
  std::string out;
  for (unsigned char c : text.substr(0, most)) {
    if (c >= 0x20 && c < 0x7f && c != '\\') {
      out += char(c);
    } else {
      const char* hex = "0123456789abcdef";
      out += {'\\', 'x', hex[c >> 4], hex[c & 15]};
    }
  }
  if (text.size() > most) out += ".. (" + std::to_string(text.size()) + " bytes)";
  return out;
}

void reject(const std::string& path, const std::string& what, std::vector<std::string> facts,
            const std::string& fix) {
  std::vector<Note> notes;
  for (auto& f : facts) notes.push_back({std::move(f)});
  throw Error({}, shown(path, 4096) + ": " + what, std::move(notes), fix);
}

Cursor::Cursor(const File& file, uint64_t at, uint64_t end) : file_(file), at_(at), end_(end) {
  check(at <= end && end <= file.size(), "a cursor outside its file");
}

std::string_view Cursor::take(uint64_t count, const char* what) {
  if (count > left()) {
    reject(file_.path, std::string("the file ends inside ") + what,
           {std::string(what) + " needs " + std::to_string(count) + " bytes from byte " + std::to_string(at_),
            "there are " + std::to_string(left())},
           damaged);
  }
  const uint64_t from = at_;
  at_ += count;
  return file_.text(from, count);
}

} // namespace tang::formats
