// Text of kernels and of their parts: canonical names for identity, the kernel's own names for messages.
#pragma once
#include <map>

#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

enum class Naming : uint8_t { canonical, own };

class Text {
public:
  Text(const Kernel& k, Naming naming) : k_(k), naming_(naming) {}

  std::string kernel();
  std::string head(const Stmt& s); // one line: what the statement is, without what lies inside
  std::string ref(const Ref& r, const Body* body = nullptr);
  std::string affine(const Affine& a);
  std::string var(Var v);
  std::string memory(int m);

private:
  std::string coordinate(const Coordinate& c, const Body* body);
  std::string all(const Bounds& b, const Body* body);
  std::string any(const std::vector<Bounds>& b, const Body* body);
  std::string axes(const std::vector<TileAxis>& a, int vector = -1);
  std::string declare(int m);
  std::string leaf(const expr::Term& t, const Body* body);
  std::string term(Id id, const Body* body);
  std::string name_shared(const std::vector<Id>& roots, const Body* body, const std::string& pad);
  std::string body(const Body& b, const std::string& pad);
  std::string block(const Block& b, const std::string& pad);
  std::string inside(const Stmt& s, const std::string& pad);

  const Kernel& k_;
  Naming naming_;
  std::map<Var, int> vars_;         // in order of first use
  std::vector<int> tiles_;          // likewise
  std::map<Id, std::string> named_; // terms of the statement at hand that are used more than once
};

} // namespace tang::kernel
