// A number for some terms of a pool, as quick as an array: walks over terms ask it for every operand. Its
// rows are borrowed from those that the thread has spare, so that nothing is allocated or cleared for a walk
// of a few terms in a large pool.
#pragma once
#include <utility>
#include <vector>

#include "tang/expr/pool.hpp"

namespace tang::expr {

class TermTable {
public:
  TermTable();
  ~TermTable();
  TermTable(const TermTable&) = delete;
  TermTable& operator=(const TermTable&) = delete;

  bool has(Id term) const { return term < rows_.size() && rows_[term].user == user_; }

  // Is it new? Then its number is 0.
  bool add(Id term) {
    if (has(term)) return false;
    set(term, 0);
    return true;
  }

  void set(Id term, Id number) {
    if (term >= rows_.size()) rows_.resize(size_t(term) + size_t(term) / 2 + 64);
    rows_[term] = {user_, number};
  }

  // Of a term that it has.
  Id operator[](Id term) const { return rows_[term].number; }

  // Of the operands of a term.
  std::array<Id, 3> of(const Term& t) const {
    std::array<Id, 3> out{};
    for (size_t k = 0; k < size_t(t.arity()); ++k) out[k] = rows_[t.args[k]].number;
    return out;
  }

  // Terms that a walk has begun, each with its next operand: empty between walks.
  std::vector<std::pair<Id, int>> open;

private:
  struct Row {
    uint32_t user = 0; // the table that wrote the row
    Id number = 0;
  };

  struct Spare;
  static std::vector<Spare>& spare();
  std::vector<Row> rows_;
  uint32_t user_ = 1; // of these rows
};

// Calls `visit` for the distinct subterms of `root` that `seen` has not, operands before users, and not for
// those below what `stop` says. Without recursion: a term may be a hundred thousand deep. `visit` may make
// terms.
template <class Stop, class Visit>
void walk(const Pool& p, Id root, TermTable& seen, const Stop& stop, const Visit& visit) {
  auto& open = seen.open;
  auto enter = [&](Id id) {
    if (seen.add(id)) open.push_back({id, stop(id) ? p[id].arity() : 0});
  };
  enter(root);
  while (!open.empty()) {
    const auto [id, next] = open.back();
    if (next < p[id].arity()) {
      ++open.back().second;
      enter(p[id].args[size_t(next)]);
    } else {
      open.pop_back();
      visit(id);
    }
  }
}

template <class Visit> void walk(const Pool& p, Id root, const Visit& visit) {
  TermTable seen;
  walk(p, root, seen, [](Id) { return false; }, visit);
}

} // namespace tang::expr
