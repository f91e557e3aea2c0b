#include "tang/kernel/expander.hpp"

#include <algorithm>

// One loop over the blocks of all segments: what differs between them stands there twice, under a test of the block.
namespace tang::kernel::role {

// The bodies of the loop, for each segment or, where a schedule says so, for all of them together.
void Expander::blocks(Block& to, const std::function<void(bool partial, Block&)>& body) {
  const bool tested = std::any_of(segments_.begin(), segments_.end(), [](auto& s) { return s.partial; });
  std::vector<const Segment*> full;
  for (auto& s : segments_)
    if (!s.partial && !(s.begin == s.end)) full.push_back(&s);
  if (!f_.one_loop || !tested || full.empty()) return loops(0, to, body);
  const Pipeline& p = *parts_.pipe;
  Loop l = p.reverse ? Loop{p.var, last() - constant(step()), first(), -step(), {}}
                     : Loop{p.var, first(), last(), step(), {}};
  const Affine at = variable(p.var);
  std::vector<Affine> each;
  for (auto* s : full) {
    const Var v = fresh("whole");
    put(l.body, role::Let{kernel::Let{v, kernel::Let::min, {at - s->begin, s->end - at - constant(1)}, 1, {}}});
    each.push_back(variable(v));
  }
  if (each.size() > 1) {
    const Var any = fresh("whole");
    put(l.body, role::Let{kernel::Let{any, kernel::Let::max, each, 1, {}}});
    each = {variable(any)};
  }
  whole_at_ = each[0];
  body(true, l.body);
  whole_at_.reset();
  put(to, std::move(l));
}

// The statement that was put last tests bounds; in a full block it does not.
void Expander::untested(const kernel::Stmt& own, Block& to) {
  const kernel::Stmt* full = in_block(own, false);
  if (full == &own || !std::get_if<Rows>(&to.back().node)) return;
  When w{*whole_at_, {}, {}};
  w.otherwise.push_back(std::move(to.back()));
  to.pop_back();
  if (full) put(w.then, by_row(*full));
  put(to, std::move(w));
}

} // namespace tang::kernel::role
