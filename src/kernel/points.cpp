#include "tang/kernel/points.hpp"

#include <algorithm>

#include "tang/kernel/add_in_place.hpp"

namespace tang::kernel {

using expr::Op;

Points::Points(const Kernel& k, int statement, const Stmt& s, const std::vector<TileAxis>& lane_axes,
               const std::vector<TileAxis>& step_axes, const Body* body)
    : kernel_(k), statement_(statement), stmt_(s), body_(body),
      added_(std::holds_alternative<Apply>(s.node) ? added_to(k, std::get<Apply>(s.node)) : -1),
      lane_axes_(lane_axes), step_axes_(step_axes),
      coords_(lane_axes.size(), std::vector<int64_t>(width, 0)), step_at_(step_axes.size(), 0) {
  for (auto& a : lane_axes_) lane_points_ *= a.extent;
  for (auto& a : step_axes_) step_points_ *= a.extent;
  if (!body) return;
  for (auto& r : body->refs) access(r, true);
  if (added_ >= 0) accesses_[size_t(added_)].adds = true;
  for (auto& g : body->guards) guards_.push_back(any(g));
  std::map<Id, int> reg_of;
  auto compile = [&](const std::vector<Id>& roots) {
    for (Id id : schedule(*k.pool, roots)) {
      if (reg_of.count(id)) continue;
      const expr::Term& t = (*k.pool)[id];
      check(t.op != Op::only && t.op != Op::or_else && t.op != Op::var,
            "a kernel body holds no absence and no monoid variable");
      if (t.op == Op::arg) {
        reg_of[id] = accesses_[size_t(t.whole)].reg;
      } else {
        reg_of[id] = int(regs_.size());
        regs_.emplace_back();
        std::fill(regs_.back().r, regs_.back().r + width, t.r);
        std::fill(regs_.back().i, regs_.back().i + width, t.whole);
      }
      Instr in{t.op, t.arity() ? (*k.pool)[t.args[0]].type : t.type, t.type, reg_of[id], -1, -1, -1, t.whole};
      int* operand[] = {&in.a, &in.b, &in.c};
      for (int x = 0; x < t.arity(); ++x) *operand[x] = reg_of.at(t.args[size_t(x)]);
      if (t.op != Op::literal) code_.push_back(in);
    }
  };
  if (body->when) {
    compile({*body->when});
    when_ = reg_of.at(*body->when);
  }
  when_end_ = code_.size();
  compile(body->values);
  for (Id id : body->values) values_.push_back(reg_of.at(id));
}
int Points::linear(const Affine& a, const std::vector<std::pair<int, int64_t>>& gathers) {
  Linear x;
  x.c = a.c;
  x.gathers = gathers;
  for (auto& term : a.terms) {
    auto same = [&](const TileAxis& t) { return t.var == term.first; };
    auto l = std::find_if(lane_axes_.begin(), lane_axes_.end(), same);
    auto s = std::find_if(step_axes_.begin(), step_axes_.end(), same);
    if (l != lane_axes_.end()) x.lane.emplace_back(int(l - lane_axes_.begin()), term.second);
    else if (s != step_axes_.end()) x.step.emplace_back(int(s - step_axes_.begin()), term.second);
    else x.outer.push_back(term);
  }
  linears_.push_back(std::move(x));
  return int(linears_.size()) - 1;
}
int Points::access(const Ref& r, bool operand) {
  Access a;
  a.ref = &r;
  a.memory = r.memory;
  const Memory& m = kernel_.memories[size_t(r.memory)];
  check(r.index.size() == m.shape.size(), "a reference with the rank of its memory");
  Affine flat;
  bool gathers = false;
  for (size_t d = 0; d < r.index.size(); ++d) {
    const Coordinate& c = r.index[d];
    for (auto& [g, k] : c.refs) {
      check(g >= 0 && size_t(g) < accesses_.size(), "a gather names an earlier operand");
      a.varies |= accesses_[size_t(g)].varies;
      gathers = true;
    }
    a.index.push_back(linear(c.affine, c.refs));
    a.varies |= !linears_.back().step.empty();
    flat = flat + m.strides[d] * c.affine;
  }
  if (!gathers) a.flat = linear(flat, {});
  if (operand) {
    a.reg = int(regs_.size());
    regs_.emplace_back();
    std::fill(regs_.back().r, regs_.back().r + width, 0.0);
    std::fill(regs_.back().i, regs_.back().i + width, int64_t(0));
  }
  accesses_.push_back(std::move(a));
  return int(accesses_.size()) - 1;
}
int Points::add(const Ref& r) {
  const int out = access(r, false);
  accesses_[size_t(out)].adds = added_ >= 0;
  return out;
}
int Points::bound(const Bounds& b) {
  std::vector<int> forms;
  for (auto& c : b) forms.push_back(linear(c.affine, c.refs));
  bounds_.push_back(std::move(forms));
  return int(bounds_.size()) - 1;
}
int Points::any(const std::vector<Bounds>& b) {
  std::vector<int> ids;
  for (auto& x : b) ids.push_back(bound(x));
  anys_.push_back(std::move(ids));
  return int(anys_.size()) - 1;
}
void Points::start(Machine& m, const int64_t* vars) {
  machine_ = &m;
  vars_ = vars;
  for (auto& x : linears_) {
    x.begin = x.c;
    x.now = 0;
    for (auto& [v, k] : x.outer) x.begin += k * vars[v];
  }
  for (auto& a : accesses_) {
    if (a.flat < 0) continue;
    a.safe = true;  // for every point of the box, dead ones too
    const auto& shape = kernel_.memories[size_t(a.memory)].shape;
    for (size_t d = 0; d < a.index.size(); ++d) {
      const Linear& x = linears_[size_t(a.index[d])];
      int64_t lo = x.begin, hi = x.begin;
      auto widen = [&](const std::vector<TileAxis>& axes, const std::vector<std::pair<int, int64_t>>& terms) {
        for (auto& [axis, k] : terms) (k < 0 ? lo : hi) += k * (axes[size_t(axis)].extent - 1);
      };
      widen(lane_axes_, x.lane);
      widen(step_axes_, x.step);
      a.safe &= lo >= 0 && hi < shape[d];
    }
  }
}
void Points::block(int64_t from, int n) {
  n_ = n;
  from_ = from;
  assign(from, n, -1);
  for (size_t d = lane_axes_.size(), inner = 1; d-- > 0; inner *= size_t(lane_axes_[d].extent)) {
    const int64_t extent = lane_axes_[d].extent, run = int64_t(inner);
    int64_t x = from / run % extent, left = run - from % run;
    for (int l = 0; l < n; ++l) {
      coords_[d][size_t(l)] = x;
      if (--left) continue;
      left = run;
      if (++x == extent) x = 0;
    }
  }
  for (auto& x : linears_) {
    std::fill(x.base, x.base + n, x.begin);
    for (auto& [axis, k] : x.lane) {
      const int64_t* c = coords_[size_t(axis)].data();
      for (int l = 0; l < n; ++l) x.base[l] += k * c[l];
    }
  }
  for (auto& a : accesses_) a.loaded = 0;
}
void Points::assign(int64_t from, int n, int64_t column) {
  if (!deal_.team) return machine_->deal(from, n);
  const int64_t teams = kernel_.lanes / deal_.team;
  int64_t columns = 1;
  for (size_t a = lead_; a < lane_axes_.size(); ++a) columns *= lane_axes_[a].extent;
  machine_->holders = deal_.each ? deal_.team : 1;
  for (int l = 0; l < n; ++l) {
    const int64_t row = (from + l) / columns, at = column >= 0 ? column : (from + l) % columns;
    machine_->lane_of[size_t(l)] = int(row % teams * deal_.team + (deal_.each ? 0 : at / deal_.run % deal_.team));
  }
}
void Points::finish() {
  if (!deal_.team) return;
  assign(from_, n_, 0);
  machine_->holders = deal_.team;
}
void Points::step(int64_t flat) {
  if (deal_.team) assign(from_, n_, flat);
  for (size_t d = step_axes_.size(); d-- > 0; flat /= step_axes_[d].extent)
    step_at_[d] = flat % step_axes_[d].extent;
  for (auto& x : linears_) {
    if (x.step.empty()) continue;
    x.now = 0;
    for (auto& [axis, k] : x.step) x.now += k * step_at_[size_t(axis)];
  }
  for (auto& a : accesses_)
    if (a.varies) a.loaded = 0;
}
int64_t Points::at(const Linear& x, int lane) const {
  int64_t v = x.base[lane] + x.now;
  for (auto& [g, k] : x.gathers) v += k * regs_[size_t(accesses_[size_t(g)].reg)].i[lane];
  return v;
}
Mask Points::holds(int bounds, Mask mask) {
  for (int f : bounds_[size_t(bounds)]) {
    if (!mask) break;
    const Linear& x = linears_[size_t(f)];
    for (auto& [g, k] : x.gathers) fetch(g, mask);
    Mask out = 0;
    each(mask, n_, [&](int l) { out |= Mask(at(x, l) >= 0) << l; });
    mask = out;
  }
  return mask;
}
Mask Points::holds_any(int any, Mask mask) {
  if (any < 0) return mask;
  Mask out = 0;
  for (int b : anys_[size_t(any)]) out |= holds(b, mask & ~out);
  return out;
}
void Points::fetch(int operand, Mask want) {
  Access& a = accesses_[size_t(operand)];
  want &= ~a.loaded;
  if (!want) return;
  a.loaded |= want;
  load(operand, want, regs_[size_t(a.reg)]);
}
Mask Points::address(const Access& a, Mask mask, int64_t* to) {
  if (a.flat >= 0) {
    const Linear& x = linears_[size_t(a.flat)];
    for (int l = 0; l < n_; ++l) to[l] = x.base[l] + x.now;
    if (a.safe) return mask;
  }
  for (int f : a.index)
    for (auto& [g, k] : linears_[size_t(f)].gathers) fetch(g, mask);
  const Memory& m = kernel_.memories[size_t(a.memory)];
  Mask inside = 0;
  each(mask, n_, [&](int l) {
    int64_t sum = 0;
    for (size_t d = 0; d < a.index.size(); ++d) {
      const int64_t v = at(linears_[size_t(a.index[d])], l);
      if (v < 0 || v >= m.shape[d]) return;
      sum += v * m.strides[d];
    }
    to[l] = sum;
    inside |= Mask(1) << l;
  });
  return inside;
}
void Points::load(int ref, Mask mask, Reg& into) {
  const Access& a = accesses_[size_t(ref)];
  int64_t where[width];
  const Mask inside = address(a, mask, where), beyond = mask & ~inside;
  if (beyond) {
    each(beyond, n_, [&](int l) {
      into.r[l] = 0;
      into.i[l] = 0;
    });
    if (!a.ref->checked) tell_outside(a, beyond, "reads ");
  }
  if (!inside) return;
  if (const auto t = machine_->load(a.memory, where, inside, n_, into, a.adds)) trouble(a, t);
}
void Points::store(int ref, Mask mask, const Reg& from) {
  if (!mask) return;
  const Access& a = accesses_[size_t(ref)];
  int64_t where[width];
  const Mask inside = address(a, mask, where), beyond = mask & ~inside;
  if (beyond) tell_outside(a, beyond, "writes ");
  if (!inside) return;
  if (const auto t = machine_->store(a.memory, where, inside, n_, from, a.adds)) trouble(a, t);
}
void Points::probe(int ref, Mask mask) {
  const Access& a = accesses_[size_t(ref)];
  if (a.safe || a.ref->checked) return;
  int64_t where[width];
  if (const Mask beyond = mask & ~address(a, mask, where)) tell_outside(a, beyond, "reads ");
}
void Points::tell_outside(const Access& a, Mask beyond, const char* verb) {
  machine_->report(Fault::outside, statement_, a.memory,
                   [&] { return verb + place(a, __builtin_ctzll(beyond)); });
}
void Points::trouble(const Access& a, const Machine::Trouble& t) {
  auto tell = [&](Fault::Kind kind, Mask lanes) {
    if (lanes) machine_->report(kind, statement_, a.memory, [&] { return place(a, __builtin_ctzll(lanes)); });
  };
  tell(Fault::unwritten, t.unwritten);
  tell(Fault::race, t.race);
  tell(Fault::lane_race, t.lane_race);
  tell(Fault::forbidden, t.forbidden);
}
std::string Points::place(const Access& a, int lane) {
  Text text(kernel_, Naming::own);
  std::string out = text.memory(a.memory) + "[";
  for (size_t d = 0; d < a.index.size(); ++d)
    out += (d ? ", " : "") + std::to_string(at(linears_[size_t(a.index[d])], lane));
  out += "] as " + text.ref(*a.ref, body_) + " at";
  for (size_t d = 0; d < lane_axes_.size(); ++d)
    out += " " + text.var(lane_axes_[d].var) + "=" + std::to_string(coords_[d][size_t(lane)]);
  for (size_t d = 0; d < step_axes_.size(); ++d)
    out += " " + text.var(step_axes_[d].var) + "=" + std::to_string(step_at_[d]);
  std::map<Var, bool> shown;
  for (int f : a.index)
    for (auto& [v, k] : linears_[size_t(f)].outer)
      if (shown.emplace(v, true).second) out += " " + text.var(v) + "=" + std::to_string(vars_[v]);
  return out + ", in: " + text.head(stmt_);
}
void Points::run(size_t from, size_t to, Mask mask) {
  for (size_t c = from; c < to; ++c) {
    const Instr& in = code_[c];
    if (in.op == Op::arg) {
      fetch(int(in.which), mask);
    } else if (in.op == Op::holds) {
      const Mask yes = holds_any(guards_[size_t(in.which)], mask);
      for (int l = 0; l < n_; ++l) regs_[size_t(in.dst)].i[l] = yes >> l & 1;
    } else if (in.op == Op::coord) {
      Reg& d = regs_[size_t(in.dst)];
      bool found = false;
      for (size_t x = 0; x < lane_axes_.size(); ++x)
        if (lane_axes_[x].var == in.which) std::copy_n(coords_[x].data(), n_, d.i), found = true;
      for (size_t x = 0; x < step_axes_.size(); ++x)
        if (step_axes_[x].var == in.which) std::fill(d.i, d.i + n_, step_at_[x]), found = true;
      if (!found) std::fill(d.i, d.i + n_, vars_[in.which]);
    } else {
      compute(in, regs_, n_, machine_->round);
    }
  }
}
Mask Points::evaluate(Mask mask) {
  if (!mask) return 0;
  run(0, when_end_, mask);
  if (when_ >= 0) {
    Mask out = 0;
    each(mask, n_, [&](int l) { out |= Mask(regs_[size_t(when_)].i[l] != 0) << l; });
    mask = out;
  }
  if (mask) run(when_end_, code_.size(), mask);
  return mask;
}

}  // namespace tang::kernel
