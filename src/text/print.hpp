// Printing, shared by its files: names, extents, forms, terms.
#pragma once
#include <functional>
#include <map>
#include <set>

#include "tang/ir/extent.hpp"
#include "tang/text/text.hpp"

namespace tang::text {

// Which words of one graph (and of the steps inside it) need quotes or a `$`.
struct Spelling {
  std::set<std::string> tensors; // every tensor's name
  std::string name(const std::string& n) const;
  std::string symbol(const std::string& n) const;
  std::string extent(const ir::Extent& e) const;
};

std::string quoted(const std::string& n);
bool is_placeholder(const std::string& n); // i3, t3: the printer's own axes and lets

// Terms of one node, or of a combine. Shared and deep subterms get a name; `lets` holds them in order.
struct TermPrinter {
  const ir::Pool& pool;
  const Spelling& spelling;
  std::function<std::string(const expr::Term&)> leaf; // coord, var, holds, arg
  std::map<ir::Id, std::string> named = {};
  std::vector<std::string> lets = {};
  size_t first_let = 0;

  // Counts uses below the roots and names what needs it. `is_long`: leaves that are worth a name when used
  // twice.
  void prepare(const std::vector<ir::Id>& roots, const std::function<bool(const expr::Term&)>& is_long);
  std::string term(ir::Id id, int level); // parenthesised when it binds looser than `level`
  std::string with_lets(const std::string& body) const;

private:
  std::string spelled(ir::Id id, int& level);
  std::string literal(const expr::Term& t, bool typed);
  std::string operand(ir::Id id, ir::Id sibling, int level);
};

} // namespace tang::text
