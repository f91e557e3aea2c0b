// Folds that count sorted keys: the range in which the number lies is halved until it is one.
#include "tang/emit/c_body.hpp"

namespace tang::emit {

void print_search(Unit& u, const kernel::Fold& f) {
  const Dialect& d = u.d;
  const TileAxis& along = f.folded[0];
  const std::string type = d.type(Type::index, u.wide), test = conjunction(u, f.body, f.bounds);
  const std::string from = u.fresh("from"), to = u.fresh("to"), below = u.fresh("below");
  u.ranges[size_t(along.var)] = {0, std::max<int64_t>(0, along.extent - 1)};
  u.open(f.bounds.empty() ? "" : "if (" + test + ")");
  u.line(d.variable(type, from, "0"));
  u.line(d.variable(type, to, number(along.extent)));
  u.open("while (" + from + " < " + to + ")");
  u.line(d.constant(d.integer, name(along.var), "(" + from + " + " + to + ") / 2"));
  u.line(d.variable(type, below, "0"));
  std::vector<Id> roots = f.body.values;
  if (f.body.when) roots.push_back(*f.body.when);
  BodyText t(u, &f.body, roots, {}, -1);
  t.declare(0, "", f.body.when ? BodyText::condition : BodyText::both);
  if (f.body.when) {
    u.open("if (" + t.value(*f.body.when, false) + ")");
    t.declare(0, "", BodyText::rest);
  }
  u.line(below + " = " + t.value(f.body.values[0], false) + ";");
  if (f.body.when) u.close();
  u.open("if (" + below + " != 0)");
  u.line(from + " = " + name(along.var) + " + 1;");
  u.close();
  u.open("else");
  u.line(to + " = " + name(along.var) + ";");
  u.close();
  u.close();
  print_store(u, f.dst[0], from, Type::index, false, -1, "", false, false, gathered_offset(u, f.body, f.dst[0]));
  u.close();
}

} // namespace tang::emit
