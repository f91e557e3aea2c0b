// Operations with a quick form that is wrong for rare operands, for several copies of one body.
#include <algorithm>

#include "tang/emit/c_body.hpp"

namespace tang::emit {

using expr::Op;

bool BodyText::is_rare(Id id) const { return p_[id].op == Op::exp2 && vector_.at(id) && !u_.wide; }

bool BodyText::has_rare(int level) const {
  return std::any_of(order_.begin(), order_.end(), [&](Id id) { return level_.at(id) == level && is_rare(id); });
}

void BodyText::declare_together(const std::vector<BodyText*>& copies, int level, const std::string& note) {
  BodyText& one = *copies[0];
  for (size_t n = 0; n < one.order_.size(); ++n) {
    const Id id = one.order_[n];
    if (!one.is_declared_at(id, level)) continue;
    if (!one.is_rare(id) || copies.size() != 2) {
      for (auto* c : copies) c->declare_one(n, "");
      continue;
    }
    std::string of[2];
    for (size_t c = 0; c < 2; ++c) {
      of[c] = copies[c]->value(one.p_[id].args[0], true);
      copies[c]->names_[id] = copies[c]->name_of(n);
      one.u_.line("F " + copies[c]->names_[id] + " = tang_exp2_quickW(" + of[c] + ");");
      if (!note.empty()) one.u_.line(note + " = tang_far_alsoW(" + note + ", " + of[c] + ");");
    }
    if (!note.empty()) continue;
    one.u_.open("if (__builtin_expect(tang_far_of_2W(" + of[0] + ", " + of[1] + "), 0))");
    for (size_t c = 0; c < 2; ++c) one.u_.line(copies[c]->names_[id] + " = tang_exp2_farW(" + of[c] + ");");
    one.u_.close();
  }
}

} // namespace tang::emit
