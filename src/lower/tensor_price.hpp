// What a sum of products takes on a chip with warpgroups, by a rule on its blocks and the target's rates.
#pragma once
#include <cstdint>

#include "tang/target/roles.hpp"
#include "tang/target/target.hpp"

namespace tang::lower {

inline constexpr int64_t team_rows = 64;

struct Product {
  int64_t m = 1, n = 1, k = 1; // rows, columns, terms
  int64_t batch = 1;
  int64_t around = 1; // iterations of the loops around the loop
  int64_t sums = 1;   // results of one block, each with its columns' operand
  int bits = 16;      // of an operand's element
};

// A block: `math` teams' rows, columns, terms of a slot and slots of a ring; its share of the rate of the widest one.
struct ProductBlock {
  int math;
  int64_t columns, loop;
  int stages;
  double reached;
};

// How blocks of work are taken apart: parts of a loop, in memory or in a cluster; or a cluster that shares copies.
struct Apart {
  int split = 1, cluster = 1;
  bool beneath = false;
};

struct ProductPrice {
  double seconds = 0, waves = 1;
  bool reads = false; // are what a block waits for
};

// As many slots as shared memory holds beside what results are staged in, at least two.
int slots(const ProductBlock& s, int bits, const target::Target& t);

// `below` x `beside` blocks of rows and columns.
ProductPrice product_price(const Product& p, const ProductBlock& s, const Apart& x, int64_t below, int64_t beside, const target::Target& t);

} // namespace tang::lower
