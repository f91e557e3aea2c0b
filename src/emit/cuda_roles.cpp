#include "tang/emit/cuda_roles.hpp"

#include <algorithm>
#include <set>

#include "tang/base/error.hpp"
#include "tang/base/match.hpp"
#include "tang/emit/cuda_add.hpp"
#include "tang/emit/cuda_roles_join.hpp"
#include "tang/emit/cuda_roles_prelude.hpp"
#include "tang/emit/cuda_row_text.hpp"
#include "tang/emit/cuda_stage.hpp"
#include "tang/emit/cuda_subgroups.hpp"
#include "tang/kernel/roles_parts.hpp"

namespace tang::emit {

namespace roles_text { // named: statements of both levels have the same names
using namespace kernel::role;

constexpr int open_barrier = 1;  // named: 0 is the workgroup's, then one a team for turns, then one to meet
constexpr int box_bytes = 8192;  // a team's 64 rows of 128 bytes
constexpr int warp_bytes = 2048; // a warp's 16
constexpr int beside_sums = 26;  // registers of an instruction that sums in registers, as ptxas asks for them
const char* const slice = "template <int N, int At, class T, int M> TANG T (&tang_slice(T (&x)[M]))[N] "
                          "{ return *(T (*)[N])(x + At); }\n";

class Printer {
public:
  Printer(const Program& p, std::string name) : p_(p), name_(std::move(name)), u(p.kernel, options_) {}

  std::string run();

private:
  const Ring& ring(int r) const { return p_.rings[size_t(r)]; }

  static std::string id(int r) { return "r" + std::to_string(r); }

  bool power(int r) const { return (ring(r).depth & (ring(r).depth - 1)) == 0; }

  // The slot of the ring's next window, or of the one `back` advances ago or `ahead` on; the parity of its barriers' phase.
  std::string slot(int r, int back = 0, int ahead = 0) const {
    const std::string d = number(ring(r).depth), on = id(r) + (power(r) ? "_n + " : "_s + ") + number(ahead);
    if (ring(r).depth == 1) return "0";
    if (ahead && power(r)) return "(" + on + " & " + number(ring(r).depth - 1) + ")";
    if (ahead) return "(" + on + " - (" + on + " < " + d + " ? 0 : " + d + "))";
    if (power(r))
      return "(" + id(r) + "_n" + (back ? " - " + number(back) : "") + " & " + number(ring(r).depth - 1) +
             ")";
    if (!back) return id(r) + "_s";
    return "(" + id(r) + "_s - " + number(back) + " + (" + id(r) + "_s < " + number(back) + " ? " + d +
           " : 0))";
  }

  std::string parity(int r) const {
    if (!power(r)) return id(r) + "_p";
    int bits = 0;
    while (1 << bits < ring(r).depth) ++bits;
    return bits ? "(" + id(r) + "_n >> " + number(bits) + " & 1)" : "(" + id(r) + "_n & 1)";
  }

  std::string in_team(int r, const std::string& s) const {
    return ring(r).own ? s + " * " + number(p_.fields.math) + " + " + name(p_.team) : s;
  }

  std::string barrier(int r, bool full, int back = 0) const {
    return "bars + 8 * (" + number(full ? ring(r).full : ring(r).empty) + " + " + in_team(r, slot(r, back)) +
           ")";
  }

  std::string place(int r, int64_t at, int ahead = 0) const {
    const Ring& x = ring(r);
    const bool vector = at >= x.bytes;
    return "base + " + number(vector ? x.vectors + at - x.bytes : x.at + at) + " + (" + in_team(r, slot(r, 0, ahead)) +
           ") * " + number(vector ? x.vector_bytes : x.bytes);
  }

  std::string low(const Window& w) const { // of a matrix descriptor
    return "(" + place(w.ring, w.at) + (w.team ? " + " + name(p_.team) + " * " + number(w.team) : "") +
           ") >> 4 | " + number(w.lead) + "u << 16";
  }

  std::string reversed(const std::vector<kernel::Affine>& at) const {
    std::string s;
    for (size_t d = at.size(); d-- > 0;) s += ", " + text(at[d]);
    return s;
  }

  void block(const Block& b) {
    for (size_t i = 0; i < b.size();)
      if (const size_t n = print_keyed(u, b, i))
        i += n;
      else
        std::visit([&](const auto& x) { print(x); }, b[i++].node);
  }

  void print(const Await& x) {
    const bool published = x.full && ring(x.ring).cluster && ring(x.ring).made;
    u.line("tang_bar_wait" + std::string(published ? "_cluster(" : "(") + barrier(x.ring, x.full) + ", " +
           parity(x.ring) + (x.full ? ");" : " ^ 1);"));
  }

  void print(const Arm& x) {
    u.line("tang_bar_expect(" + barrier(x.ring, true) + ", " + number(ring(x.ring).arrives) + ");");
  }

  void print(const Locate& x) {
    const std::string m = "m" + number(x.memory);
    const std::string type = "const " + std::string(element_type(u.memory(x.memory).format)) + "* const ";
    u.line(type + m + " = (" + type + ")(raw + (" + place(x.ring, x.at) +
           " - tang_shared(raw)));");
    u.line("(void)" + m + ";");
  }

  void print(const Load& x) {
    if (p_.fields.tall) return print_copy(u, p_, x, place(x.ring, x.at, x.ahead));
    u.line("tang_bulk_" + (x.each ? "share(" + number((1 << p_.fields.cluster) - 1) + ", " : std::string("load(")) +
           place(x.ring, x.at) + (x.each ? " + " + name(p_.rank) + " * " + number(x.each) : "") + ", &map" +
           number(x.map) + ", " + barrier(x.ring, true) + reversed(x.from) + ");");
  }

  void print(const Fill& x);

  void print(const Advance& x) {
    if (power(x.ring))
      u.line("++" + id(x.ring) + "_n;");
    else
      u.line("if (++" + id(x.ring) + "_s == " + number(ring(x.ring).depth) + ") { " + id(x.ring) +
             "_s = 0; " + id(x.ring) + "_p ^= 1; }");
  }

  void print(const Release& x) {
    arrive(x.ring, barrier(x.ring, false, x.back));
  }

  void arrive(int r, const std::string& barrier, bool published = false) { // one arrival a warp
    u.line(ring(r).cluster ? "if (lane < " + number(p_.fields.cluster) + ") tang_bar_" +
                                 (published ? "publish" : "arrive") + "_at(" + barrier + ", lane);"
                           : "if (lane == 0) tang_bar_arrive(" + barrier + ");");
  }

  void print(const Issue& x);

  void print(const Finish& x) {
    u.line("tang_mma_wait<" + number(x.left) + ">();");
    for (int t : x.tiles) u.line("tang_pin(" + summed(t) + ");");
    for (int t : x.whole) u.line("tang_whole(m" + number(t) + ", " + summed(t) + ");");
  }

  void print(const Hold& x) {
    for (int t : x.tiles) {
      if (in_integers(t)) u.line("tang_start(" + summed(t) + ", m" + number(t) + ");");
      u.line("tang_pin(" + summed(t) + ");");
    }
  }

  bool in_integers(int t) const { return std::count(p_.integers.begin(), p_.integers.end(), t); }

  // The registers that a contraction sums in: integers have their own.
  std::string summed(int t) const { return (in_integers(t) ? "i" : "m") + number(t); }

  void print(const Turn& x) {
    const std::string team = name(p_.team), last = number(p_.fields.math - 1), n = number(2 * 128);
    if (x.kind == Turn::open)
      u.line("if (" + team + " == " + last + ") tang_team_arrive(" + number(open_barrier) + ", " + n + ");");
    if (x.kind == Turn::take)
      u.line("tang_team_sync(" + number(open_barrier) + " + " + team + ", " + n + ");");
    if (x.kind == Turn::give)
      u.line("tang_team_arrive(" + team + " == " + last + " ? " + number(open_barrier) + " : " +
             number(open_barrier + 1) + " + " + team + ", " + n + ");");
  }

  std::string meeting() const { return number(open_barrier + p_.fields.math) + " + " + name(p_.team) + ", 128"; }

  void print(const Meet& x) {
    if (p_.fields.tall) return u.line("__syncthreads();");
    u.line("tang_team_sync(" + (x.all ? number(open_barrier + 2 * p_.fields.math) + ", " + number(128 * p_.fields.math)
                                      : meeting()) + ");");
  }

  void print(const Rows& x) {
    const auto touched = kernel::touched(x.what);
    std::vector<int> tiles = touched.reads;
    tiles.insert(tiles.end(), touched.writes.begin(), touched.writes.end());
    each_row_block(u, p_, tiles, [&] { print_rows(u, x); });
  }

  void print(const Settle& x) {
    each_row_block(u, p_, {x.memory}, [&] { print_settle(u, x); });
  }

  void print(const Flush& x);

  void print(const Add& x) { print_add(u, x); }

  void print(const Flushed& x) {
    u.line(x.all ? "if (lane == 0) tang_bulk_done();" : "if (lane == 0) tang_bulk_read<0>();");
  }

  void print(const Offer& x) {
    print_offer(u, p_, x, place(x.ring, 0));
    arrive(x.ring, barrier(x.ring, true), true);
  }

  void print(const Join& x) {
    const auto then = [&] { block(x.then); };
    x.ring < 0 ? print_join(u, p_, x, meeting(), then) : print_share(u, p_, x, place(x.ring, 0), then);
  }

  void print(const Let& l) { print_let(u, l.what); }

  void print(const Commit&) { u.line("tang_copies_commit();"); }

  void print(const Arrived& x) { u.line("tang_copies_wait<" + number(x.left) + ">();"); }

  void print(const Divide& d) {
    u.line("const int " + name(d.quotient) + " = " + text(d.value) + " / " + text(d.divisor) + ", " +
           name(d.remainder) + " = " + text(d.value) + " % " + text(d.divisor) + ";");
  }

  void print(const Loop& l) {
    const std::string v = name(l.v);
    u.line("#pragma unroll 1");
    u.open("for (int " + v + " = " + text(l.from) + "; " + v + (l.step > 0 ? " < " : " >= ") + text(l.to) +
           "; " + v + " += " + number(l.step) + ")");
    block(l.body);
    u.close();
  }

  void print(const When& w) {
    u.open("if (" + text(w.at_least_0) + " >= 0)");
    block(w.then);
    u.close();
    if (w.otherwise.empty()) return;
    u.open("else");
    block(w.otherwise);
    u.close();
  }

  void print(const Teams& t) {
    u.line("#pragma unroll 1");
    u.open("for (int " + name(p_.team) + " = 0; " + name(p_.team) + " < " + number(p_.fields.math) + "; ++" +
           name(p_.team) + ")");
    block(t.body);
    u.close();
  }

  void print(const Works& w);
  void counters();
  void roles();
  void subgroups();
  void fragments();

  const Program& p_;
  const std::string name_;
  const COptions options_;
  Unit u;
  std::set<std::string> known_;
  std::string instructions_;
};

void Printer::print(const Issue& x) {
  if (p_.fields.tall) return print_product_of_subgroup(u, p_, x, x.a_tile < 0 ? place(x.a.ring, x.a.at) : "", place(x.b.ring, x.b.at));
  // An instruction takes no more registers than a lane has at the launch: else it is two, of half the columns.
  const int64_t bits = expr::row(x.format).bits;
  const bool wide = x.n / 2 + beside_sums > 65536 / p_.fields.threads() / 8 * 8;
  const int n = wide ? x.n / 2 : x.n;
  const int64_t half = x.b.k_major ? n * 8 : n * bits / 8 / 128 * x.b.lead; // places of 16 bytes
  const MatrixInstruction m{n, x.a_tile >= 0, x.a.k_major, x.b.k_major, x.format};
  auto define = [&](const std::string& what, const std::string& how) {
    if (known_.insert(what).second)
      instructions_ += "#ifndef " + what + "_\n#define " + what + "_\n" + how + "#endif\n";
  };
  define(emit::name(m), emit::text(m));
  if (wide) define("tang_slice", slice);
  u.open("");
  if (x.a_tile < 0) u.line("const uint32_t a = " + low(x.a) + ";");
  u.line("const uint32_t b = " + low(x.b) + ";");
  u.line("tang_mma_fence();");
  for (size_t s = 0; s < x.b.steps.size(); ++s) {
    const std::string a = x.a_tile >= 0 ? "&m" + number(x.a_tile) + "[" + number(int64_t(4 * s)) + "]"
                                        : "tang_window(a + " + number(x.a.steps[s]) + ")";
    for (int part = 0; part < (wide ? 2 : 1); ++part)
      u.line(emit::name(m) + "<" + (x.fresh && !s ? "0" : "1") + ">(" +
             (wide ? "tang_slice<" + number(n / 2) + ", " + number(part * n / 2) + ">(" + summed(x.dst) + ")"
                   : summed(x.dst)) +
             ", " + a + ", tang_window(b + " + number(x.b.steps[s] + part * half) + "));");
  }
  u.line("tang_mma_commit();");
  u.close();
}

// Each warp stages its own 16 rows and stores them: no other warp is waited for. Two boxes take turns in a
// team's staging.
void Printer::print(const Flush& x) {
  if (p_.fields.tall) return print_flush_by_lanes(u, p_, x);
  const auto& all = x.what.dst;
  const bool halves = expr::row(u.memory(all[0].memory).format).bits == 16, own = x.ring < 0;
  const int64_t width = halves ? 64 : 32; // columns of a box: 128 bytes
  u.open("");
  rows_text::RowText t(u, x.what.body, x.row, x.column);
  t.prepare(x.what.body.values);
  u.line("const uint32_t stage = " +
         (own ? "base + " + number(p_.staging) + " + " + name(p_.team) + " * " + number(2 * box_bytes)
              : place(x.ring, 0)) +
         " + warp * " + number(warp_bytes) + ";");
  int64_t boxes = 0; // so far
  auto box = [&](int64_t b) { return "stage + " + number((own ? b % 2 : b) * box_bytes); };
  auto send = [&](size_t d, int64_t from) {
    std::vector<kernel::Affine> at;
    for (auto& c : all[d].index) {
      const int64_t k = coefficient(c.affine, x.column);
      at.push_back(k ? c.affine - kernel::variable(x.column, k) + kernel::constant(from) : c.affine);
    }
    u.line("tang_bulk_store(&map" + number(x.maps[d]) + ", " + box(boxes) + reversed(at) + ");");
  };
  for (int64_t from = 0; from < x.columns; from += width) {
    const int64_t columns = std::min(width, x.columns - from);
    u.open("");
    const std::vector<std::string> values = rows_text::print_values(u, t, x, from, columns);
    for (size_t d = 0; d < all.size(); ++d, ++boxes) {
      // Of the statement before both boxes may still be read.
      if (own) u.line("if (lane == 0) tang_bulk_read<" + std::string(boxes ? "1" : "0") + ">();"), u.line("__syncwarp();");
      for (int64_t q = 0; q < 4; ++q)
        halves ? stage_halves(u, values[d], box(boxes), q, columns)
               : stage_words(u, values[d], box(boxes), q, columns);
      u.line("tang_fence_async();"), u.line("__syncwarp();");
      u.open("if (lane == 0)");
      print_row(u, x.row, name(p_.team) + " * 64 + warp * 16");
      send(d, from);
      u.close();
    }
    u.close();
  }
  u.close();
}

// Each warp stores its 16 rows; the fence shows them to the matrix unit of whoever waits for the barrier.
void Printer::print(const Fill& x) {
  u.open("");
  u.line("const uint32_t made = " + place(x.ring, x.at) + " + " + name(p_.team) + " * " + number(box_bytes) +
         " + warp * " + number(warp_bytes) + ";");
  for (int64_t from = 0; from < x.columns; from += 64)
    for (int64_t q = 0; q < 4; ++q)
      stage_halves(u, "(m" + number(x.tile) + " + " + number(from / 4) + ")", "made + " + number(from / 64 * x.box), q,
                   std::min<int64_t>(64, x.columns - from));
  u.line("tang_fence_async();");
  u.line("__syncwarp();");
  arrive(x.ring, barrier(x.ring, true));
  u.close();
}

void Printer::counters() {
  for (size_t r = 0; r < p_.rings.size(); ++r) {
    u.line(power(int(r)) ? "uint32_t " + id(int(r)) + "_n = 0;"
                         : "int " + id(int(r)) + "_s = 0; uint32_t " + id(int(r)) + "_p = 0;");
  }
}

void Printer::fragments() {
  for (size_t m = 0; m < p_.kernel.memories.size(); ++m)
    if (p_.kernel.memories[m].home == kernel::Home::fragment) {
      u.line(p_.fields.tall ? declare_row_blocks(u, p_, int(m)) : declare_fragment(u, int(m)));
      if (in_integers(int(m)))
        u.line("int i" + number(int64_t(m)) + "[sizeof m" + number(int64_t(m)) + " / 4];");
    }
}

// Work goes round the workgroups, or is drawn from a counter by the producer, which tells the others through
// a ring.
void Printer::print(const Works& w) {
  const std::string v = name(w.w), total = number(p_.work);
  if (w.ring < 0) {
    u.open("for (int " + v + " = (int)blockIdx.x; " + v + " < " + total + "; " + v + " += (int)gridDim.x)");
    block(w.decode);
    if (!w.producer) fragments();
    block(w.body);
    u.close();
    return;
  }
  const int64_t values = int64_t(p_.kernel.grid.size() + 1); // whether there is more work, and where
  const std::string words = "const uint32_t words = base + " + number(p_.words) + " + " + slot(w.ring) +
                            " * " + number(4 * values) + ";";
  if (w.producer) {
    u.open("for (int " + v + " = (int)blockIdx.x, next; ; " + v + " = next)");
    print(Await{w.ring, false});
    block(w.decode);
    u.line(words);
    u.line("tang_put_word(words, " + v + " < " + total + ");");
    for (size_t g = 0; g < p_.kernel.grid.size(); ++g)
      u.line("tang_put_word(words + " + number(int64_t(4 * (g + 1))) + ", " + name(p_.kernel.grid[g].var) +
             ");");
    u.line("tang_bar_arrive(" + barrier(w.ring, true) + ");");
    print(Advance{w.ring});
    u.line("if (" + v + " >= " + total + ") break;");
    u.line("next = atomicAdd(queue, 1) + (int)gridDim.x;");
    block(w.body);
    u.close();
    // The last workgroup to finish winds the counter back for the next launch.
    u.line("__threadfence();");
    u.line("if (atomicAdd(queue + 1, 1) == (int)gridDim.x - 1) { queue[0] = 0; queue[1] = 0; }");
    return;
  }
  u.open("for (;;)");
  print(Await{w.ring, true});
  u.line(words);
  u.line("const int some = tang_get_word(words);");
  for (size_t g = 0; g < p_.kernel.grid.size(); ++g)
    u.line("const int " + name(p_.kernel.grid[g].var) + " = tang_get_word(words + " +
           number(int64_t(4 * (g + 1))) + ");");
  u.line("__syncwarp();");
  print(Release{w.ring, 0});
  print(Advance{w.ring});
  u.line("if (!some) break;");
  fragments();
  block(w.body);
  u.close();
}

void Printer::subgroups() {
  print_subgroup(u, p_);
  counters();
  block(p_.math);
}

void Printer::roles() {
  const auto& f = p_.fields;
  u.line("const uint32_t bars = base + " + number(p_.barriers) + ";");
  u.line("const int role = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0), lane = threadIdx.x & 31, "
         "warp = (threadIdx.x / 32) & 3;");
  u.open("if (threadIdx.x == 0)");
  for (auto& r : p_.rings) {
    const int copies = r.depth * (r.own ? f.math : 1);
    u.line("for (int i = 0; i < " + number(copies) + "; ++i) { tang_bar_init(bars + 8 * (" + number(r.full) +
           " + i), " + number(r.made ? r.releases : 1) + "); tang_bar_init(bars + 8 * (" + number(r.empty) + " + i), " + number(r.releases) +
           "); }");
  }
  u.line("asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");");
  for (size_t m = 0; m < p_.maps.size(); ++m) u.line("tang_prefetch_map(&map" + number(int64_t(m)) + ");");
  u.close();
  const bool cluster = f.cluster > 1; // nobody reaches a workgroup that has not begun, or has ended
  u.line("tang_follow();");
  u.line(cluster ? "tang_meet_cluster();" : "__syncthreads();");
  u.open("if (role == 0)");
  u.line("asm volatile(\"setmaxnreg.dec.sync.aligned.u32 " + number(f.producer_registers) + ";\");");
  u.open("if (threadIdx.x == 0)");
  counters();
  block(p_.producer);
  u.close();
  u.line("__syncwarp();");
  u.close();
  u.open("else");
  u.line("asm volatile(\"setmaxnreg.inc.sync.aligned.u32 " + number(f.math_registers) + ";\");");
  u.line("const int " + name(p_.team) + " = role - 1, own = " + name(p_.team) +
         " * 64 + warp * 16 + (lane >> 2), pair = (lane & 3) * 2;");
  u.line("const uint32_t st_row = ((lane & 7) + (lane & 8)) * 128;");
  u.line("(void)own, (void)pair, (void)st_row;");
  counters();
  block(p_.math);
  u.close();
  if (cluster) u.line("__syncwarp();"), u.line("tang_meet_cluster();");
}

std::string Printer::run() {
  const auto& f = p_.fields;
  u.indent = 1;
  u.line("extern __shared__ uint8_t raw[];");
  u.line("const uint32_t base = (tang_shared(raw) + 1023) & ~1023u;");
  p_.fields.tall ? subgroups() : roles();
  std::string params;
  for (size_t m = 0; !f.tall && m < p_.maps.size(); ++m)
    params += "const __grid_constant__ TangMap map" + number(int64_t(m)) + ", ";
  for (int m : p_.plain) {
    const Memory& x = p_.kernel.memories[size_t(m)];
    params += std::string(x.access == kernel::Access::read ? "const " : "") + element_type(x.format) +
              "* const m" + number(m) + ", ";
  }
  params = f.tall ? params.substr(0, params.size() - 2) : params + "int* const queue" + (p_.tiles ? ", float* const parts" : "");
  return "#ifndef TANG_ROLES\n#define TANG_ROLES\n" + cuda_roles_prelude() + cuda_subgroups_prelude() +
         "TANG int tang_floor_div32(int a, int b) { return a / b - (a % b != 0 && a < 0); }\n#endif\n" +
         instructions_ + "extern \"C\" __global__ void " +
         (f.cluster > 1 ? "__cluster_dims__(" + number(f.cluster) + ", 1, 1) " : "") + "__launch_bounds__(" +
         number(f.threads()) + ", " + number(f.tall ? resident_subgroups(f) : 1) + ") " + name_ + "(" + params + ") {\n" +
         u.out + "}\n";
}
} // namespace roles_text

std::string cuda_roles(const kernel::role::Program& p, const std::string& name) {
  return roles_text::Printer(p, name).run();
}

} // namespace tang::emit
