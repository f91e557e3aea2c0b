// Compiled libraries on disk, found by the hash of what they were made from. Safe under many processes and
// kill -9.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tang::device {

std::string digest(const std::string& bytes); // xxh128, 32 hexadecimal digits

// Makes the folder (0700) and its parents when missing; no '/' at its end. Throws Error when it is not a folder,
// not ours, or others may write to it; `what` is the thing that wants it: "the kernel cache".
std::string private_folder(std::string folder, const std::string& what);

// One file an entry: the bytes, then their length, checksum and key. An entry is written beside and renamed
// into place, so it is whole or absent; one whose checksum is wrong is a miss and is replaced.
class Cache {
public:
  explicit Cache(std::string folder); // throws Error: see private_folder
  std::optional<std::string> find(const std::string& key) const;
  bool store(const std::string& key, const std::string& bytes) const; // false: the disk said no; never fatal

  std::string path(const std::string& key) const { return folder_ + "/" + key + ".tang"; }

private:
  std::string folder_;
};

// Whole files; no partial reads. nullopt when it cannot be read.
std::optional<std::string> read_file(const std::string& path);
bool write_file(const std::string& path, const std::string& bytes, bool synced);

} // namespace tang::device
