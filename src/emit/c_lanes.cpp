// What a fold says of its lanes: each beside another, and what its destination held before.
#include "tang/emit/c_body.hpp"

namespace tang::emit {

std::string swapped(const Unit& u, Type t, int apart, const std::string& x) {
  const std::string call = (u.wide ? "tang_dswap" : "tang_swap") + std::to_string(apart) + "(";
  if (t == Type::boolean)
    return (u.wide ? "tang_dmask_of((L)" : "tang_mask_of((I)") + call +
           (u.wide ? "(D)tang_dmask_ints(" : "(F)tang_mask_ints(") + x + ")))";
  if (t == Type::real) return call + x + ")";
  return "((" + value_type(t, u.wide, true) + ")" + call + (u.wide ? "(D)" : "(F)") + x + "))";
}

void declare_old(Unit& u, const std::string& as, const Ref& dst, Type t, Var lane, const std::string& mask) {
  const Memory& m = u.memory(dst.memory);
  const std::string base = "m" + std::to_string(dst.memory);
  const Affine at = offset(u, dst);
  const int64_t k = lane >= 0 ? coefficient(at, lane) : 0;
  const std::string type = value_type(t, u.wide, lane >= 0);
  if (lane < 0)
    return u.line("const " + type + " " + as + " = " + load_element(u, m.format, base + "[" + text(at) + "]") + ";");
  if (k == 1 && mask.empty() && has_vector_access(u, m.format))
    return u.line("const " + type + " " + as + " = " + load_vector(u, m.format, base + " + " + text(at)) + ";");
  const std::string one = load_element(u, m.format, base + "[" + text(at) + " + l * " + number(k) + "]");
  const bool boolean = t == Type::boolean; // read as integers, then a mask
  const std::string into = boolean ? as + "_ints" : as;
  u.line((boolean ? u.wide ? "L" : "I" : type) + " " + into + ";");
  u.line("for (int l = 0; l < " + number(u.lanes) + "; ++l) " + into + "[l] = " +
         (mask.empty() ? "" : at_mask(u, mask) + " ? ") + (boolean ? "-" : "") + one + (mask.empty() ? "" : " : 0") +
         ";");
  if (boolean)
    u.line("const " + type + " " + as + " = " + (u.wide ? "tang_dmask_of(" : "tang_mask_of(") + into + ");");
}

} // namespace tang::emit
