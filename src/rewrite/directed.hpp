// Directed rules: they take arguments and are called by name, before differentiating or by a schedule.
#pragma once
#include <map>
#include <set>

#include "tang/rewrite/rule.hpp"

namespace tang::rewrite {

// Every read of a stored map repeats the map's support, so that no reader sees what a stored array holds at a
// point that does not exist: the domain through the view, and a predicate as a bool map stored beside the
// map.
Graph expose_support(const Graph& g);

// An output of a value that another output stores in another format reads a copy of it; so does an output of
// a state that is carried in another. Before planning.
Graph own_formats(const Graph& g);

// The graph with every read of a partial map under that map's domain; where an or_else catches the absence of
// a read, with all supports exposed. Rules take a read that no condition guards for present.
Graph closed(const Graph& g);

// Every product of a sum that reads a map which scales a 16-bit array (x(i, c) / l(i)) reads that array, so
// that matrix instructions can take it as it is stored; the scale stands beside it, outside of sums along
// whose axes it does not change.
// `kept`: maps that will be stored in 16 bits, as outputs may be. tf32 counts as 16 bits do, and f32 where it
// is `wide`: taken in pieces of 16 bits.
Graph narrow_operands(const Graph& g, const std::set<ir::NodeId>& kept = {}, bool wide = false);

// A side of a sum of products that is more than one array is stored as a map of its own (sums of few terms
// that it reads are written out in it), so that matrix instructions can take it as it lies; products of equal
// sides read one array. What reads a short contraction stays where it is evaluated.
Graph stored_operands(const Graph& g);
// A sum over blocks of terms of products whose operands are arrays and whose weights are the same within a
// block is the weighed sum of the blocks' products: what is alike for a block's terms leaves their sum (law
// of `hoist`, for some of the fold axes), so that matrix instructions take the arrays as they are stored.
Graph weighed_blocks(const Graph& g);
// Sums of few results over many terms in parts, for a target of so many workers: what is computed from scores
// by a short axis of the sum, columns by blocks of rows. The parts and their join are nodes.
Graph part_sums(const Graph& g, int64_t workers);
std::map<ir::NodeId, ir::NodeId> parts(const Graph& g); // sums that another sum, of these, only adds up
// Maps that are one value with their axes in another order are one map.
Graph turned_alike(const Graph& g);

// The nodes whose stored values sums of products read as one of their two sides. The pool may grow.
std::set<ir::NodeId> operands(Graph& g);

// In a sum of weights exp2(k s + m) .. the numbers of a row become stored maps: exp2(k s + m) / l, where c,
// is exp2(k s + r) with r = m - log2 l, or -inf where c fails; x / l + y is (x + y l) / l. What is left of a
// row is read once.
Graph row_weights(const Graph& g);

// A sum of what contractions give, at points that a key decides, over rows and terms: first the terms of each
// row, then the rows. For targets whose tiles of a contraction stay on chip.
Graph keyed_rows(const Graph& g);

// Fold over an axis = fold over blocks of the folds over a block: the partial states and their join are
// nodes. Refused when an order matters that the split would change.
Result<Rewritten> split_fold(const Graph& g, ir::NodeId node, int fold_axis, int64_t block);
Result<Rewritten> split_fold_in(const Graph& g, ir::NodeId node, int fold_axis, int64_t parts);

// An absorbing fold as the fold of its base, then sums of act * lift. The base's lift and the act are map
// nodes that the sums share, so that adjoints meet there.
Result<Rewritten> definition_form(const Graph& g, ir::NodeId node);
Graph definition_form(const Graph& g); // of every absorbing fold that has a base

// A recurrence of n * block + r steps as one of n segments, whose step is the recurrence over `block` steps,
// and one of the r steps after them. Refused where steps are skipped or symbolic, or too few.
Result<Rewritten> strip_mine(const Graph& g, ir::NodeId node, int64_t block);

// A recurrence whose step is affine in its states as a sum over the steps of each chunk of `block`, or as a
// scan of all chunks side by side where the factors are as many as the states; and a recurrence over the
// chunks. Refused, with the test that failed, where a derivative mentions a state, states move each other or
// are rounded at every step.
Result<Rewritten> chunk(const Graph& g, ir::NodeId node, int64_t block);
Result<Rewritten> chunk_all(const Graph& g, int64_t block); // every recurrence of two chunks that can be

// For targets that add to one result from several places: what reads short contractions at a coordinate that
// its point decides is summed by key, beside the folds that read them at picked axes.
Graph sum_by_key(const Graph& g);
// For the others: what reads short contractions across their axes reads contractions at its own axes.
Graph follow_reader(const Graph& g);
Graph diagonal_witness(); // of both: rows of scores, and sums along their diagonals
// What planning takes: supports are exposed; where the target `adds`, sums by key; else contractions
// follow their readers.
Graph for_planning(const Graph& g, bool adds);

Rule expose_support_rule();
Rule split_fold_rule();
Rule definition_form_rule();
Rule strip_mine_rule();
Rule chunk_rule();
Rule sum_by_key_rule();
Rule follow_reader_rule();
const std::vector<Rule>& directed_rules();

} // namespace tang::rewrite
