// Monoids as printed rows: what they range over, and the theorem that a fold may be split.
#pragma once
#include <set>

#include "tang/ir/surface.hpp"

namespace tang::prove {

// A self-contained file that proves one theorem, or several.
struct File {
  std::string name, text; // without folder, with ".v"
  int theorems = 0;
};

// Theorems in files of many: loading a prover costs more than most proofs. Each text is printed once.
class Book {
public:
  Book(std::string name, std::string imports) : name_(std::move(name)), imports_(std::move(imports)) {}

  void add(const std::string& text,
           const std::string& theorem); // NAME in the text becomes the theorem's name

  const std::vector<File>& files() const { return files_; }

private:
  std::string name_, imports_;
  std::vector<File> files_;
  std::set<std::string> known_;
};

// The row as `combine` is traced, before operands are ordered; `name` becomes the Coq name and the file's.
// Refused: a combine with an operation that has no row.
Result<File> monoid_file(const ir::MonoidSpec& m, const std::string& name);

} // namespace tang::prove
