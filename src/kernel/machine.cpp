#include "tang/kernel/machine.hpp"

#include <cmath>
#include <limits>

namespace tang::kernel {

namespace {
// A value no kernel may see: loops that take it as a bound do not run.
constexpr double poison_real = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t poison_whole = -0x5a5a5a5a;

// Who touched an element: workgroup + 1, 0 nobody, -1 several, adders: several that all add to it, and below
// that one workgroup that only adds.
constexpr int64_t several_workgroups = -1, adders = -2;

bool may_meet(int64_t who, int64_t me, bool adds) {
  return who == 0 || who == me || who == adders - me || (adds && who <= adders);
}

int64_t with(int64_t who, int64_t me, bool adds) {
  if (!may_meet(who, me, adds)) return several_workgroups;
  if (who == 0 || who == adders - me) return adds ? adders - me : me;
  return who == me ? me : adders;
}

int64_t wrapped(int64_t v, Format f) {
  switch (f) {
    case Format::i32: return int32_t(uint32_t(uint64_t(v)));
    case Format::i16: return int16_t(uint16_t(uint64_t(v)));
    case Format::i8: return int8_t(uint8_t(uint64_t(v)));
    case Format::u32: return int64_t(uint32_t(uint64_t(v)));
    case Format::u16: return int64_t(uint16_t(uint64_t(v)));
    case Format::u8: return int64_t(uint8_t(uint64_t(v)));
    case Format::boolean: return v != 0;
    default: return v;
  }
}
}  // namespace

Machine::Machine(const Kernel& k, std::vector<Buffer>& globals, const Options& o)
    : kernel(k), options(o), round(o.rounded ? k.compute : Format::f64), counts_(k.memories.size()) {
  size_t arg = 0;
  for (auto& m : k.memories) {
    Store s;
    s.tile = m.home != Home::global;
    s.far = k.cluster > 1 && (!s.tile || m.team == Team::cluster);
    s.own = k.lanes > 1 && m.home == Home::register_;
    // A workgroup's tile is one in each of a cluster, for its own lanes.
    s.copy = m.size(), s.copies = k.cluster > 1 && s.tile && !s.far && !s.own ? k.cluster : 1;
    if (s.tile && s.far && m.lanes == Lanes::partial) s.dealt = m.strides[0];
    const size_t size = size_t(m.size()) * size_t(s.copies);
    s.format = m.format;
    s.real = expr::type_of(m.format) == Type::real;
    if (s.tile) {
      (s.real ? s.own_r.resize(size) : s.own_i.resize(size));
      s.written.resize(size);
    } else {
      check(arg < globals.size(), "simulate: a buffer for every global memory");
      Buffer& b = globals[arg++];
      check((s.real ? b.r.size() : b.i.size()) >= size,
            "simulate: the buffer of " + m.name + " is too small");
      s.r = b.r.data();
      s.i = b.i.data();
      s.readable = m.access != Access::write;
      s.writable = m.access != Access::read;
      if (s.writable) {
        s.writer.resize(size);
        s.reader.resize(size);
      }
    }
    if (k.lanes > 1 && (s.tile || s.writable)) {
      if (s.own) s.held_by.resize(size);
      s.wrote.resize(size), s.saw.resize(size);
      s.wrote_at.resize(size, -1), s.saw_at.resize(size, -1);
    }
    stores_.push_back(std::move(s));
  }
  for (auto& s : stores_)
    if (s.tile) {
      s.r = s.own_r.data();
      s.i = s.own_i.data();
    }
}
void Machine::enter(int64_t workgroup) {
  workgroup_ = workgroup + 1;
  barrier(Team::cluster);
  for (auto& s : stores_) std::fill(s.written.begin(), s.written.end(), uint8_t(0));
}
void Machine::deal(int64_t from, int n) {
  holders = 1;
  for (int l = 0; l < n; ++l) lane_of[size_t(l)] = int((from + l) % kernel.lanes);
}
const int64_t* Machine::in_copies(const Store& s, const int64_t* at, Mask mask, int n) {
  if (s.copies == 1) return at;
  const int64_t lanes = kernel.lanes / kernel.cluster;
  each(mask, n, [&](int l) { place_[size_t(l)] = at[l] + lane_of[size_t(l)] / lanes * s.copy; });
  return place_.data();
}
// Lanes of several workgroups read one tile of theirs at once, each its own; or a part of a tile that lies in another.
bool Machine::apart(const Store& s, size_t e, int lane) const {
  const int lanes = kernel.lanes / kernel.cluster, last = (lane + holders - 1) / lanes;
  if (s.dealt) lane = lane / lanes == last ? int(int64_t(e) % s.dealt % kernel.lanes) : lane;
  return (s.copies > 1 || s.dealt) && last != lane / lanes;
}
Mask Machine::read_by_lanes(Store& s, const int64_t* at, Mask mask, int n) {
  Mask bad = 0;
  each(mask, n, [&](int l) {
    const size_t e = size_t(at[l]);
    if (s.own) {
      const int from = lane_of[size_t(l)];
      if (s.written[e] && (from < s.wrote[e] || from + holders > s.wrote[e] + s.held_by[e])) bad |= Mask(1) << l;
      return;
    }
    const int lane = holders > 1 ? several : lane_of[size_t(l)];
    if (s.wrote_at[e] == epoch(s) && s.wrote[e] != lane) bad |= Mask(1) << l;
    if (apart(s, e, lane_of[size_t(l)])) bad |= Mask(1) << l;
    s.saw[e] = s.saw_at[e] == epoch(s) && s.saw[e] != lane ? several : lane;
    s.saw_at[e] = epoch(s);
  });
  return bad;
}
Mask Machine::written_by_lanes(Store& s, const int64_t* at, Mask mask, int n) {
  Mask bad = 0;
  each(mask, n, [&](int l) {
    const size_t e = size_t(at[l]);
    const int lane = lane_of[size_t(l)];
    if (s.own) {
      s.wrote[e] = lane;
      s.held_by[e] = holders;
      return;
    }
    const bool written = s.wrote_at[e] == epoch(s) && s.wrote[e] != lane, seen = s.saw_at[e] == epoch(s) && s.saw[e] != lane;
    if (written || seen) bad |= Mask(1) << l;
    s.wrote[e] = lane;
    s.wrote_at[e] = epoch(s);
  });
  return bad;
}
Machine::Trouble Machine::load(int memory, const int64_t* at, Mask mask, int n, Reg& into, bool adds) {
  Store& s = stores_[size_t(memory)];
  at = in_copies(s, at, mask, n);
  Trouble t;
  counts_[size_t(memory)].loads += __builtin_popcountll(mask);
  if (!s.wrote.empty()) t.lane_race = read_by_lanes(s, at, mask, n);
  if (s.real) each(mask, n, [&](int l) { into.r[l] = s.r[at[l]]; });
  else each(mask, n, [&](int l) { into.i[l] = s.i[at[l]]; });
  if (s.tile) {
    each(mask, n, [&](int l) {
      if (s.written[size_t(at[l])]) return;
      t.unwritten |= Mask(1) << l;
      into.r[l] = poison_real;
      into.i[l] = poison_whole;
    });
  } else if (s.writable) {
    if (!s.readable) t.forbidden = mask;
    each(mask, n, [&](int l) {
      int64_t &w = s.writer[size_t(at[l])], &r = s.reader[size_t(at[l])];
      if (!may_meet(w, workgroup_, adds)) t.race |= Mask(1) << l;
      r = with(r, workgroup_, adds);
    });
  }
  return t;
}
Machine::Trouble Machine::store(int memory, const int64_t* at, Mask mask, int n, const Reg& from, bool adds) {
  Store& s = stores_[size_t(memory)];
  at = in_copies(s, at, mask, n);
  Trouble t;
  counts_[size_t(memory)].stores += __builtin_popcountll(mask);
  if (!s.writable) {
    t.forbidden = mask;
    return t;
  }
  if (!s.wrote.empty()) t.lane_race = written_by_lanes(s, at, mask, n);
  if (!s.real) each(mask, n, [&](int l) { s.i[at[l]] = wrapped(from.i[l], s.format); });
  else if (s.format == Format::f64) each(mask, n, [&](int l) { s.r[at[l]] = from.r[l]; });
  else if (s.format == Format::f32) each(mask, n, [&](int l) { s.r[at[l]] = double(float(from.r[l])); });
  else each(mask, n, [&](int l) { s.r[at[l]] = expr::rounded(from.r[l], s.format); });
  if (s.tile)
    each(mask, n, [&](int l) { s.written[size_t(at[l])] = 1; });
  else
    each(mask, n, [&](int l) {
      int64_t &w = s.writer[size_t(at[l])], &r = s.reader[size_t(at[l])];
      if (!may_meet(w, workgroup_, adds) || !may_meet(r, workgroup_, adds)) t.race |= Mask(1) << l;
      w = with(w, workgroup_, adds);
    });
  return t;
}
void Machine::report(Fault::Kind kind, int statement, int memory, const std::function<std::string()>& text) {
  auto [it, fresh] = seen_.emplace(std::make_tuple(kind, statement, memory), faults_.size());
  if (fresh) faults_.push_back({kind, text(), 1});
  else ++faults_[it->second].count;
}
Outcome Machine::outcome() {
  Outcome o;
  o.faults = faults_;
  o.memory = counts_;
  o.steps = steps;
  for (size_t m = 0; m < counts_.size(); ++m) {
    Counts& c = o.at[size_t(kernel.memories[m].home)];
    c.loads += counts_[m].loads;
    c.stores += counts_[m].stores;
    int64_t touched = 0;
    for (int64_t w : stores_[m].writer) touched += w != 0;
    o.written.push_back(touched);
  }
  return o;
}
const char* word(Fault::Kind k) {
  static constexpr const char* words[] = {"outside", "unwritten", "race", "lane race", "forbidden", "tail", "endless"};
  return words[size_t(k)];
}
std::string text(const Outcome& o) {
  std::string out;
  for (auto& f : o.faults)
    out += std::string(word(f.kind)) + ": " + f.text +
           (f.count > 1 ? " (" + std::to_string(f.count) + " times)" : "") + "\n";
  return out;
}

}  // namespace tang::kernel
