// What a file says, before it means anything: expressions and statements with spans.
#pragma once
#include <memory>

#include "tang/text/token.hpp"

namespace tang::text {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Dim { // `name: extent`, a coordinate, or either alone
  ExprPtr at;
  ExprPtr extent;
  Where where;
};

struct Binding { // let a = e, (b, c) = e
  std::vector<Token> names;
  ExprPtr value;
};

// One struct for all expressions: which fields are used is said by `kind`.
struct Expr {
  enum Kind {
    number,  // name
    word,    // name
    read,    // name[args]
    call,    // name(args), also a built-in function before one operand: iota c
    fold,    // name[axes] args: `name` is the monoid
    chain,   // args[0] ops[0] args[1] ops[1] ...: left to right
    compare, // args[0] ops[0] args[1] ops[1] ...: all hold
    mask,    // args[0], then ops: "if" / "else" with args[k]
    unary,   // ops[0] args[0]: - or not
    let,     // bindings, args[0]
    tuple,   // (args)
    guard    // {args[0]}; no args: {always} or {never} by name
  } kind = number;

  Where where;
  Token name;
  std::vector<ExprPtr> args;
  std::vector<std::string> ops;
  std::vector<Dim> axes;
  std::vector<Binding> bindings;
};

struct OutSpec { // to [axes] as [view: extent, ..]
  std::vector<Dim> axes;
  std::vector<Dim> view;
};

struct Fact { // n <= 8, n >= 1, n % 4
  std::string op;
  Token number;
  bool negative = false;
};

struct Component { // of a monoid
  Token name;
  Token type;
};

struct Statement {
  enum Kind {
    exact,
    symbols,
    axis,
    input,
    define,
    store,
    output,
    monoid,
    recur,
    gradient,
    next,
    emit,
    time,
    arg,
    carried,
    later
  } kind = exact;

  Where where;
  Token head;               // the keyword, or what it names
  std::vector<Token> names; // what it defines, in order; of input: one
  std::vector<std::vector<Fact>> facts;
  std::vector<Dim> dims; // left side
  ExprPtr value;
  ExprPtr domain;             // where ..
  std::vector<OutSpec> outs;  // to ..
  std::vector<Token> sources; // output a = source; state x from source; d source / d (..)
  Token format;
  std::vector<Component> components;
  std::vector<ExprPtr> identity;
  Token left, right; // of combine; of a gradient: the loss, and its adjoint where one is given
  bool ordered = false, unproved = false, down = false;
  bool sorted = false;          // of an input
  Token over;                   // the time axis
  ExprPtr extent;               // of the time axis
  std::vector<Statement> block; // of a recurrence
};

bool is_reserved(const std::string& word);   // may not name anything without quotes
bool is_contextual(const std::string& word); // a keyword in some places only; printed names avoid these too
bool is_function(const std::string& word);
bool is_fold(const std::string& word); // sum max min any all count logsumexp
const std::vector<std::string>& function_names();

// Statements in order. A statement that cannot be read is reported, and the names it would have defined are
// listed in `broken` so that later lines do not complain about them.
struct File {
  bool exact = false;
  std::vector<Statement> statements;
  std::vector<std::string> broken;
};

File parse_syntax(const Lines& lines, std::vector<Diagnostic>& problems);

Diagnostic problem(const char* code, Where where, std::string headline, std::vector<Note> facts = {},
                   std::string fix = "");
// The known word nearest to `word`, or nothing when none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);
Where joined(const Where& a, const Where& b); // from a's start to b's end when both are on one line

} // namespace tang::text
