#include "tang/kernel/expander.hpp"

#include <algorithm>

// The loop of one sum.
namespace tang::kernel::role {

// Blocks that all loops together go through, where that is known.
std::optional<int64_t> Expander::trips() const {
  const Affine own = last() - first();
  if (!own.terms.empty()) return {};
  int64_t n = ceil_div(own.c, step());
  for (auto* o : parts_.outer) {
    if (!(o->end - o->begin).terms.empty()) return {};
    n *= ceil_div((o->end - o->begin).c, o->step);
  }
  return n;
}

bool Expander::is_one_sum() const {
  return parts_.contracts.size() == 1 && contract_ring_[0] >= 0 && parts_.pipe->body.size() == 1 &&
         f_.lag > 0 && (parts_.outer.empty() || trips());
}

// Sums of integers are integers until the loop is over.
bool Expander::sums_integers() const {
  return std::any_of(parts_.contracts.begin(), parts_.contracts.end(), [&](auto& c) {
    return expr::type_of(k_.memories[size_t(c.node->b.memory)].format) != Type::real;
  });
}

// A loop of one contraction: nothing in it reads the result, so that `lag` of them stay in flight over the
// back edge. Loops around it become one with it: no statement names their variables.
void Expander::one_sum(Block& to) {
  const int64_t lag = f_.lag;
  auto block = [&](const Affine& before, Block& b) { // `before`: >= 0 once more than `lag` blocks ran
    put(b, Await{contract_ring_[0], true});
    issue(0, b);
    put(b, Finish{int(lag), {parts_.contracts[0].node->dst.memory}});
    put(b, When{before, {{Release{contract_ring_[0], int(1 + lag)}}}, {}});
  };
  Affine blocks = last() - first();
  int64_t each = step();
  if (parts_.outer.empty()) {
    loops(0, to, [&](bool, Block& b) { block(beyond(lag), b); });
  } else {
    Loop l{fresh("n"), constant(0), constant(*trips()), 1, {}};
    block(variable(l.v) - constant(lag), l.body);
    blocks = l.to, each = 1;
    put(to, std::move(l));
  }
  Finish end{0, {parts_.contracts[0].node->dst.memory}};
  if (sums_integers()) end.whole = p_.integers = end.tiles;
  put(to, std::move(end));
  for (int64_t x = lag; x > 0; --x)
    put(to, When{blocks - constant((x - 1) * each + 1), {{Release{contract_ring_[0], int(x)}}}, {}});
}

} // namespace tang::kernel::role
