#include "tang/emit/cuda_keys.hpp"

namespace tang::emit {

using expr::Op;
using kernel::Selection;

namespace {
constexpr int64_t short_places = 65535; // complements of places are above 0, the identity's

std::string as(const char* stem, size_t k) { return stem + std::to_string(k); }
} // namespace

std::unique_ptr<FoldKeys> FoldKeys::of(Unit& u, const kernel::Fold& f, const BodyText& probe) {
  if (u.wide || f.accumulate) return nullptr;
  auto s = kernel::selection(*u.k.pool, f.combine, f.identity);
  if (!s) return nullptr;
  std::unique_ptr<FoldKeys> out(new FoldKeys(u, f, std::move(*s)));
  return out->fits(probe) ? std::move(out) : nullptr;
}

bool FoldKeys::is_identity(size_t k) const {
  const auto &v = (*u_.k.pool)[f_.body.values[size_t(s_.value[k])]],
             &i = (*u_.k.pool)[f_.body.values[size_t(s_.place[k])]];
  return v.op == Op::literal && v.r == f_.identity[size_t(s_.value[k])].r && i.op == Op::literal &&
         i.whole == INT64_MAX;
}

bool FoldKeys::fits(const BodyText& probe) {
  for (size_t k = 0; k < s_.value.size(); ++k) {
    if (is_identity(k)) continue;
    const Range r = probe.term_range(f_.body.values[size_t(s_.place[k])]);
    if (!r.known() || r.lo < 0 || r.hi >= INT32_MAX) return false;
    const auto& v = (*u_.k.pool)[f_.body.values[size_t(s_.value[k])]];
    const bool halves =
        v.op == Op::arg && u_.memory(f_.body.refs[size_t(v.whole)].memory).format == Format::bf16;
    short_ &= halves && r.hi < short_places;
  }
  return true;
}

void FoldKeys::start() {
  for (size_t k = 0; k < s_.value.size(); ++k)
    u_.line(std::string(type()) + " " + as("k", k) + " = " +
            (short_ ? "(int)0x807f0000u;" : "(int64_t)0x807fffff00000000ull;"));
}

// The state's pairs and those named `right`, of a term where `right` is empty.
void FoldKeys::join(const std::string& right) {
  const std::string none;
  std::vector<std::string> at; // empty: the identity, which comes last of all
  for (auto& n : s_.nodes) {
    if (n.kind == Selection::of_left) {
      at.push_back(as("k", size_t(n.a)));
    } else if (n.kind == Selection::of_right) {
      at.push_back(right.empty() && is_identity(size_t(n.a))
                       ? none
                       : as(right.empty() ? "y" : right.c_str(), size_t(n.a)));
    } else {
      const std::string &a = at[size_t(n.a)], &b = at[size_t(n.b)];
      if (a.empty() || b.empty()) {
        at.push_back(n.kind == Selection::last ? none : a.empty() ? b : a);
        continue;
      }
      const std::string x = u_.fresh("x");
      u_.line(std::string("const ") + type() + " " + x + " = " + a +
              (n.kind == Selection::first ? " > " : " < ") + b + " ? " + a + " : " + b + ";");
      at.push_back(x);
    }
  }
  for (size_t k = 0; k < s_.out.size();
       ++k) { // every name is read before it changes: a result is new, or stays
    const std::string& from = at[size_t(s_.out[k])];
    check(!from.empty(), "a selection forgets a pair of its state");
    u_.line(std::string("const ") + type() + " " + as("n", k) + " = " + from + ";");
  }
  for (size_t k = 0; k < s_.out.size(); ++k) u_.line(as("k", k) + " = " + as("n", k) + ";");
}

void FoldKeys::term(BodyText& t) {
  for (size_t k = 0; k < s_.value.size(); ++k) {
    if (is_identity(k)) continue;
    u_.line(std::string("const ") + type() + " " + as("y", k) + " = tang_" +
            (short_ ? "short_key(" : "key(") + (s_.largest ? "tang_rank(" : "tang_rank_down(") +
            t.value(f_.body.values[size_t(s_.value[k])], false) + "), " +
            number(short_ ? short_places : INT32_MAX) + " - (int)(" +
            t.value(f_.body.values[size_t(s_.place[k])], false) + "));");
  }
  join("");
}

void FoldKeys::settle(int64_t lanes) {
  for (int64_t d = lanes / 2; d; d /= 2) {
    u_.open("");
    for (size_t k = 0; k < s_.value.size(); ++k)
      u_.line(std::string("const ") + type() + " " + as("o", k) + " = __shfl_xor_sync(0xffffffffu, " +
              as("k", k) + ", " + number(d) + ");");
    join("o");
    u_.close();
  }
}

std::string FoldKeys::stored(size_t c) const {
  for (size_t k = 0; k < s_.value.size(); ++k) {
    const std::string key = short_ ? "short_key(" : "key(";
    if (size_t(s_.value[k]) == c)
      return std::string(s_.largest ? "tang_value_of_" : "-tang_value_of_") + key + as("k", k) + ")";
    if (size_t(s_.place[k]) == c) return "tang_place_of_" + key + as("k", k) + ")";
  }
  bug(__FILE__, __LINE__, "a component that is in no pair");
}

} // namespace tang::emit
