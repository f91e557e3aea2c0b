// The parser of one statement's tokens.
#pragma once
#include "tang/text/syntax.hpp"

namespace tang::text {

struct Parser {
  const std::vector<Token>& tokens;
  size_t at = 0;
  int depth = 0;

  const Token& peek(size_t k = 0) const;
  Token take();
  bool is_mark(const char* m, size_t k = 0) const;
  bool is_word(const char* w, size_t k = 0) const;
  bool accept(const char* m);
  bool accept_word(const char* w);
  std::string found() const;
  [[noreturn]] void expected(const std::string& what, const std::string& fix = "") const;
  Where expect(const char* m, const char* after = "");
  void close(const char* m, const Where& opened, const char* open);
  Token word(const std::string& what);
  Token new_name(const std::string& what);
  Token new_fold_name();

  ExprPtr expression(); // masks, below which: or, and, not, comparisons, | ^ & << >> + - * / %, unary, folds
  std::vector<Dim> dims();
  Statement statement(bool exact); // statement.cpp

private:
  struct Deeper;
  ExprPtr let();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr bit_or();
  ExprPtr bit_xor();
  ExprPtr bit_and();
  ExprPtr shift();
  ExprPtr sum();
  ExprPtr product();
  ExprPtr unary();
  ExprPtr primary();
  ExprPtr fold(const Token& name, Where from);
  ExprPtr chain(ExprPtr (Parser::*next)(), const std::vector<const char*>& marks);

  Statement symbols(Statement s);
  Statement axes(Statement s);
  Statement input(Statement s);
  Statement monoid(Statement s);
  Statement output(Statement s);
  Statement recur(Statement s);
  Statement gradient(Statement s);
  Statement part(Statement s);
  Statement definition(Statement s);
  OutSpec out_spec();
};

} // namespace tang::text
