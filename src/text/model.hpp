// One graph being read: the file's, or a recurrence's step. Names in view, and the builder below them.
#pragma once
#include <map>
#include <set>

#include "tang/ir/builder_state.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/ir/recurrence.hpp"
#include "tang/text/syntax.hpp"

namespace tang::text {

struct Silent {}; // the cause was reported already

struct Split { // axis s as divisor * outer + inner
  int64_t divisor;
  ir::Axis outer, inner;
};

// What an expression may be at once: a scalar, an index form (coordinate, extent, side of a bound), a guard.
struct Meaning {
  std::optional<ir::Scalar> scalar;
  std::optional<ir::Index> form;
  std::optional<ir::Guard> guard;
  std::shared_ptr<Split> split;

  bool is_plain() const { return scalar && !scalar->builder(); }

  bool is_extent() const { return form && form->axes.empty() && form->values.empty(); }

  bool is_axis() const {
    return form && !scalar && form->axes.size() == 1 && form->axes[0].second == 1 && form->values.empty() &&
           form->c == ir::Extent(0);
  }
};

Meaning number_value(double v);

struct Named {
  std::vector<ir::Port> ports;
  Where where;
  bool state = false; // a donated input
};

// A monoid of the file: its combine is a term over var leaves in a pool of its own.
struct MonoidDecl {
  ir::MonoidSpec spec;
  Where where;
};

struct Model {
  // `step`: the builder of a recurrence's step; without one the model has its own.
  Model(const char* file_name, bool is_exact, Model* around, std::map<std::string, MonoidDecl>& known,
        std::vector<Diagnostic>& all_problems, ir::Builder* step = nullptr)
      : own(step ? nullptr : std::make_unique<ir::Builder>()), builder(step ? *step : *own), file(file_name),
        exact(is_exact), outer(around), monoids(known), problems(all_problems) {}

  std::unique_ptr<ir::Builder> own;
  ir::Builder& builder;
  const char* file;
  bool exact;
  Model* outer;
  std::map<std::string, MonoidDecl>& monoids;
  std::vector<Diagnostic>& problems;
  std::map<std::string, Named> tensors;

  struct FileAxis {
    ir::Axis axis;
    Where where;
  };

  std::map<std::string, FileAxis> axes; // declared for the whole file or step
  std::set<std::string> broken;         // their definitions failed
  std::string time;                     // of a step

  struct Output {
    std::string name;
    ir::Port port;
    ir::Format format;
  };

  std::vector<Output> outputs;
  std::vector<uint32_t> depths; // of the pool's terms
  size_t terms = 0;

  ir::Builder::State& state() { return builder.state(); }

  bool knows(const std::string& name) const { return tensors.count(name) || (outer && outer->knows(name)); }

  ir::Tensor tensor(const Token& name); // of this graph, or of one around it

  ir::Port port(const Token& name) { return tensor(name).port; }

  void define(const Token& name, std::vector<ir::Port> ports, bool again = false);
  ir::Extent extent_of(const Expr& e);
  void run(std::vector<Statement>& statements);

private:
  void symbols(const Statement& s);
  void axis(const Statement& s);
  void input(const Statement& s);
  void monoid(const Statement& s);
  void output(const Statement& s);
  void gradient(const Statement& s);
  void definition(const Statement& s);
  void store(const Statement& s);
  void line(const Statement& s); // exact
  void recur(Statement& s);
  void next(const Statement& b, const std::vector<const Statement*>& states,
            std::vector<const Statement*>& nexts, const std::vector<ir::Tensor>& old,
            std::vector<ir::Tensor>& out);
  void emit(const Statement& b, const ir::Axis& t, const ir::Extent& steps, std::vector<Token>& names_out,
            std::vector<ir::Emitted>& out);
  void one(Statement& s); // reports, and lists what it failed to define
  void recur_exact(Statement& s);
  void statement(Statement& s);
  std::vector<std::string> defined(const Statement& s) const;
};

ir::Format format_of(const Token& t, ir::Format otherwise);

// Runs `f`; the graph builder's own Errors become problems with this code at this place.
template <class F> auto within(const char* code, Where where, F f) {
  try {
    return f();
  } catch (const Problems&) { throw; } catch (const Error& e) {
    throw problem(code, e.where().line && e.where().column ? e.where() : where, e.headline(), e.facts(),
                  e.fix());
  }
}

} // namespace tang::text
