// One state of a recurrence in chunks: arrays that say what it is at every time.
#pragma once
#include "tang/rewrite/affine_step.hpp"
#include "tang/rewrite/loop.hpp"
#include "tang/rewrite/over_time.hpp"

namespace tang::rewrite {

// The time of a recurrence in chunks, and where their arrays are made.
struct Chunks {
  OverTime& over;
  const ir::Recur& r;
  const int64_t block, count;
  const Node& like;

  using Shape = std::vector<ir::Extent>;

  Graph& to() const { return over.to(); }

  int64_t first() const { return r.reverse ? block - 1 : 0; }

  int64_t last() const { return r.reverse ? 0 : block - 1; }

  ir::Format clock() const { return (*r.step)[r.time].input()->format; }

  Shape side_by_side(const Shape& local) const; // with the chunks in front
  // An array [chunk, step, ..] as an argument, or an emit, of a recurrence over steps for all chunks.
  static std::vector<Form> beside(size_t local);
  // j is not after i; `after` 0: it is before i.
  Domain until(const Form& i, const Form& j, int after) const;

  // The sum `n` of the step at every time, over a factor times what `of` makes.
  using Of = std::function<Id(MapOf&, OverTime::Moved&)>;
  Port sum(const Comp& n, Id factor, const Of& of, const std::string& name) const;
  Port added(const std::vector<Port>& parts, const std::string& name) const;
};

// In the chunk n, after step i: S = decay(n, i) start(n) + local(n, i).
class ChunkState {
public:
  ChunkState(const Chunks& c, AffineStep a);

  Port solve(std::optional<Port> init); // the state after the last chunk
  Port whole(int after) const;          // [chunk, step, dims] before (0) or after (1) each step
  Id carried(int after, MapOf& m, const std::vector<Form>& at) const; // decay start at a place of the state
  Id made(int after, MapOf& m, const std::vector<Form>& at) const;    // local

  const AffineStep a;
  const Chunks::Shape dims;
  const bool sums;              // `local` is a sum over the steps of the chunk
  std::optional<Port> fed_back; // r [chunk, step, dims of r]

private:
  std::vector<Form> along(const std::vector<Form>& at) const; // the axes of g of a place in the state

  Chunks::Shape along() const { return of_dims(a.axes); }

  Chunks::Shape of_dims(const std::vector<int>& some) const;
  Port over_chunks(Id term, const std::vector<int>& some, const char* name);
  void decay_products();
  void from_start();
  void scan();
  Port summed(int after, bool at_end);
  Port ends(std::optional<Port> init);

  // chunk_feedback.cpp
  struct Feedback {
    std::vector<int> folded, kept; // dimensions of the state that r sums; positions in r's that products need
    Port products;                 // K [chunk, i, j, kept]
    Port rows, weights; // r = rows [chunk, i, dims of r] + sum weights [chunk, i, folded, kept] start
    Port pushed;        // what the end of the chunk has of each row: [chunk, j, pushed_dims]
    std::vector<int> pushed_dims;
  };

  Port ends_with_feedback(std::optional<Port> init);
  std::function<Form(int)> axes_of_sum(const Feedback& f, int folded_at, int kept_at) const;
  void find_axes(Feedback& f) const;
  void make_products(Feedback& f) const;
  Port given_rows() const;
  Port given_weights(const Feedback& f) const;
  void solve_rows(Feedback& f) const;

  const Chunks c_;
  Port factor_;          // g [chunk, step, axes of g]
  Port decays_[2];       // D [chunk, i, j, axes of g]
  Port decay_[2];        // [chunk, step, axes of g]
  Port local_[2];        // [chunk, step, dims]
  Port end_decay_, end_; // of the whole chunk
  Port start_;           // [chunk, dims]
};

} // namespace tang::rewrite
