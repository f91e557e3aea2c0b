#include "tang/emit/cuda_halves.hpp"

#include <cmath>

#include "tang/emit/gpu_fold_terms.hpp"

namespace tang::emit {

namespace {
constexpr int64_t most_kept = 8; // runs of a lane, which are looked at twice

bool is_half(Format f) { return f == Format::bf16 || f == Format::f16; }
} // namespace

std::optional<Halves> Halves::of(const Walk& w, int64_t ref) {
  const Ref& r = w.body.refs[size_t(ref)];
  const Halves out(w, ref);
  if (w.u.wide || w.deal.run % 2 || w.deal.each || r.checked || !is_half(out.memory().format)) return {};
  if (!w.packed(r.memory) && !w.moves_at_once(r) && !w.moves_beside(r)) return {};
  return out;
}

std::string Halves::type() const { return expr::row(memory().format).name; }

std::string Halves::words() const {
  const int m = w_->body.refs[size_t(ref_)].memory;
  if (!w_->packed(m)) return "(const uint32_t*)&" + w_->run_of(ref_);
  return w_->registers(m) + " + (rr * " + number(w_->runs()) + " + c) * " + number(w_->deal.run / 2);
}

std::string Halves::float_of(const std::string& h) const { return "tang_from_" + type() + "(" + h + ")"; }

std::string Halves::extreme(bool largest, const std::string& h) const {
  return std::string(largest ? "tang_max_run_" : "tang_min_run_") + type() + "<" + number(w_->deal.run / 2) + ">(" + h +
         ", " + words() + ")";
}

std::string Halves::infinity(bool largest) const {
  const bool wide = memory().format == Format::bf16;
  return largest ? wide ? "0xff80ff80u" : "0xfc00fc00u" : wide ? "0x7f807f80u" : "0x7c007c00u";
}

std::string Halves::joined(bool largest, const std::string& h) const {
  return std::string(largest ? "tang_max1(" : "tang_min1(") + float_of("(uint16_t)" + h) + ", " +
         float_of("(uint16_t)(" + h + " >> 16)") + ")";
}

std::optional<FoldHalves> FoldHalves::of(const Walk& w, const kernel::Fold& f) {
  const kernel::Pool& p = *w.u.k.pool;
  const expr::Term &join = p[f.combine[0]], &value = p[f.body.values[0]];
  const bool largest = join.op == Op::max;
  if (f.combine.size() != 1 || (!largest && join.op != Op::min) || join.type != Type::real || value.op != Op::arg) return {};
  if (p[join.args[0]].op != Op::var || p[join.args[1]].op != Op::var || join.args[0] == join.args[1]) return {};
  if (!std::isinf(f.identity[0].r) || (f.identity[0].r > 0) == largest || f.body.when || !f.partial.empty()) return {};
  const auto h = Halves::of(w, value.whole);
  if (!h) return {};
  return FoldHalves(w, *h, largest);
}

void FoldHalves::start() const { w_->u.line("uint32_t h0 = " + h_.infinity(largest_) + ";"); }

void FoldHalves::run() const { w_->u.line("h0 = " + h_.extreme(largest_, "h0") + ";"); }

void FoldHalves::finish(const std::string& acc) const {
  w_->u.line(acc + " = " + (largest_ ? "tang_max1(" : "tang_min1(") + acc + ", " + h_.joined(largest_, "h0") + ");");
}

std::unique_ptr<FoldPlaces> FoldPlaces::of(Walk& w, const kernel::Fold& f, const BodyText& probe) {
  const kernel::Pool& p = *w.u.k.pool;
  if (f.accumulate || f.combine.size() != 2 || f.body.when || !f.partial.empty() || w.runs() > most_kept) return nullptr;
  auto s = kernel::selection(p, f.combine, f.identity);
  if (!s || s->value.size() != 1) return nullptr;
  const expr::Term& value = p[f.body.values[size_t(s->value[0])]];
  const Id place = f.body.values[size_t(s->place[0])];
  const Range r = probe.term_range(place);
  if (value.op != Op::arg || !r.known() || r.lo < 0 || r.hi >= INT32_MAX || slope(p, place, w.inner()) != 1) return nullptr;
  const auto h = Halves::of(w, value.whole);
  if (!h) return nullptr;
  return std::unique_ptr<FoldPlaces>(new FoldPlaces(w, f, std::move(*s), *h, value.whole));
}

std::string FoldPlaces::stored(size_t component) const {
  return int(component) == s_.value[0] ? "k0" : "(p0 == INT32_MAX ? INT64_MAX : (int64_t)p0)";
}

int FoldPlaces::open_runs(const std::string& row, BodyText& t, bool load) {
  w_.u.open(row.empty() ? "" : "if (" + row + ")");
  w_.declare_rows(t);
  w_.open_run(true);
  const std::string run = w_.tests(f_.limits, Walk::run, false);
  w_.u.open(run.empty() ? "" : "if (" + run + ")");
  if (load) w_.load_runs(t, true);
  return 4;
}

void FoldPlaces::print(const std::string& row) {
  w_.u.line("float k0 = " + w_.u.d.literal(f_.identity[size_t(s_.value[0])], false) + ";");
  w_.u.line("int p0 = INT32_MAX;");
  w_.u.line("uint32_t h[" + number(w_.runs()) + "];");
  if (is_loaded()) w_.u.line(w_.run_type(w_.u.memory(f_.body.refs[size_t(ref_)].memory)) + " " + w_.run_of(ref_) + "[" + number(w_.runs()) + "];"), w_.turn = "[c]";
  values(row);
  places(row);
}

void FoldPlaces::values(const std::string& row) {
  Unit& u = w_.u;
  const std::string join = s_.largest ? "tang_max" : "tang_min";
  u.line("uint32_t h0 = " + h_.infinity(s_.largest) + ";");
  BodyText t(u, &f_.body, f_.body.values, w_.levels(), -1);
  int open = open_runs(row, t, is_loaded());
  u.line("h[c] = " + h_.extreme(s_.largest, h_.infinity(s_.largest)) + ";");
  u.line("h0 = " + join + "_halves_" + h_.type() + "(h0, h[c]);");
  for (; open; --open) u.close();
  u.line("k0 = " + join + "1(k0, " + h_.joined(s_.largest, "h0") + ");");
  settle("k0", join + "1");
}

void FoldPlaces::places(const std::string& row) {
  Unit& u = w_.u;
  BodyText t(u, &f_.body, f_.body.values, w_.levels(), -1);
  if (is_loaded()) t.name_ref(int(ref_), h_.float_of(w_.run_of(ref_) + ".v[e]"));
  int open = open_runs(row, t, false);
  const std::string order = s_.largest ? " < k0" : " > k0";
  // A NaN, of the run or of the row, is no reason to pass it by.
  u.open("if (!(" + h_.float_of("(uint16_t)h[c]") + order + " && " + h_.float_of("(uint16_t)(h[c] >> 16)") + order + "))");
  u.line("const int e = 0;");
  u.line(w_.d.constant(w_.d.integer, name(w_.inner()), name(w_.inner()) + "_0"));
  w_.declare_element(t, BodyText::both);
  u.line("const int at = tang_first_" + h_.type() + "<" + number(w_.deal.run / 2) + ">(" + h_.words() + ", k0);");
  u.line("if (at < " + number(w_.deal.run) + ") p0 = min(p0, (int)(" + t.value(f_.body.values[size_t(s_.place[0])], false) + ") + at);");
  u.close();
  for (; open; --open) u.close();
  settle("p0", "min");
}

void FoldPlaces::settle(const std::string& name, const std::string& of) {
  for (int64_t d = w_.team() / 2; d; d /= 2)
    w_.u.line(name + " = " + of + "(" + name + ", __shfl_xor_sync(0xffffffffu, " + name + ", " + number(d) + "));");
}

} // namespace tang::emit
