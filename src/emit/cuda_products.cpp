// Lane 4 g + t of a subgroup has rows g and g + 8 of 16, rows g of 8, and the t-th run of 16 bytes of 32 terms; of a result it
// has columns 2 t and 2 t + 1 in rows g and g + 8.
#include "tang/emit/cuda_products.hpp"

#include <algorithm>
#include <map>

#include "tang/base/error.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/c_body.hpp"
#include "tang/kernel/products.hpp"

namespace tang::emit {

namespace {
constexpr int64_t tall = 16, wide = 8, unrolled_rounds = 16;

class Product {
public:
  Product(Unit& u, const GpuDialect& d, const kernel::Fold& f) : u_(u), d_(d), f_(f) {
    const auto factors = kernel::matrix_factors(u.k, f);
    check(factors && f.kept.size() == 4 && f.folded.size() == 2, "a fold of products that subgroups share");
    factors_ = *factors;
    auto blocks = [&](size_t a, size_t b) { return ceil_div(f.kept[a].extent, tall) * ceil_div(f.kept[b].extent, wide); };
    tall_ = blocks(1, 0) < blocks(0, 1) ? 1 : 0;
  }

  void print() {
    u_.open("");
    u_.line("const int g = lane % 32 / 4, t = lane % 4;");
    const std::string parts = number(f_.kept[3].extent);
    u_.line(d_.constant(d_.integer, name(f_.kept[2].var), "lane / 32 / " + parts));
    u_.line(d_.constant(d_.integer, name(f_.kept[3].var), "lane / 32 % " + parts));
    u_.line(d_.constant(d_.integer, name(f_.folded[1].var), "t * 8"));
    for (size_t c = 0; c < factors_.size(); ++c)
      u_.line("float c" + number(int64_t(c)) + "[" + number(rows()) + "][" + number(columns()) + "][4] = {};");
    std::map<int, int> side_of; // of each read: along the first kept axis or the second
    for (auto& x : factors_) side_of[x.first] = 0, side_of[x.second] = 1;
    int64_t loads = 0;
    for (auto& [r, side] : side_of) loads += held(side);
    const kernel::TileAxis round = f_.folded[0];
    const int64_t words = kernel::words_at_once(u_.k.lanes / u_.k.cluster, kernel::workgroups(u_.k) * u_.k.cluster,
                                                4 * int64_t(factors_.size()) * rows() * columns());
    const int64_t batch = kernel::rounds_at_once(round.extent, loads, words), batches = ceil_div(round.extent, batch);
    u_.line(std::string("#pragma unroll") + (batches * batch > unrolled_rounds ? " 1" : ""));
    u_.open("for (int first = 0; first < " + number(batches * batch) + "; first += " + number(batch) + ")");
    for (auto& [r, side] : side_of) u_.line("uint4 q" + number(r) + "[" + number(batch) + "][" + number(held(side)) + "] = {};");
    each_round(batch, [&] {
      u_.line(d_.constant(d_.integer, name(round.var), "first + u"));
      std::string there = f_.limits.empty() ? "" : conjunction(u_, f_.body, f_.limits);
      if (batches * batch != round.extent) there += (there.empty() ? "" : " && ") + name(round.var) + " < " + number(round.extent);
      u_.open(there.empty() ? "" : "if (" + there + ")");
      for (auto& [r, side] : side_of) load(r, side);
      u_.close();
    });
    each_round(batch, [&] { blocks([&] { multiply(); }); });
    u_.close();
    blocks([&] { store(); });
    u_.close();
  }

private:
  const kernel::TileAxis& axis(bool of_tall) const { return f_.kept[size_t(of_tall ? tall_ : 1 - tall_)]; }

  int64_t rows() const { return ceil_div(axis(true).extent, tall); }

  int64_t columns() const { return ceil_div(axis(false).extent, wide); }

  template <class Body> void blocks(const Body& body) {
    u_.line("#pragma unroll");
    u_.open("for (int m = 0; m < " + number(rows()) + "; ++m)");
    u_.line("#pragma unroll");
    u_.open("for (int n = 0; n < " + number(columns()) + "; ++n)");
    body();
    u_.close(), u_.close();
  }

  // 16-byte words that a lane holds of one side, in a round: rows are in blocks of 16, and what is missing is 0.
  int64_t held(int side) const { return side == tall_ ? 2 * rows() : columns(); }

  template <class Body> void each_round(int64_t batch, const Body& body) {
    u_.line("#pragma unroll");
    u_.open("for (int u = 0; u < " + number(batch) + "; ++u)");
    body();
    u_.close();
  }

  void multiply() {
    for (size_t c = 0; c < factors_.size(); ++c) {
      const int a = tall_ ? factors_[c].second : factors_[c].first, b = tall_ ? factors_[c].first : factors_[c].second;
      const std::string q = "q" + number(a) + "[u]";
      u_.line("tang_multiply_" + std::string(expr::row(u_.memory(f_.body.refs[size_t(a)].memory).format).name) + "(c" +
              number(int64_t(c)) + "[m][n], " + q + "[2 * m], " + q + "[2 * m + 1], q" + number(b) + "[u][n]);");
    }
  }

  // Eight rows after the other; rows beyond the last repeat it, and are not stored.
  void load(int ref, int side) {
    const kernel::Ref& r = f_.body.refs[size_t(ref)];
    const kernel::TileAxis& x = f_.kept[size_t(side)];
    u_.line("#pragma unroll");
    u_.open("for (int b = 0; b < " + number(ceil_div(x.extent, wide)) + "; ++b)");
    u_.line(d_.constant(d_.integer, name(x.var), x.extent % wide ? "tang_lesser(b * 8 + g, " + number(x.extent - 1) + ")" : "b * 8 + g"));
    u_.line("q" + number(ref) + "[u][b] = *(const uint4*)(m" + number(r.memory) + " + " + text(offset(u_, r)) + ");");
    u_.close();
  }

  void store() {
    const kernel::TileAxis &i = axis(true), &j = axis(false);
    u_.line("#pragma unroll");
    u_.open("for (int e = 0; e < 4; ++e)");
    u_.line(d_.constant(d_.integer, name(i.var), "m * 16 + (e >> 1) * 8 + g"));
    u_.line(d_.constant(d_.integer, name(j.var), "n * 8 + t * 2 + (e & 1)"));
    std::string inside;
    if (i.extent % tall) inside = name(i.var) + " < " + number(i.extent);
    if (j.extent % wide) inside += (inside.empty() ? "" : " && ") + name(j.var) + " < " + number(j.extent);
    u_.open(inside.empty() ? "" : "if (" + inside + ")");
    for (size_t c = 0; c < f_.dst.size(); ++c)
      print_store(u_, f_.dst[c], "c" + number(int64_t(c)) + "[m][n][e]", expr::Type::real, false, -1, "", false);
    u_.close(), u_.close();
  }

  Unit& u_;
  const GpuDialect& d_;
  const kernel::Fold& f_;
  std::vector<kernel::Factors> factors_;
  int tall_ = 0; // the kept axis with blocks of 16
};
} // namespace

void print_product(Unit& u, const GpuDialect& d, const kernel::Fold& f) { Product(u, d, f).print(); }

} // namespace tang::emit
