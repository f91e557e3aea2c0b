#include "tang/device/cuda_code.hpp"

#include <algorithm>
#include <cstring>

namespace tang::device {

namespace {
constexpr int64_t bytes_each = 16; // of an instruction

template <class T> T word(const std::string& b, size_t at) {
  T x = 0;
  if (at + sizeof x <= b.size()) std::memcpy(&x, b.data() + at, sizeof x);
  return x;
}

int64_t extended(uint64_t x, int bits) { // a signed number of so many bits
  return int64_t(x << (64 - bits)) >> (64 - bits);
}

struct Section {
  std::string name;
  size_t at = 0, bytes = 0;
};

// Sections of a 64-bit ELF file; none where it is cut short.
std::vector<Section> sections(const std::string& b) {
  const auto table = word<uint64_t>(b, 0x28);
  const auto each = word<uint16_t>(b, 0x3a), count = word<uint16_t>(b, 0x3c), names = word<uint16_t>(b, 0x3e);
  if (each < 64 || table > b.size() || size_t(count) * each > b.size() - table || names >= count) return {};
  const auto strings = word<uint64_t>(b, table + size_t(names) * each + 24);
  std::vector<Section> out;
  for (size_t k = 0; k < count; ++k) {
    const size_t head = table + k * each, name = strings + word<uint32_t>(b, head);
    const auto at = word<uint64_t>(b, head + 24), bytes = word<uint64_t>(b, head + 32);
    if (word<uint32_t>(b, head + 4) == 8) continue; // takes no place in the file
    if (name >= b.size() || at > b.size() || bytes > b.size() - at) return {};
    out.push_back({b.c_str() + name, at, bytes});
  }
  return out;
}

// The fields of an instruction that say where a lane goes and what it waits for; the kind has no bit for the form
// of operands.
struct Fields {
  uint64_t low, high;

  unsigned kind() const { return unsigned(low & 0x1ff); }

  bool always() const { return (low >> 12 & 0xf) == 7; }     // no condition
  bool chooses() const { return (high >> 23 & 0xf) != 7; }   // of a jump: one more condition
  unsigned waits() const { return unsigned(high >> 52 & 0x3f); }

  int counter() const {
    const int c = int(high >> 46 & 7);
    return c == 7 ? -1 : c;
  }

  // Of a jump, of a meeting: from the next instruction on.
  int64_t jump() const {
    return extended((low >> 16 & 0xff) | (low >> 34) << 8 | (high & 0x3ffff) << 38, 56) * 4 / bytes_each;
  }

  int64_t meeting() const { return extended(low >> 32, 32) / bytes_each; }
};

enum Kind : unsigned {
  meet = 0x141, leave_meeting = 0x142, call = 0x144, meeting_place = 0x145, give_way = 0x146, jump = 0x147,
  lanes_meet = 0x148, first_way = 0x140, last_way = 0x15f, end = 0x14d, load = 0x181, load_anywhere = 0x180,
  first_copy = 0x1a0, last_copy = 0x1bf, clear_error = 0x1ab
};

Instruction instruction(const Fields& f, int64_t at, const std::vector<int64_t>& meetings) {
  Instruction i;
  const unsigned kind = f.kind();
  bool on = true; // the next one may follow
  if (kind == jump || kind == call) i.next.push_back(int(at + 1 + f.jump()));
  if (kind == jump) on = !f.always() || f.chooses();
  if (kind == end) i.leaves = true, on = !f.always();
  if (kind == meet) i.next.assign(meetings.begin(), meetings.end());
  const bool known = kind == meet || kind == leave_meeting || kind == call || kind == meeting_place ||
                     kind == give_way || kind == jump || kind == lanes_meet || kind == end;
  if (kind >= first_way && kind <= last_way && !known) i.leaves = true;
  if (on) i.next.push_back(int(at + 1));
  i.loads = kind == load || kind == load_anywhere;
  i.copies = kind >= first_copy && kind <= last_copy && kind != clear_error;
  i.counter = f.counter(), i.waits = f.waits();
  return i;
}

MachineCode kernel(const std::string& b, const Section& s) {
  MachineCode k{s.name.substr(6), {}};
  const auto count = int64_t(s.bytes) / bytes_each;
  std::vector<Fields> all;
  std::vector<int64_t> meetings;
  for (int64_t n = 0; n < count; ++n) {
    const size_t at = s.at + size_t(n * bytes_each);
    all.push_back({word<uint64_t>(b, at), word<uint64_t>(b, at + 8)});
    if (all.back().kind() == meeting_place) meetings.push_back(n + 1 + all.back().meeting());
  }
  for (int64_t n = 0; n < count; ++n) {
    Instruction i = instruction(all[size_t(n)], n, meetings);
    const size_t named = i.next.size();
    i.next.erase(std::remove_if(i.next.begin(), i.next.end(), [&](int x) { return x < 0 || x >= count; }),
                 i.next.end());
    i.leaves |= i.next.size() < named;
    k.code.push_back(std::move(i));
  }
  return k;
}
} // namespace

Result<std::vector<MachineCode>> machine_code(const std::string& cubin) {
  if (cubin.compare(0, 4, "\x7f" "ELF") || word<uint16_t>(cubin, 0x12) != 190)
    return Refusal{"no machine code of an NVIDIA GPU"};
  if (const unsigned of = word<uint32_t>(cubin, 0x30) >> 8 & 0xff; of != 90)
    return Refusal{"machine code for compute capability " + std::to_string(of / 10) + "." + std::to_string(of % 10)};
  std::vector<MachineCode> out;
  for (auto& s : sections(cubin))
    if (!s.name.compare(0, 6, ".text.")) out.push_back(kernel(cubin, s));
  if (out.empty()) return Refusal{"no kernel"};
  return out;
}

std::vector<int64_t> least_left(const MachineCode& k) {
  const size_t n = k.code.size();
  std::vector<std::vector<int>> before(n);
  std::vector<int64_t> left(n, int64_t(n)); // no way out is known: no path is longer without a loop
  std::vector<int> now;
  std::vector<bool> reached(n, false);
  for (size_t i = 0; i < n; ++i) {
    for (int x : k.code[i].next) before[size_t(x)].push_back(int(i));
    if (k.code[i].leaves) now.push_back(int(i)), reached[i] = true;
  }
  for (int64_t steps = 1; !now.empty(); ++steps) {
    std::vector<int> then;
    for (int i : now) {
      left[size_t(i)] = steps;
      for (int b : before[size_t(i)])
        if (!reached[size_t(b)]) reached[size_t(b)] = true, then.push_back(b);
    }
    now = std::move(then);
  }
  return left;
}

bool below_every_path(const MachineCode& k, const std::vector<int64_t>& left) {
  if (left.size() != k.code.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (k.code[i].leaves && left[i] > 1) return false;
    for (int x : k.code[i].next)
      if (left[i] > left[size_t(x)] + 1) return false;
  }
  return true;
}

namespace {
// The least left of the instructions at which a lane first waits for load `from`; 0 where it may end without.
int64_t after_load(const MachineCode& k, const std::vector<int64_t>& left, size_t from) {
  const Instruction& load = k.code[from];
  if (load.counter < 0 || load.leaves) return 0;
  int64_t least = int64_t(k.code.size());
  std::vector<bool> seen(k.code.size(), false);
  std::vector<int> open = load.next;
  while (!open.empty()) {
    const auto i = size_t(open.back());
    open.pop_back();
    if (seen[i]) continue;
    seen[i] = true;
    if (k.code[i].waits >> load.counter & 1) {
      least = std::min(least, left[i]);
      continue;
    }
    if (k.code[i].leaves) return 0;
    open.insert(open.end(), k.code[i].next.begin(), k.code[i].next.end());
  }
  return least;
}
} // namespace

Issued issued(const MachineCode& k) {
  const std::vector<int64_t> left = least_left(k);
  if (left.empty() || !below_every_path(k, left)) return {};
  Issued out{left[0], int64_t(k.code.size())};
  bool any = false;
  for (size_t i = 0; i < k.code.size(); ++i) {
    if (k.code[i].copies) return {left[0], 0};
    if (k.code[i].loads) any = true, out.after = std::min(out.after, after_load(k, left, i));
  }
  if (!any) out.after = 0;
  return out;
}

} // namespace tang::device
