// Expressions by recursive descent; depth is capped, chains are loops.
#include "tang/text/parser.hpp"

#include <algorithm>

namespace tang::text {

Diagnostic problem(const char* code, Where where, std::string headline, std::vector<Note> facts,
                   std::string fix) {
  return {Diagnostic::error, code, where, std::move(headline), std::move(facts), std::move(fix)};
}

Where joined(const Where& a, const Where& b) {
  if (a.line != b.line) return a;
  Where out = a;
  out.length = std::max(a.length, b.column + b.length - a.column);
  return out;
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() > 40) return "";
  std::string best;
  size_t least = word.size() < 3 ? 2 : word.size() < 6 ? 3 : 4;
  for (auto& k : known) {
    if (k.size() > 40 || k.size() + least <= word.size() || word.size() + least <= k.size()) continue;
    std::vector<size_t> row(k.size() + 1);
    for (size_t j = 0; j <= k.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= k.size(); ++j) {
        const size_t change = diagonal + (word[i - 1] != k[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = k;
    }
  }
  return best;
}

namespace {
const std::vector<std::string> reserved = {"input",  "param", "state", "sym",   "axis",   "output",
                                           "monoid", "recur", "fold",  "let",   "in",     "if",
                                           "else",   "and",   "or",    "not",   "true",   "false",
                                           "inf",    "nan",   "MAX",   "where", "always", "never"};
const std::vector<std::string> contextual = {"exact",   "time", "next",     "emit",  "arg",      "from",
                                             "over",    "down", "as",       "to",    "identity", "combine",
                                             "ordered", "unproved", "grad", "schedule", "carry", "step"};
const std::vector<std::string> functions = {
    "exp",     "exp2",     "log",      "log2",      "sqrt",     "sin",     "cos",        "tanh",
    "sigmoid", "silu",     "softplus", "relu",      "square",   "erf",     "gelu",       "gelu_tanh",
    "elu",     "recip",    "abs",      "floor",     "is_nan",   "real",    "index",      "bits",
    "iota",    "max",      "min",      "select",    "ratio",    "atan2",   "power",      "only",
    "or_else", "add",      "mul",      "neg",       "div",      "mod",     "less",       "equal",
    "both",    "either",   "flip",     "bit_and",   "bit_or",   "bit_xor", "shift_left", "shift_right",
    "to_real", "to_index", "to_bits",  "real_bits", "floordiv", "ceildiv"};
const std::vector<std::string> folds = {"sum", "max", "min", "any", "all", "count", "logsumexp"};

bool in(const std::vector<std::string>& words, const std::string& w) {
  return std::find(words.begin(), words.end(), w) != words.end();
}

constexpr int most_depth = 120;
} // namespace

bool is_contextual(const std::string& w) { return in(contextual, w); }

bool is_function(const std::string& w) { return in(functions, w); }

bool is_fold(const std::string& w) { return in(folds, w); }

bool is_reserved(const std::string& w) { return in(reserved, w) || in(functions, w) || in(folds, w); }

const std::vector<std::string>& function_names() { return functions; }

// ---- tokens
// --------------------------------------------------------------------------------------------------------
const Token& Parser::peek(size_t k) const { return tokens[std::min(at + k, tokens.size() - 1)]; }

Token Parser::take() {
  const Token t = peek();
  if (at + 1 < tokens.size()) ++at;
  return t;
}

bool Parser::is_mark(const char* m, size_t k) const {
  return peek(k).kind == Token::mark && peek(k).text == m;
}

bool Parser::is_word(const char* w, size_t k) const {
  return peek(k).kind == Token::name && !peek(k).quoted && !peek(k).symbol && peek(k).field.empty() &&
         peek(k).text == w;
}

bool Parser::accept(const char* m) {
  if (!is_mark(m)) return false;
  take();
  return true;
}

bool Parser::accept_word(const char* w) {
  if (!is_word(w)) return false;
  take();
  return true;
}

std::string Parser::found() const {
  const Token& t = peek();
  if (t.kind == Token::end) return "the line ends here";
  if (t.kind == Token::number) return "found a number";
  return "found `" + shown(t.text) + "`";
}

void Parser::expected(const std::string& what, const std::string& fix) const {
  throw problem("T0004", peek().where, "expected " + what, {{found(), peek().where}},
                fix.empty() ? "the line goes on with " + what : fix);
}

Where Parser::expect(const char* m, const char* after) {
  if (!is_mark(m)) expected(std::string("`") + m + "`" + (*after ? std::string(" ") + after : ""));
  return take().where;
}

void Parser::close(const char* m, const Where& opened, const char* open) {
  if (accept(m)) return;
  if (peek().kind == Token::end)
    throw problem("T0005", opened, std::string("`") + open + "` is not closed", {{"opened here", opened}},
                  std::string("add `") + m + "`; a line goes on below only where it is indented");
  expected(std::string("`") + m + "` or `,`");
}

Token Parser::word(const std::string& what) {
  if (peek().kind != Token::name || !peek().field.empty()) expected(what);
  return take();
}

Token Parser::new_name(const std::string& what) {
  Token t = word(what);
  if (t.symbol)
    throw problem("T0107", t.where, "`$` marks the use of a symbol, not a name", {}, "leave the `$` out");
  if (!t.quoted && is_reserved(t.text))
    throw problem("T0107", t.where, "`" + t.text + "` is a word of the language",
                  {{"used as a name here", t.where}}, "choose another name, or quote it: \"" + t.text + "\"");
  return t;
}

// ---- expressions
// ---------------------------------------------------------------------------------------------------
namespace {
ExprPtr make(Expr::Kind kind, Where where) {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->where = where;
  return e;
}
} // namespace

struct Parser::Deeper {
  Parser& p;

  explicit Deeper(Parser& parser) : p(parser) {
    if (++p.depth > most_depth)
      throw problem("T0006", p.peek().where, "an expression nested more than 120 deep", {},
                    "name the inner parts with let, or on lines of their own");
  }

  ~Deeper() { --p.depth; }
};

ExprPtr Parser::chain(ExprPtr (Parser::*next)(), const std::vector<const char*>& marks) {
  ExprPtr first = (this->*next)();
  ExprPtr out;
  for (;;) {
    const char* found_mark = nullptr;
    for (const char* m : marks)
      if (is_mark(m) || is_word(m)) found_mark = m;
    if (!found_mark) break;
    take();
    if (!out) {
      out = make(Expr::chain, first->where);
      out->args.push_back(std::move(first));
    }
    out->ops.push_back(found_mark);
    out->args.push_back((this->*next)());
    out->where = joined(out->where, out->args.back()->where);
  }
  return out ? std::move(out) : std::move(first);
}

ExprPtr Parser::expression() {
  Deeper deeper(*this);
  if (is_word("let")) return let();
  ExprPtr first = disjunction(), out;
  while (is_word("if") || is_word("else")) {
    if (!out) {
      out = make(Expr::mask, first->where);
      out->args.push_back(std::move(first));
    }
    out->ops.push_back(take().text);
    out->args.push_back(disjunction());
    out->where = joined(out->where, out->args.back()->where);
  }
  return out ? std::move(out) : std::move(first);
}

ExprPtr Parser::let() {
  ExprPtr out = make(Expr::let, take().where);
  do {
    Binding b;
    if (is_mark("(")) {
      const Where open = take().where;
      do b.names.push_back(new_name("a name"));
      while (accept(","));
      close(")", open, "(");
    } else {
      b.names.push_back(new_name("a name after `let`"));
    }
    expect("=", "after the name");
    b.value = expression();
    out->bindings.push_back(std::move(b));
  } while (accept(","));
  if (!accept_word("in")) expected("`in` or `,`", "let a = .., b = .. in ..");
  out->args.push_back(expression());
  out->where = joined(out->where, out->args[0]->where);
  return out;
}

ExprPtr Parser::disjunction() { return chain(&Parser::conjunction, {"or"}); }

ExprPtr Parser::conjunction() { return chain(&Parser::negation, {"and"}); }

ExprPtr Parser::negation() {
  if (!is_word("not")) return comparison();
  Deeper deeper(*this);
  ExprPtr out = make(Expr::unary, peek().where);
  out->ops.push_back(take().text);
  out->args.push_back(negation());
  out->where = joined(out->where, out->args[0]->where);
  return out;
}

ExprPtr Parser::comparison() {
  ExprPtr out = chain(&Parser::bit_or, {"<", "<=", ">", ">=", "==", "!="});
  if (out->kind == Expr::chain &&
      (out->ops[0][0] == '<' || out->ops[0][0] == '>' || out->ops[0] == "==" || out->ops[0] == "!=") &&
      out->ops[0] != "<<" && out->ops[0] != ">>")
    out->kind = Expr::compare;
  return out;
}

ExprPtr Parser::bit_or() { return chain(&Parser::bit_xor, {"|"}); }

ExprPtr Parser::bit_xor() { return chain(&Parser::bit_and, {"^"}); }

ExprPtr Parser::bit_and() { return chain(&Parser::shift, {"&"}); }

ExprPtr Parser::shift() { return chain(&Parser::sum, {"<<", ">>"}); }

ExprPtr Parser::sum() { return chain(&Parser::product, {"+", "-"}); }

ExprPtr Parser::product() { return chain(&Parser::unary, {"*", "/", "%"}); }

ExprPtr Parser::unary() {
  Deeper deeper(*this);
  if (is_mark("-")) {
    ExprPtr out = make(Expr::unary, peek().where);
    out->ops.push_back(take().text);
    out->args.push_back(unary());
    out->where = joined(out->where, out->args[0]->where);
    return out;
  }
  const bool plain = peek().kind == Token::name && !peek().quoted && !peek().symbol && peek().field.empty();
  if (plain && peek().text == "fold") {
    const Where from = take().where;
    return fold(new_fold_name(), from);
  }
  if (plain && is_fold(peek().text) && is_mark("[", 1)) {
    const Token name = take();
    return fold(name, name.where);
  }
  if (plain && is_function(peek().text) && !is_mark("(", 1)) { // iota c, real x[i]
    ExprPtr out = make(Expr::call, peek().where);
    out->name = take();
    out->args.push_back(unary());
    out->where = joined(out->where, out->args[0]->where);
    return out;
  }
  return primary();
}

Token Parser::new_fold_name() {
  if (peek().kind != Token::name || !peek().field.empty()) expected("the name of a monoid after `fold`");
  return take();
}

ExprPtr Parser::fold(const Token& name, Where from) {
  ExprPtr out = make(Expr::fold, from);
  out->name = name;
  out->axes = dims();
  out->args.push_back(product());
  out->where = joined(out->where, out->args[0]->where);
  return out;
}

std::vector<Dim> Parser::dims() {
  if (!is_mark("[")) expected("`[`");
  const Where open = take().where;
  std::vector<Dim> out;
  if (accept("]")) return out;
  do {
    Dim d;
    d.at = expression();
    d.where = d.at->where;
    if (accept(":")) {
      d.extent = expression();
      d.where = joined(d.where, d.extent->where);
    }
    out.push_back(std::move(d));
  } while (accept(","));
  close("]", open, "[");
  return out;
}

ExprPtr Parser::primary() {
  const Token t = peek();
  if (t.kind == Token::number) {
    ExprPtr out = make(Expr::number, take().where);
    out->name = t;
    return out;
  }
  if (is_mark("(")) {
    const Where open = take().where;
    ExprPtr first = expression();
    if (!is_mark(",")) {
      close(")", open, "(");
      return first;
    }
    ExprPtr out = make(Expr::tuple, open);
    out->args.push_back(std::move(first));
    while (accept(",")) out->args.push_back(expression());
    out->where = joined(open, peek().where);
    close(")", open, "(");
    return out;
  }
  if (is_mark("{")) {
    const Where open = take().where;
    ExprPtr out = make(Expr::guard, open);
    if ((is_word("always") || is_word("never")) && is_mark("}", 1))
      out->name = take();
    else
      out->args.push_back(expression());
    out->where = joined(open, peek().where);
    close("}", open, "{");
    return out;
  }
  if (t.kind != Token::name) expected("an expression");
  const bool plain = !t.quoted && !t.symbol;
  if (plain && is_reserved(t.text) && !is_function(t.text) && !is_fold(t.text) && t.text != "true" &&
      t.text != "false" && t.text != "inf" && t.text != "nan" && t.text != "MAX")
    expected("an expression");
  take();
  ExprPtr out = make(Expr::word, t.where);
  out->name = t;
  const bool touches =
      peek().where.line == t.where.line && peek().where.column == t.where.column + t.where.length;
  if (plain && is_mark("(") && (touches || is_function(t.text))) {
    out->kind = Expr::call;
    const Where open = take().where;
    if (!is_mark(")")) {
      do out->args.push_back(expression());
      while (accept(","));
    }
    out->where = joined(t.where, peek().where);
    close(")", open, "(");
    return out;
  }
  if (is_mark("[")) {
    out->kind = Expr::read;
    const Where open = take().where;
    if (!is_mark("]")) {
      do out->args.push_back(expression());
      while (accept(","));
    }
    out->where = joined(t.where, peek().where);
    close("]", open, "[");
  }
  return out;
}

} // namespace tang::text
