// Prints scalar bodies: each term once, in the loop level where all that it reads is known, for one lane or a
// vector.
#pragma once
#include <optional>

#include "tang/emit/c_kernel.hpp"

namespace tang::emit {

class BodyText {
public:
  // `levels` are the statement's loop variables, outermost first; `vector` is the one whose lanes are a
  // vector, or -1. `body` may be null: then only var leaves occur, named by name_var.
  BodyText(Unit& u, const kernel::Body* body, std::vector<Id> roots, std::vector<Var> levels, Var vector);
  // Why these roots cannot be computed in lanes, or nothing. `vars`: ranges of var leaves of type index.
  std::optional<std::string> refuses_lanes(const std::map<int64_t, Range>& vars = {});

  // Prints the level's terms; dead lanes read nothing. A body with a `when` has two parts: the condition's
  // terms, then the rest, whose reads wait for the innermost level, where the condition is known.
  enum Part : uint8_t { condition, rest, both };

  void declare(int level, const std::string& mask = "", Part part = both);
  // The level's terms of several copies of one body in turn, which hides their latency; a test for rare operands is
  // one for two of them.
  static void declare_together(const std::vector<BodyText*>& copies, int level);
  std::string value(Id id, bool as_vector);

  bool is_vector(Id id) const { return vector_.at(id); }

  Range term_range(Id id) const { return ranges_.at(id); } // after refuses_lanes

  bool has_nowhere() const { return nowhere_; }

  // Products that only sums read join them in one operation, for one lane.
  void fuse();

  // Conditions outside the loop that choose terms inside it: what holds when each is as it usually is. None where
  // nothing inside depends on them. `settle`: what is printed from here on relies on it, or no longer does.
  std::string usual() const;
  void settle(bool on);

  void prefix(const std::string& p) { prefix_ = p; } // of the names of terms, beside other statements' terms

  void name_var(int64_t leaf, std::string text, bool vector);
  void name_ref(int r, std::string text) { ref_text_[r] = std::move(text); } // a read that is at hand

private:
  int ref_level(int r) const;
  bool ref_vector(int r) const;
  std::string coordinate(const kernel::Coordinate& c, const std::string& lane) const;
  std::string element(int r, const std::string& lane) const;
  std::string guard(int g, bool vector) const;
  void declare_ref(const std::string& as, int r, const std::string& mask);
  std::string expression(Id id);
  std::string name_of(size_t n) const { return prefix_ + (body_ ? "t" : "c") + std::to_string(n + 1); }
  bool is_declared_at(Id id, int level) const;
  void find_usual();
  Id settled(Id id) const; // the term that `id` is, as far as is relied on
  void declare_one(size_t n, const std::string& mask);
  int level_of(const Affine& a) const;

  Unit& u_;
  const kernel::Body* body_;
  const kernel::Pool& p_;
  std::vector<Var> levels_;
  Var lane_;
  std::vector<Id> roots_, order_;
  std::map<Id, int> level_;
  std::map<Id, bool> vector_;
  std::set<Id> condition_, fused_, idle_; // idle_: what nothing reads, as far as is relied on
  std::map<Id, bool> usual_;
  bool settles_ = false;
  std::map<Id, std::string> names_, masks_; // masks_: of conditions known outside the loop whose lanes they choose
  std::map<Id, Range> ranges_;
  std::map<int, std::string> ref_text_;
  std::string prefix_;
  bool nowhere_ = false;
};

// dst element(s) = value; `lane_mask` names a mask or is empty. Vector values go to lanes.
void print_store(Unit& u, const Ref& dst, const std::string& value, Type type, bool vector, Var lane,
                 const std::string& mask, bool nowhere, bool stream = false,
                 const std::string& gathered = "");
// What dst holds, named `as`: in lanes along `lane`, or one element where that is -1.
void declare_old(Unit& u, const std::string& as, const Ref& dst, Type t, Var lane, const std::string& mask);
std::string swapped(const Unit& u, Type t, int apart, const std::string& x); // lane l has x of lane l ^ apart
// The gathered part of a destination's offset, and a bound's left side: integers read for one point.
std::string gathered_offset(const Unit& u, const kernel::Body& b, const Ref& r);
std::string bound(const Unit& u, const kernel::Body& b, const kernel::Coordinate& c);
std::string conjunction(const Unit& u, const kernel::Body& b, const kernel::Bounds& all); // in order
std::string splat(const Unit& u, Type t, const std::string& scalar);
const char* choice(Type t);                                        // the stem of the select of lanes
std::string at_mask(const Unit& u, const std::string& mask);       // lane l of it
std::string lanes_hold(const Unit& u, const std::string& start, int64_t k); // the mask of start + k lane >= 0

} // namespace tang::emit
