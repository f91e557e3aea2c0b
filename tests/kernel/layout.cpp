// Layout algebra: every post-condition at every coordinate, and fragments against the hardware's published
// maps.
#include "tang/kernel/layout.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tang/kernel/fragment.hpp"

using namespace tang;
using namespace tang::kernel;

namespace {
Layout plain(std::vector<Mode> m) { return {std::move(m), {}}; }
// Layouts with small power-of-two and odd extents; strides often compatible, sometimes not.
std::vector<Layout> samples(int n, unsigned seed) {
  std::mt19937 g(seed);
  auto pick = [&](std::vector<int64_t> v) { return v[g() % v.size()]; };
  std::vector<Layout> out;
  for (int k = 0; k < n; ++k) {
    Layout l;
    int64_t next = pick({1, 1, 1, 2, 4});
    for (int d = 0, modes = int(g() % 4); d < modes; ++d) {
      const int64_t extent = pick({1, 2, 2, 3, 4, 4, 6, 8});
      l.modes.push_back({extent, g() % 8 ? next : pick({0, 1, 2, 3, 5})});
      next *= extent * pick({1, 1, 1, 2, 3});
    }
    std::shuffle(l.modes.begin(), l.modes.end(), g);
    out.push_back(l);
  }
  return out;
}
bool injective(const Layout& l) {
  std::set<int64_t> seen;
  for (int64_t i = 0; i < l.size(); ++i)
    if (!seen.insert(l(i)).second) return false;
  return true;
}
}  // namespace

TEST(layout, flat_and_multi_index_agree) {
  const Layout l = plain({{3, 20}, {4, 1}, {2, 100}});
  int64_t flat = 0;
  for (int64_t a = 0; a < 3; ++a)
    for (int64_t b = 0; b < 4; ++b)
      for (int64_t c = 0; c < 2; ++c) {
        EXPECT_EQ(l(flat), 20 * a + b + 100 * c);
        EXPECT_EQ(l(flat++), l.at({a, b, c}));
      }
}
TEST(layout, coalescing_changes_no_offset) {
  for (auto& l : samples(400, 1)) {
    const Layout c = coalesced(l);
    ASSERT_EQ(c.size(), l.size());
    ASSERT_LE(c.modes.size(), l.modes.size());
    for (int64_t i = 0; i < l.size(); ++i) ASSERT_EQ(c(i), l(i)) << text(l);
  }
  EXPECT_EQ(coalesced(plain({{4, 32}, {2, 16}, {16, 1}})).modes.size(), 1u);
}
TEST(layout, composition_is_composition_at_every_coordinate) {
  const auto as = samples(150, 2), bs = samples(150, 3);
  int composed = 0, refused = 0;
  for (auto a : as)
    for (auto& b : bs) {
      a.swizzle = composed % 2 ? Swizzle{1, 0, 2} : Swizzle{};
      const auto r = compose(a, b);
      if (!r) {
        ++refused;
        continue;
      }
      ++composed;
      ASSERT_EQ(r->size(), b.size());
      for (int64_t i = 0; i < b.size(); ++i)
        ASSERT_EQ((*r)(i), a(b(i))) << text(a) << " o " << text(b) << " = " << text(*r);
    }
  EXPECT_GT(composed, 5000);
  EXPECT_GT(refused, 1000);
}
TEST(layout, composition_is_refused_only_where_it_must_or_may_carry) {
  EXPECT_FALSE(
      compose(plain({{2, 100}, {4, 1}}), plain({{2, 2}, {2, 2}}))); // 2 + 2 carries into the outer digit
  EXPECT_FALSE(compose(plain({{2, 100}, {6, 1}}), plain({{2, 4}})).why().empty());
  EXPECT_TRUE(compose(plain({{2, 100}, {4, 1}}), plain({{2, 4}, {2, 2}})));
}
TEST(layout, a_complement_fills_every_offset_once) {
  int done = 0;
  for (auto& b : samples(600, 4))
    for (int64_t n : {8, 16, 24, 48, 96, 192}) {
      const auto c = complement(b, n);
      if (!c) continue;
      ++done;
      std::set<int64_t> seen;
      const Layout all = joined(*c, b);
      for (int64_t i = 0; i < all.size(); ++i)
        ASSERT_TRUE(seen.insert(all(i)).second) << text(b) << " | " << text(*c);
      ASSERT_EQ(int64_t(seen.size()), n);
      ASSERT_EQ(*seen.begin(), 0);
      ASSERT_EQ(*seen.rbegin(), n - 1);
    }
  EXPECT_GT(done, 500);
}
TEST(layout, division_tiles_the_image) {
  int done = 0;
  for (auto& a : samples(150, 5))
    for (auto& b : samples(60, 6)) {
      const auto r = divide(a, b);
      if (!r) continue;
      ++done;
      const Layout rest = *complement(b, a.size());
      for (int64_t i = 0; i < r->inner.size(); ++i) ASSERT_EQ(r->inner(i), a(b(i)));
      for (int64_t o = 0; o < r->outer.size(); ++o)
        for (int64_t i = 0; i < r->inner.size(); ++i) ASSERT_EQ(r->outer(o) + r->inner(i), a(rest(o) + b(i)));
      std::multiset<int64_t> image, tiles;
      for (int64_t i = 0; i < a.size(); ++i) image.insert(a(i)), tiles.insert(joined(r->outer, r->inner)(i));
      ASSERT_EQ(image, tiles);
    }
  EXPECT_GT(done, 500);
}
TEST(layout, a_product_repeats_its_tile_without_overlap) {
  int done = 0;
  for (auto& a : samples(150, 7))
    for (auto& b : samples(60, 8)) {
      if (!injective(a) || !injective(b)) continue;
      const auto r = product(a, b);
      if (!r) continue;
      ++done;
      ASSERT_TRUE(injective(joined(r->outer, r->inner))) << text(a) << " x " << text(b);
      ASSERT_EQ(r->outer.size(), b.size());
      for (int64_t i = 0; i < a.size(); ++i) ASSERT_EQ(r->inner(i), a(i));
      int64_t place = 1;  // the least room that holds the tile a whole number of times
      while (!complement(a, place)) ++place;
      const Layout room = *complement(a, place * b.span());
      for (int64_t o = 0; o < b.size(); ++o) ASSERT_EQ(r->outer(o), room(b(o)));
    }
  EXPECT_GT(done, 500);
  // A 2 x 2 tile of a row-major 4 x 4, repeated 2 x 2 times: the outer modes step over the tile's gaps.
  const auto r = product(plain({{2, 4}, {2, 1}}), plain({{2, 2}, {2, 1}}));
  ASSERT_TRUE(bool(r)) << r.why();
  EXPECT_EQ(text(r->outer), "(2:8, 2:2)");
}
TEST(layout, an_inverse_undoes_a_bijection) {
  int done = 0;
  for (auto& l : samples(600, 9)) {
    const auto r = inverse(l);
    if (!r) {
      EXPECT_FALSE(injective(l) && l.span() == l.size()) << text(l);
      continue;
    }
    ++done;
    for (int64_t i = 0; i < l.size(); ++i) ASSERT_EQ((*r)(l(i)), i) << text(l);
  }
  EXPECT_GT(done, 100);
}
TEST(layout, the_128_byte_swizzle_is_the_hardwares_and_its_own_inverse) {
  for (int64_t byte = 0; byte < 16 * 128; ++byte) {
    const int64_t r = byte / 128, chunk = byte % 128 / 16;
    EXPECT_EQ(swizzle_128b(byte), r * 128 + (chunk ^ (r & 7)) * 16 + byte % 16);
    EXPECT_EQ(swizzle_128b(swizzle_128b(byte)), byte);
  }
}
TEST(layout, the_swizzle_spreads_a_column_over_the_banks) {
  Layout rows = plain({{32, 128}});  // one column of 4-byte elements, rows of 128 bytes
  std::vector<int64_t> straight, spread;
  for (int64_t r = 0; r < 8; ++r)
    for (int64_t w = 0; w < 4; ++w) {  // eight rows of one 16-byte chunk: what ldmatrix reads
      straight.push_back(rows(r) + 4 * w);
      spread.push_back(swizzle_128b(rows(r) + 4 * w));
    }
  EXPECT_EQ(bank_rounds(straight), 8);
  EXPECT_EQ(bank_rounds(spread), 1);
}
TEST(fragment, every_map_takes_each_element_of_the_tile_once) {
  auto rows = mma_m16n8k16();
  rows.push_back(wgmma_a());
  for (int n : {8, 64, 80, 128, 176, 256}) rows.push_back(wgmma_d(n));
  for (auto& f : rows) {
    const Layout map = f.map();
    EXPECT_EQ(map.size(), int64_t(f.rows) * f.columns) << f.instruction;
    const auto back = inverse(map);
    ASSERT_TRUE(bool(back)) << f.instruction << f.operand << back.why();
    for (int64_t i = 0; i < map.size(); ++i) EXPECT_EQ((*back)(map(i)), i);
  }
}
TEST(fragment, mma_maps_are_the_published_ones) {
  const auto rows = mma_m16n8k16();
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane >> 2, t = lane & 3;
    for (int e = 0; e < 8; ++e) {
      const int row = g + (e == 2 || e == 3 || e == 6 || e == 7 ? 8 : 0),
                column = t * 2 + (e & 1) + (e >= 4 ? 8 : 0);
      EXPECT_EQ(rows[0].map()(lane * 8 + e), row * 16 + column);
    }
    for (int e = 0; e < 4; ++e) {
      EXPECT_EQ(rows[1].map()(lane * 4 + e), (t * 2 + (e & 1) + (e >= 2 ? 8 : 0)) * 8 + g);
      EXPECT_EQ(rows[2].map()(lane * 4 + e), (g + (e >= 2 ? 8 : 0)) * 8 + t * 2 + (e & 1));
    }
  }
}
TEST(fragment, the_wgmma_accumulator_map_is_the_measured_one) {
  for (int n : {8, 64, 176, 256}) {
    const Layout map = wgmma_d(n).map();
    for (int thread = 0; thread < 128; ++thread)
      for (int e = 0; e < n / 2; ++e) {
        const int lane = thread & 31, warp = thread >> 5;
        const int row = (lane >> 2) + 8 * ((e >> 1) & 1) + 16 * warp,
                  column = (e >> 2) * 8 + (lane & 3) * 2 + (e & 1);
        ASSERT_EQ(map(thread * (n / 2) + e), row * n + column);
      }
  }
}
TEST(fragment, a_score_is_the_next_operand_as_it_lies) {
  for (int n : {16, 64, 128, 176})
    for (int c = 0; c < n / 16; ++c) {
      const Cast cast = is_cast(wgmma_d(n), 16 * c, wgmma_a());
      EXPECT_TRUE(cast.holds);
      EXPECT_EQ(cast.first, 8 * c);
    }
  EXPECT_TRUE(
      is_cast(wgmma_d(64), 8, wgmma_d(8)).holds); // eight columns of an accumulator are an accumulator
  EXPECT_EQ(is_cast(wgmma_d(64), 8, wgmma_d(8)).first, 4);
  Fragment other = wgmma_a();
  std::swap(other.element[0], other.element[1]);
  EXPECT_FALSE(is_cast(wgmma_d(64), 0, other).holds);
  EXPECT_FALSE(is_cast(wgmma_d(64), 56, wgmma_a()).holds);  // reaches beyond
  const auto m = mma_m16n8k16();
  EXPECT_FALSE(is_cast(m[2], 0, m[1]).holds);
}
