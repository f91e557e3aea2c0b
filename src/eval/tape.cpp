#include "tang/eval/tape.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tang/base/number.hpp"

namespace tang::eval {

using expr::Op;
using expr::Term;
using ir::Id;

Tape::Tape(const ir::Graph& g, const ir::Comp& comp, const std::vector<Id>& roots, bool with_domain)
    : g_(g), comp_(comp), read_reg_(comp.args.size(), -1) {
  if (with_domain) domain_ = guard(comp.domain);
  domain_end_ = code_.size();
  std::unordered_map<Id, int> at;
  for (Id id : expr::schedule(g.pool, roots)) {
    const Term& t = g.pool[id];
    if (t.op == Op::arg) {
      at[id] = read(int(t.whole));
      continue;
    }
    if (t.op == Op::holds) {
      at[id] = guard(comp.guards[size_t(t.whole)]);
      continue;
    }
    Instr in{t.op, t.arity() ? g.pool[t.args[0]].type : t.type, t.type, reg(), -1, -1, -1, t.r, t.whole, {},
             {}};
    int* operand[] = {&in.a, &in.b, &in.c};
    for (int k = 0; k < t.arity(); ++k) *operand[k] = at.at(t.args[size_t(k)]);
    at[id] = in.dst;
    emit(std::move(in));
  }
  for (Id id : roots) roots_.push_back(at.at(id));
}

void Tape::emit(Instr in) {
  bool varies = in.op == Op::coord && size_t(in.whole) >= comp_.points.size();
  for (int x : {in.a, in.b, in.c}) varies |= x >= 0 && varies_[size_t(x)];
  auto of_form = [&](int f) {
    varies |= !forms_[size_t(f)].folds.empty();
    for (auto& [r, k] : forms_[size_t(f)].regs) varies |= bool(varies_[size_t(r)]);
  };
  for (int f : in.forms) of_form(f);
  for (auto& piece : in.pieces)
    for (int f : piece) of_form(f);
  varies_.resize(size_t(registers_), 0);
  varies_[size_t(in.dst)] = varies;
  code_.push_back(std::move(in));
}

int Tape::form(const ir::Form& f) {
  FormCode out{f.c.value(), {}, {}, {}};
  const int p = int(comp_.points.size());
  for (auto& [a, k] : f.axes) (a < p ? out.points : out.folds).emplace_back(a < p ? a : a - p, k);
  for (auto& [a, k] : f.args) out.regs.emplace_back(read(a), k);
  forms_.push_back(std::move(out));
  return int(forms_.size()) - 1;
}

int Tape::read(int arg) {
  if (read_reg_[size_t(arg)] >= 0) return read_reg_[size_t(arg)];
  const ir::Arg& a = comp_.args[size_t(arg)];
  Instr in{Op::arg, Type::index, g_.type(a.from), -1, -1, -1, -1, 0, arg, {}, {}};
  for (auto& f : a.view) in.forms.push_back(form(f));
  in.dst = reg();
  read_reg_[size_t(arg)] = in.dst;
  emit(std::move(in));
  return code_.back().dst;
}

int Tape::guard(const ir::Domain& d) {
  Instr in{Op::holds, Type::boolean, Type::boolean, -1, -1, -1, -1, 0, 0, {}, {}};
  for (auto& piece : d) {
    in.pieces.emplace_back();
    for (auto& f : piece) in.pieces.back().push_back(form(f));
  }
  in.dst = reg();
  emit(std::move(in));
  return code_.back().dst;
}

Tape::Run::Run(const Tape& t, std::vector<Source> s)
    : tape(t), sources(std::move(s)), regs(size_t(t.registers_)), fold_at(t.comp_.folds.size(), 0),
      in_range(t.comp_.args.size(), 0), lie(t.comp_.args.size(), Lie::scattered),
      uniform(size_t(t.registers_), 0), spread(size_t(t.registers_), 0),
      may_be_partial(size_t(t.registers_), 0) {
  coords.assign(t.comp_.points.size(), std::vector<int64_t>(lanes, 0));
  base.assign(t.forms_.size(), std::vector<int64_t>(lanes, 0));
  flat.assign(t.comp_.args.size(), {});
  const auto extents = t.comp_.extents();
  for (auto& in : t.code_) {
    bool partial = false;
    for (int x : {in.a, in.b, in.c}) partial |= x >= 0 && may_be_partial[size_t(x)];
    auto forms_partial = [&](const std::vector<int>& forms) {
      for (int f : forms)
        for (auto& [r, k] : t.forms_[size_t(f)].regs) partial |= bool(may_be_partial[size_t(r)]);
    };
    if (in.op == Op::only) partial = true;
    if (in.op == Op::holds)
      for (auto& p : in.pieces) forms_partial(p);
    if (in.op == Op::arg) {
      const Source& src = sources[size_t(in.whole)];
      const ir::Arg& a = t.comp_.args[size_t(in.whole)];
      bool safe = true;
      for (size_t d = 0; d < a.view.size(); ++d) {
        const auto [lo, hi] = ir::range(a.view[d], extents, {});
        safe &= lo >= 0 && hi < src.array->shape[d];
      }
      in_range[size_t(in.whole)] = safe;
      forms_partial(in.forms);
      partial |= !safe || !src.array->state.empty();
    }
    may_be_partial[size_t(in.dst)] = partial;
  }
}

void Tape::Run::set_points() {
  for (size_t f = 0; f < base.size(); ++f) {
    int64_t* b = base[f].data();
    std::fill(b, b + count, tape.forms_[f].c);
    for (auto& [a, k] : tape.forms_[f].points) {
      const int64_t* x = coords[size_t(a)].data();
      for (int l = 0; l < count; ++l) b[l] += k * x[l];
    }
  }
  for (auto& in : tape.code_) {
    if (in.op != Op::arg || !in_range[size_t(in.whole)]) continue;
    auto& at = flat[size_t(in.whole)];
    at.assign(size_t(count), 0);
    for (size_t k = 0; k < in.forms.size(); ++k) {
      const int64_t *b = base[size_t(in.forms[k])].data(), stride = sources[size_t(in.whole)].strides[k];
      for (int l = 0; l < count; ++l) at[size_t(l)] += stride * b[l];
    }
    bool same = true, neighbours = true;
    for (int l = 1; l < count; ++l) {
      same &= at[size_t(l)] == at[0];
      neighbours &= at[size_t(l)] == at[0] + l;
    }
    lie[size_t(in.whole)] = same ? Lie::same : neighbours ? Lie::neighbours : Lie::scattered;
  }
  find_uniform();
  for (auto& in : tape.code_)
    if (!tape.varies_[size_t(in.dst)]) tape.evaluate(*this, in);
  if (tape.domain_ >= 0 && !live_varies()) alive_ = alive();
}

void Tape::Run::find_uniform() {
  auto same = [&](const std::vector<int64_t>& v) {
    return std::all_of(v.begin(), v.begin() + count, [&](int64_t x) { return x == v[0]; });
  };
  std::fill(spread.begin(), spread.end(), 0);
  auto form_is = [&](int f) {
    bool u = same(base[size_t(f)]);
    for (auto& [r, k] : tape.forms_[size_t(f)].regs) u = u && uniform[size_t(r)];
    return u;
  };
  auto need = [&](int reg) {
    if (reg >= 0) spread[size_t(reg)] = 1;
  };
  for (auto& in : tape.code_) {
    bool u = in.op != Op::coord || size_t(in.whole) >= coords.size() || same(coords[size_t(in.whole)]);
    if (in.op == Op::arg && in_range[size_t(in.whole)]) {
      u = lie[size_t(in.whole)] == Lie::same;
    } else {
      for (int f : in.forms) u = u && form_is(f);
    }
    for (auto& piece : in.pieces)
      for (int f : piece) u = u && form_is(f);
    for (int x : {in.a, in.b, in.c}) u = u && (x < 0 || uniform[size_t(x)]);
    uniform[size_t(in.dst)] = u;
    if (u) continue;
    for (int x : {in.a, in.b, in.c}) need(x);
    auto need_form = [&](int f) {
      for (auto& [r, k] : tape.forms_[size_t(f)].regs) need(r);
    };
    for (int f : in.forms) need_form(f);
    for (auto& piece : in.pieces)
      for (int f : piece) need_form(f);
  }
  for (int r : tape.roots_) need(r);
  need(tape.domain_);
}

bool Tape::Run::alive() const {
  const int64_t* here = live().i;
  return std::any_of(here, here + count, [](int64_t x) { return x != 0; });
}

bool Tape::Run::evaluate_domain() {
  for (size_t k = 0; k < tape.domain_end_; ++k)
    if (tape.varies_[size_t(tape.code_[k].dst)]) tape.evaluate(*this, tape.code_[k]);
  return tape.domain_ < 0 || (live_varies() ? alive() : alive_);
}

void Tape::Run::evaluate() {
  for (size_t k = tape.domain_end_; k < tape.code_.size(); ++k)
    if (tape.varies_[size_t(tape.code_[k].dst)]) tape.evaluate(*this, tape.code_[k]);
}

namespace {
// The operations that most terms are made of; false: none of them.
bool real_lanes(Op op, const double* a, const double* b, LaneValues d, int n) {
  auto one = [&](auto f) {
    for (int l = 0; l < n; ++l) d.r[l] = f(a[l]);
    return true;
  };
  auto two = [&](auto f) {
    for (int l = 0; l < n; ++l) d.r[l] = f(a[l], b[l]);
    return true;
  };
  auto test = [&](auto f) {
    for (int l = 0; l < n; ++l) d.i[l] = f(a[l], b[l]);
    return true;
  };
  switch (op) {
  case Op::add: return two([](double x, double y) { return x + y; });
  case Op::mul: return two([](double x, double y) { return x * y; });
  case Op::neg: return one([](double x) { return -x; });
  case Op::recip: return one([](double x) { return 1 / x; });
  case Op::sqrt: return one([](double x) { return std::sqrt(x); });
  case Op::ratio: return two([](double x, double y) { return y == 0 ? 0 : x / y; });
  case Op::max: return two([](double x, double y) { return x != x ? x : y != y ? y : x < y ? y : x; });
  case Op::min: return two([](double x, double y) { return x != x ? x : y != y ? y : y < x ? y : x; });
  case Op::exp2: return one([](double x) { return std::exp2(x); });
  case Op::less: return test([](double x, double y) { return x < y; });
  case Op::equal: return test([](double x, double y) { return x == y; });
  default: return false;
  }
}

bool whole_lanes(Op op, const int64_t* a, const int64_t* b, LaneValues d, int n) {
  auto two = [&](auto f) {
    for (int l = 0; l < n; ++l) d.i[l] = int64_t(f(uint64_t(a[l]), uint64_t(b[l])));
    return true;
  };
  switch (op) {
  case Op::add: return two([](uint64_t x, uint64_t y) { return x + y; });
  case Op::mul: return two([](uint64_t x, uint64_t y) { return x * y; });
  case Op::less: return two([](uint64_t x, uint64_t y) { return int64_t(x) < int64_t(y); });
  case Op::equal: return two([](uint64_t x, uint64_t y) { return x == y; });
  case Op::both: return two([](uint64_t x, uint64_t y) { return uint64_t(x && y); });
  case Op::either: return two([](uint64_t x, uint64_t y) { return uint64_t(x || y); });
  case Op::flip: return two([](uint64_t x, uint64_t) { return uint64_t(!x); });
  case Op::to_real:
    for (int l = 0; l < n; ++l) d.r[l] = double(a[l]);
    return true;
  default: return false;
  }
}
} // namespace

void compute_lanes(Op op, Type type, LaneOperands a, LaneOperands b, LaneValues d, int n) {
  if (type == Type::real ? real_lanes(op, a.r, b.r, d, n) : whole_lanes(op, a.i, b.i, d, n)) return;
  for (int l = 0; l < n; ++l) {
    const Value v =
        expr::compute(op, {type, State::present, a.r[l], a.i[l]}, {type, State::present, b.r[l], b.i[l]});
    d.r[l] = v.r;
    d.i[l] = v.i;
  }
}

namespace {
void merge_states(const Reg* operands[], const bool partial[], int k, Reg& d, int n) {
  std::fill(d.s, d.s + n, uint8_t(State::present));
  for (int x = 0; x < k; ++x)
    if (partial[x])
      for (int l = 0; l < n; ++l) {
        const uint8_t s = operands[x]->s[l]; // absent beats fault beats present
        if (s == uint8_t(State::absent) || (s && d.s[l] != uint8_t(State::absent))) d.s[l] = s;
      }
}
} // namespace

int64_t Tape::form_at(const Run& run, int form, int lane, uint8_t& state) const {
  const FormCode& f = forms_[size_t(form)];
  int64_t v = run.base[size_t(form)][size_t(lane)];
  for (auto& [a, k] : f.folds) v += k * run.fold_at[size_t(a)];
  for (auto& [r, k] : f.regs) {
    const Reg& x = run.regs[size_t(r)];
    if (run.may_be_partial[size_t(r)] && x.s[lane]) {
      const bool absent = state == uint8_t(State::absent) || x.s[lane] == uint8_t(State::absent);
      state = uint8_t(absent ? State::absent : State::fault);
    } else {
      v = add_saturated(v, mul_saturated(k, x.i[lane]));
    }
  }
  return v;
}

namespace {
template <class T>
void load(const std::vector<T>& from, const int64_t* at, int64_t offset, Tape::Run::Lie lie, T* to, int n) {
  const T* base = from.data() + offset;
  if (lie == Tape::Run::Lie::same)
    std::fill(to, to + n, base[at[0]]);
  else if (lie == Tape::Run::Lie::neighbours)
    std::copy_n(base + at[0], n, to);
  else
    for (int l = 0; l < n; ++l) to[l] = base[at[l]];
}
} // namespace

void Tape::evaluate_read(Run& run, const Instr& in) const {
  Reg& d = run.regs[size_t(in.dst)];
  const int n = run.width(in.dst);
  const Source& src = run.sources[size_t(in.whole)];
  const Array& from = *src.array;
  if (!run.in_range[size_t(in.whole)]) return evaluate_far_read(run, in);
  int64_t offset = 0;
  for (size_t k = 0; k < in.forms.size(); ++k)
    for (auto& [a, c] : forms_[size_t(in.forms[k])].folds)
      offset += src.strides[k] * c * run.fold_at[size_t(a)];
  const int64_t* at = run.flat[size_t(in.whole)].data();
  const Run::Lie lie = run.lie[size_t(in.whole)];
  if (from.type == Type::real)
    load(from.r, at, offset, lie, d.r, n);
  else
    load(from.i, at, offset, lie, d.i, n);
  if (!from.state.empty()) load(from.state, at, offset, lie, d.s, n);
}

// A read that may be outside its array: each coordinate is compared with its extent.
void Tape::evaluate_far_read(Run& run, const Instr& in) const {
  Reg& d = run.regs[size_t(in.dst)];
  const int n = run.width(in.dst);
  const Source& src = run.sources[size_t(in.whole)];
  const Array& from = *src.array;
  int64_t at[lanes];
  std::fill(at, at + n, 0);
  std::fill(d.s, d.s + n, uint8_t(State::present));
  uint8_t outside[lanes];
  std::fill(outside, outside + n, 0);
  for (size_t k = 0; k < in.forms.size(); ++k) {
    const FormCode& f = forms_[size_t(in.forms[k])];
    const auto extent = uint64_t(from.shape[k]);
    int64_t x[lanes], moved = 0;
    for (auto& [a, c] : f.folds) moved += c * run.fold_at[size_t(a)];
    if (f.regs.empty()) {
      const int64_t* b = run.base[size_t(in.forms[k])].data();
      for (int l = 0; l < n; ++l) x[l] = b[l] + moved;
    } else {
      for (int l = 0; l < n; ++l) x[l] = form_at(run, in.forms[k], l, d.s[l]);
    }
    for (int l = 0; l < n; ++l) {
      outside[l] |= uint64_t(x[l]) >= extent;
      at[l] += src.strides[k] * (outside[l] ? 0 : x[l]);
    }
  }
  for (int l = 0; l < n; ++l) {
    d.r[l] = 0;
    d.i[l] = 0;
    if (d.s[l] == uint8_t(State::present) && outside[l]) d.s[l] = uint8_t(State::fault);
    if (d.s[l] != uint8_t(State::present)) continue;
    if (from.type == Type::real)
      d.r[l] = from.r[size_t(at[l])];
    else
      d.i[l] = from.i[size_t(at[l])];
    if (!from.state.empty()) d.s[l] = from.state[size_t(at[l])];
  }
}

// A bound whose uniform is absent does not hold. False beats fault within a piece; a fault is kept unless
// another piece holds.
void Tape::evaluate_holds(Run& run, const Instr& in) const {
  Reg& d = run.regs[size_t(in.dst)];
  const int n = run.width(in.dst);
  bool plain = in.pieces.size() == 1;
  for (auto& piece : in.pieces)
    for (int f : piece) plain &= forms_[size_t(f)].regs.empty();
  if (plain) { // one conjunction of affine bounds: the common case, without states
    std::fill(d.i, d.i + n, int64_t(1));
    std::fill(d.s, d.s + n, uint8_t(State::present));
    for (int f : in.pieces[0]) {
      int64_t moved = 0;
      for (auto& [a, k] : forms_[size_t(f)].folds) moved += k * run.fold_at[size_t(a)];
      const int64_t* b = run.base[size_t(f)].data();
      for (int l = 0; l < n; ++l) d.i[l] &= int64_t(b[l] + moved >= 0);
    }
    return;
  }
  for (int l = 0; l < n; ++l) {
    bool holds = false, fault = false;
    for (auto& piece : in.pieces) {
      bool unknown = false;
      holds = std::all_of(piece.begin(), piece.end(), [&](int f) {
        uint8_t state = uint8_t(State::present);
        const int64_t v = form_at(run, f, l, state);
        const bool faults = state == uint8_t(State::fault);
        unknown |= faults;
        return faults || (!state && v >= 0);
      });
      fault |= holds && unknown;
      if ((holds = holds && !unknown)) break;
    }
    d.i[l] = holds;
    d.s[l] = uint8_t(!holds && fault ? State::fault : State::present);
  }
}

// Which operand is read differs by lane.
void Tape::evaluate_choice(Run& run, const Instr& in) const {
  Reg& d = run.regs[size_t(in.dst)];
  const int n = run.width(in.dst);
  auto partial = [&](int r) { return r >= 0 && run.may_be_partial[size_t(r)]; };
  const bool pa = partial(in.a), pb = partial(in.b), pc = partial(in.c), pd = partial(in.dst);
  const Reg &a = run.regs[size_t(in.a)], &b = run.regs[size_t(in.b)];
  constexpr auto absent = uint8_t(State::absent), present = uint8_t(State::present);
  if (in.op == Op::only) {
    if (in.out == Type::real)
      std::copy_n(b.r, n, d.r);
    else
      std::copy_n(b.i, n, d.i);
    for (int l = 0; l < n; ++l) {
      const uint8_t as = pa ? a.s[l] : present, bs = pb ? b.s[l] : present;
      d.s[l] = as == absent || (!as && !a.i[l]) ? absent : as && !bs ? as : bs;
    }
    return;
  }
  // select: the first operand says which; or_else: the second where the first is absent.
  const bool selects = in.op == Op::select;
  const Reg &x = selects ? b : a, &y = selects ? run.regs[size_t(in.c)] : b;
  const bool px = selects ? pb : pa, py = selects ? pc : pb;
  uint8_t first[lanes];
  for (int l = 0; l < n; ++l) first[l] = selects ? a.i[l] != 0 : !(pa && a.s[l] == absent);
  if (in.out == Type::real)
    for (int l = 0; l < n; ++l) d.r[l] = first[l] ? x.r[l] : y.r[l];
  else
    for (int l = 0; l < n; ++l) d.i[l] = first[l] ? x.i[l] : y.i[l];
  if (!pd) return;
  for (int l = 0; l < n; ++l) {
    const uint8_t taken = first[l] ? (px ? x.s[l] : present) : py ? y.s[l] : present;
    d.s[l] = selects && pa && a.s[l] ? a.s[l] : taken;
  }
}

void Tape::evaluate(Run& run, const Instr& in) const {
  Reg& d = run.regs[size_t(in.dst)];
  const int n = run.width(in.dst);
  switch (in.op) {
  case Op::literal:
    std::fill(d.r, d.r + n, in.r);
    std::fill(d.i, d.i + n, in.whole);
    break;
  case Op::coord: {
    const size_t p = comp_.points.size(), a = size_t(in.whole);
    if (a < p)
      std::copy_n(run.coords[a].data(), n, d.i);
    else
      std::fill(d.i, d.i + n, run.fold_at[a - p]);
    break;
  }
  case Op::var: bug(__FILE__, __LINE__, "a monoid variable in a body");
  case Op::arg: evaluate_read(run, in); break;
  case Op::holds: evaluate_holds(run, in); break;
  case Op::select:
  case Op::only:
  case Op::or_else: evaluate_choice(run, in); break;
  default: evaluate_op(run, in);
  }
  if (n == run.count || !run.spread[size_t(in.dst)]) return;
  if (in.out == Type::real)
    std::fill(d.r + 1, d.r + run.count, d.r[0]);
  else
    std::fill(d.i + 1, d.i + run.count, d.i[0]);
  if (run.may_be_partial[size_t(in.dst)]) std::fill(d.s + 1, d.s + run.count, d.s[0]);
}

void Tape::evaluate_op(Run& run, const Instr& in) const {
  Reg& d = run.regs[size_t(in.dst)];
  const int n = run.width(in.dst), second = in.b >= 0 ? in.b : in.a;
  auto partial = [&](int r) { return bool(run.may_be_partial[size_t(r)]); };
  Reg &a = run.regs[size_t(in.a)], &b = run.regs[size_t(second)];
  compute_lanes(in.op, in.in, {a.r, a.i}, {b.r, b.i}, {d.r, d.i}, n);
  if (!partial(in.dst)) return;
  const Reg* operands[] = {&a, &b};
  const bool flags[] = {partial(in.a), partial(second)};
  merge_states(operands, flags, 2, d, n);
  if (in.op != Op::both && in.op != Op::either) return;
  for (int l = 0; l < n; ++l) // a decided side beats a fault: guards commute
    if (d.s[l] == uint8_t(State::fault))
      for (int x = 0; x < 2; ++x) {
        const uint8_t s = flags[x] ? operands[x]->s[l] : 0;
        if (!s && bool(operands[x]->i[l]) == (in.op == Op::either)) {
          d.s[l] = 0;
          d.i[l] = in.op == Op::either;
        }
      }
}

} // namespace tang::eval
