// Statements: which line starts one, and what each says.
#include <set>

#include "tang/text/parser.hpp"

namespace tang::text {

namespace {
constexpr int most_blocks = 16; // recurrences inside recurrences

bool starts(const std::vector<Token>& t, const char* word) {
  return t[0].kind == Token::name && !t[0].quoted && !t[0].symbol && t[0].field.empty() && t[0].text == word;
}

bool follows_name(const std::vector<Token>& t) { return t.size() > 2 && t[1].kind == Token::name; }

bool is_recurrence(const std::vector<Token>& t) {
  if (starts(t, "recur")) return true;
  return t.size() > 3 && t[0].kind == Token::name && t[1].kind == Token::mark && t[1].text == "=" &&
         t[2].text == "recur" && !t[2].quoted;
}

// What a line that could not be read would have defined.
void list_names(const std::vector<Token>& t, std::vector<std::string>& out) {
  static const std::set<std::string> leading = {"input",  "param", "state", "monoid", "emit", "next",
                                                "output", "recur", "axis",  "sym",    "grad"};
  int depth = 0;
  const bool keyword = t[0].kind == Token::name && !t[0].quoted && leading.count(t[0].text);
  for (size_t k = keyword ? 1 : 0; k + 1 < t.size(); ++k) {
    if (t[k].kind == Token::mark) {
      if (t[k].text == "=" || t[k].text == ":=" || (t[k].text == ":" && !depth)) return;
      if (t[k].text == "[") ++depth;
      if (t[k].text == "]") --depth;
    } else if (t[k].kind == Token::name && !depth) {
      out.push_back(t[k].text);
      if (keyword && t[0].text != "sym" && t[0].text != "axis" && t[0].text != "grad") return;
    }
  }
}

struct Blocks {
  std::vector<Diagnostic>& problems;
  File& file;

  void run(const Lines& lines, size_t from, size_t to, int depth, std::vector<Statement>& out) {
    if (from == to) return;
    const int indent = lines[from].indent;
    for (size_t k = from; k < to;) {
      size_t end = k + 1;
      while (end < to && lines[end].indent > indent) ++end;
      const bool block = is_recurrence(lines[k].tokens);
      std::vector<Token> tokens;
      bool broken = false;
      for (size_t l = k; l < (block ? k + 1 : end); ++l) {
        if (!tokens.empty()) tokens.pop_back();
        tokens.insert(tokens.end(), lines[l].tokens.begin(), lines[l].tokens.end());
        broken |= lines[l].broken;
      }
      const bool first =
          file.statements.empty() && &out == &file.statements && file.broken.empty() && !file.exact;
      if (first && tokens.size() == 2 && starts(tokens, "exact")) {
        file.exact = true;
      } else {
        if (!broken) broken = !statement(tokens, out);
        if (broken) {
          list_names(tokens, file.broken);
          for (size_t l = k + 1; l < end && block; ++l) list_names(lines[l].tokens, file.broken);
        } else if (block && k + 1 < end) {
          if (depth == most_blocks) {
            problems.push_back(problem("T0006", lines[k].tokens[0].where,
                                       "more than 16 recurrences inside one another", {},
                                       "write inner ones as lines of the step"));
            out.pop_back();
          } else {
            std::vector<Statement> inner;
            run(lines, k + 1, end, depth + 1, inner);
            out.back().block = std::move(inner);
          }
        }
      }
      k = end;
    }
  }

  bool statement(const std::vector<Token>& tokens, std::vector<Statement>& out) {
    try {
      Parser p{tokens};
      Statement s = p.statement(file.exact);
      if (p.peek().kind != Token::end)
        throw problem("T0008", p.peek().where, "the statement was over", {{p.found(), p.peek().where}},
                      "one statement a line; a line below goes on only where it is indented");
      out.push_back(std::move(s));
      return true;
    } catch (Diagnostic& d) {
      problems.push_back(std::move(d));
      return false;
    }
  }
};
} // namespace

File parse_syntax(const Lines& lines, std::vector<Diagnostic>& problems) {
  File out;
  Blocks{problems, out}.run(lines, 0, lines.size(), 0, out.statements);
  return out;
}

Statement Parser::statement(bool exact) {
  Statement s;
  s.where = peek().where;
  s.head = peek();
  const bool named = follows_name(tokens);
  if (starts(tokens, "sym") && named) return symbols(std::move(s));
  if (starts(tokens, "axis") && named) return axes(std::move(s));
  if (starts(tokens, "monoid")) return monoid(std::move(s));
  if (starts(tokens, "output") && named) return output(std::move(s));
  if (starts(tokens, "recur") && named) return recur(std::move(s));
  if ((starts(tokens, "input") || starts(tokens, "param") || starts(tokens, "state")) && named)
    return input(std::move(s));
  if (named && (starts(tokens, "next") || starts(tokens, "emit") ||
                (exact && (starts(tokens, "time") || starts(tokens, "arg") || starts(tokens, "carry")))))
    return part(std::move(s));
  if (named && starts(tokens, "grad")) return gradient(std::move(s));
  if (named && starts(tokens, "schedule")) {
    s.kind = Statement::later;
    at = tokens.size() - 1;
    return s;
  }
  return definition(std::move(s));
}

Statement Parser::symbols(Statement s) {
  s.kind = Statement::symbols;
  take();
  do {
    s.names.push_back(word("the name of a symbol"));
    if (!s.names.back().quoted && is_reserved(s.names.back().text))
      throw problem("T0107", s.names.back().where, "`" + s.names.back().text + "` is a word of the language",
                    {}, "choose another name");
    s.facts.emplace_back();
    while (is_mark("<=") || is_mark(">=") || is_mark("%")) {
      Fact f{take().text, {}, false};
      f.negative = accept("-");
      if (peek().kind != Token::number) expected("a whole number", "sym n <= 4096, m % 2");
      f.number = take();
      s.facts.back().push_back(f);
    }
  } while (accept(","));
  return s;
}

Statement Parser::axes(Statement s) {
  s.kind = Statement::axis;
  take();
  do {
    Dim d;
    const Token name = new_name("the name of an axis");
    s.names.push_back(name);
    expect(":", "and the extent of the axis");
    d.where = name.where;
    d.extent = expression();
    s.dims.push_back(std::move(d));
  } while (accept(","));
  return s;
}

Statement Parser::input(Statement s) {
  s.kind = Statement::input;
  take();
  s.names.push_back(new_name("the name of the input"));
  if (is_mark("[")) s.dims = dims();
  if (accept(":")) s.format = word("a format such as f32");
  s.sorted = accept_word("sorted");
  if (is_mark("=")) { // a state of a recurrence
    if (s.head.text != "state")
      expected("the end of the line", "only `state` inside a recurrence has a first value");
    take();
    s.value = expression();
  }
  return s;
}

Statement Parser::monoid(Statement s) {
  s.kind = Statement::monoid;
  take();
  s.names.push_back(peek().quoted ? word("the name of the monoid") : new_name("the name of the monoid"));
  const Where open = expect("(", "and the components");
  do {
    Component c{word("the name of a component"), {}};
    expect(":", "and the component's type");
    c.type = word("a type: real, index, bits or bool");
    s.components.push_back(c);
  } while (accept(","));
  close(")", open, "(");
  if (!accept_word("identity"))
    expected("`identity`", "monoid name(x: real) identity (0) combine (a, b) = (a.x + b.x)");
  const Where opened = expect("(", "and one literal a component");
  do s.identity.push_back(expression());
  while (accept(","));
  close(")", opened, "(");
  s.ordered = accept_word("ordered");
  s.unproved = accept_word("unproved");
  if (!accept_word("combine")) expected("`combine`", "combine (a, b) = ..");
  expect("(");
  s.left = new_name("the name of the left state");
  expect(",");
  s.right = new_name("the name of the right state");
  expect(")");
  expect("=");
  s.value = expression();
  return s;
}

Statement Parser::output(Statement s) {
  s.kind = Statement::output;
  take();
  do {
    s.names.push_back(word("the name of a tensor"));
    s.sources.push_back(s.names.back());
    if (accept("=")) s.sources.back() = peek().kind == Token::name ? take() : word("the name of a tensor");
  } while (accept(","));
  if (accept(":")) s.format = word("a format such as f32");
  return s;
}

Statement Parser::recur(Statement s) { // recur h over t: seq down if guard
  s.kind = Statement::recur;
  take();
  s.names.push_back(new_name("a name for the recurrence"));
  if (!accept_word("over")) expected("`over`", "recur h over t: steps");
  s.over = new_name("the time axis");
  expect(":", "and the number of steps");
  s.extent = disjunction();
  s.down = accept_word("down");
  if (accept_word("if")) s.domain = disjunction();
  return s;
}

Statement Parser::gradient(Statement s) { // grad dq, dk = d out by dout / d (q, k)
  static const char* form = "grad dx, dw = d loss / d (x, w)";
  s.kind = Statement::gradient;
  take();
  do s.names.push_back(new_name("a name for the gradient"));
  while (accept(","));
  expect("=");
  if (!accept_word("d")) expected("`d`", form);
  s.left = word("the tensor to differentiate");
  if (accept_word("by")) s.right = word("its adjoint, of its shape");
  expect("/");
  if (!accept_word("d")) expected("`d`", form);
  const bool list = is_mark("(");
  const Where open = list ? take().where : Where{};
  do s.sources.push_back(word("what to differentiate by"));
  while (list && accept(","));
  if (list) close(")", open, "(");
  return s;
}

Statement Parser::part(Statement s) {
  const std::string what = take().text;
  if (what == "time") {
    s.kind = Statement::time;
    s.names.push_back(word("the step's time input"));
    return s;
  }
  auto tensor = [&](const char* described) { return peek().kind == Token::name ? take() : word(described); };
  s.names.push_back(tensor("a name"));
  if (what == "carry") { // carry h from v2 next v3.1
    s.kind = Statement::carried;
    s.sources.resize(2);
    if (accept_word("from")) s.sources[0] = tensor("what the state starts from");
    if (!accept_word("next")) expected("`next`", "carry h from v2 next v3");
    s.sources[1] = tensor("the new value of the state");
    return s;
  }
  if (is_mark("[")) s.dims = dims();
  if (what == "arg") { // arg x[i1] from q[i0, i1]
    s.kind = Statement::arg;
    if (!accept_word("from")) expected("`from`", "arg x[i1] from q[i0, i1]");
    s.sources.push_back(tensor("a tensor"));
    s.outs.emplace_back();
    if (is_mark("[")) s.outs[0].view = dims();
    return s;
  }
  s.kind = what == "next" ? Statement::next : Statement::emit;
  if (accept_word("as")) { // emit v3[i1] as [view: extent, ..]
    s.outs.emplace_back();
    s.outs[0].view = dims();
    return s;
  }
  expect("=");
  s.value = expression();
  return s;
}

OutSpec Parser::out_spec() {
  OutSpec o;
  o.axes = dims();
  if (accept_word("as")) o.view = dims();
  return o;
}

Statement Parser::definition(Statement s) {
  s.kind = Statement::define;
  if (is_mark("(")) {
    const Where open = take().where;
    do s.names.push_back(new_name("a name"));
    while (accept(","));
    close(")", open, "(");
  } else {
    if (peek().kind != Token::name)
      expected("a statement", "name[axes] = expression, or a line that starts with input, output, ..");
    s.names.push_back(new_name("the name of a tensor"));
  }
  if (is_mark("[")) s.dims = dims();
  if (is_mark(":=")) {
    s.kind = Statement::store;
    take();
    s.value = expression();
    return s;
  }
  if (!accept("="))
    expected("`=`", is_mark(":") ? "inputs start with `input`: input name[dims] : format"
                                 : "name[axes] = expression");
  if (is_word("recur")) { // the exact form
    s.kind = Statement::recur;
    take();
    const Where open = expect("[", "and the time axis");
    s.over = new_name("the time axis");
    expect(":");
    s.extent = expression();
    close("]", open, "[");
    s.down = accept_word("down");
    if (accept_word("where")) s.domain = expression();
    return s;
  }
  s.value = expression();
  if (accept_word("where")) s.domain = expression();
  if (accept_word("to")) {
    if (is_mark("(")) {
      const Where open = take().where;
      do s.outs.push_back(out_spec());
      while (accept(","));
      close(")", open, "(");
    } else {
      s.outs.push_back(out_spec());
    }
  }
  return s;
}

} // namespace tang::text
