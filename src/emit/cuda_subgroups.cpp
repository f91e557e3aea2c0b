#include "tang/emit/cuda_subgroups.hpp"

#include <algorithm>
#include <set>

#include "tang/base/number.hpp"
#include "tang/emit/cuda_row_text.hpp"
#include "tang/emit/cuda_stage.hpp"
#include "tang/kernel/roles_parts.hpp"

namespace tang::emit {

namespace {
using kernel::role::Program;

constexpr int64_t line_bytes = 128, chunk_bytes = 16, chunks = line_bytes / chunk_bytes;
constexpr int64_t staged_rows = 16, subgroup = 32;

std::string team(const Program& p) { return name(p.team); }

std::string first_row(const Program& p) {
  return "(" + team(p) + " / " + number(p.fields.across) + " * " + number(p.fields.team_rows()) + ")";
}

std::string first_column(const Program& p) {
  return "(" + team(p) + " % " + number(p.fields.across) + " * " + number(p.beside) + ")";
}

// Where a point lies in a global, and whether that is inside; `at`: its coordinates as text.
std::string offset_of(const kernel::Memory& m, const std::vector<std::string>& at) {
  std::string out;
  for (size_t d = 0; d < at.size(); ++d)
    out += (d ? " + " : "") + ("(int64_t)(" + at[d] + ") * " + number(m.strides[d]));
  return out;
}

// `without`: dimensions that need no test.
std::string inside(const kernel::Memory& m, const std::vector<std::string>& at, const std::vector<bool>& without = {}) {
  std::string out;
  for (size_t d = 0; d < at.size(); ++d)
    if (without.empty() || !without[d])
      out += (out.empty() ? "" : " && ") + ("(uint32_t)(" + at[d] + ") < " + number(m.shape[d]) + "u");
  return out.empty() ? "true" : out;
}

// Whether `n` places from there on, `apart`, are below `end` for every block of work.
bool always_inside(const kernel::Kernel& k, const kernel::Affine& from, int64_t n, int64_t apart, int64_t end) {
  int64_t most = from.c + (n - 1) * apart;
  for (auto& [v, c] : from.terms) {
    const auto g = std::find_if(k.grid.begin(), k.grid.end(), [v = v](auto& x) { return x.var == v; });
    if (g == k.grid.end() || c < 0) return false;
    most += c * (ceil_div(g->extent, g->step) - 1) * g->step;
  }
  return from.c >= 0 && most < end;
}

// Of the chunk that begins at the last coordinate: bytes that the global has.
std::string bytes_there(const kernel::Memory& m, const std::string& last) {
  const int64_t size = expr::row(m.format).bits / 8;
  if (m.shape.back() * size % chunk_bytes == 0) return number(chunk_bytes);
  return "min(" + number(chunk_bytes) + ", (" + number(m.shape.back()) + " - (" + last + ")) * " + number(size) + ")";
}

const char* const prelude = R"(TANG void tang_copy_chunk(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
}
TANG int tang_fresh(int x) { asm volatile("" : "+r"(x)); return x; }
TANG void tang_copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> TANG void tang_copies_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
TANG void tang_fragment(uint32_t (&x)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from) : "memory");
}
TANG void tang_fragment_turned(uint32_t (&x)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from) : "memory");
}
// d += a b for 16 rows and 8 columns, 32 bytes of terms.
#define TANG_SUBGROUP_PRODUCT(F, SHAPE) TANG void tang_product_##F(float* d, const uint32_t* a, uint32_t b0, uint32_t b1) { \
  asm("mma.sync.aligned." SHAPE ".row.col.f32." #F "." #F ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)); }
TANG_SUBGROUP_PRODUCT(bf16, "m16n8k16")
TANG_SUBGROUP_PRODUCT(f16, "m16n8k16")
TANG_SUBGROUP_PRODUCT(tf32, "m16n8k8")
TANG uint4 tang_get_quad(uint32_t from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from) : "memory");
  return v;
}
// The first `bytes` of 16, in words or halves.
template <class T> TANG void tang_put_some(T* to, const uint4& v, int bytes) {
  if (bytes >= 16) { *(uint4*)to = v; return; }
#pragma unroll
  for (int i = 0; i < (int)(16 / sizeof(T)); ++i)
    if (i * (int)sizeof(T) < bytes) to[i] = ((const T*)&v)[i];
}
)";
} // namespace

std::string cuda_subgroups_prelude() { return prelude; }

int resident_subgroups(const target::Roles& f) {
  constexpr int registers = 65536; // of a processor
  return std::max(1, registers / (f.threads() * f.math_registers));
}

void print_subgroup(Unit& u, const Program& p) {
  u.line("const int " + team(p) + " = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0), lane = threadIdx.x & 31;");
  u.line("const int first_own = " + first_row(p) + " + (lane >> 2), pair = (lane & 3) * 2 + " + first_column(p) + ";");
  u.line("const uint32_t st_row = ((lane & 7) + (lane & 8)) * 128;");
  u.line("(void)first_own, (void)pair, (void)st_row;");
  u.line("tang_follow();");
}

std::string declare_row_blocks(const Unit& u, const Program& p, int memory) {
  std::string out = declare_fragment(u, memory);
  const size_t at = out.find(" m") + 1;
  out[at] = 'b';
  return out.insert(out.find('['), "[" + number(p.fields.tall) + "]");
}

void each_row_block(Unit& u, const Program& p, const std::vector<int>& tiles, const std::function<void()>& print) {
  if (!p.fields.tall) return print();
  u.line("#pragma unroll");
  u.open("for (int rows = 0; rows < " + number(p.fields.tall) + "; ++rows)");
  u.line("[[maybe_unused]] const int own = first_own + " + number(staged_rows) + " * rows;");
  for (int m : std::set<int>(tiles.begin(), tiles.end()))
    if (u.memory(m).home == kernel::Home::fragment) u.line("auto& m" + number(m) + " = b" + number(m) + "[rows];");
  print();
  u.close();
}

// A chunk of 16 bytes a lane, eight a line; the lines lie as bulk copies would leave them.
void print_copy(Unit& u, const Program& p, const kernel::role::Load& x, const std::string& to) {
  const kernel::role::Map& map = p.maps[size_t(x.map)];
  const kernel::Memory& m = u.memory(map.memory);
  const int64_t each = chunk_bytes * 8 / expr::row(m.format).bits, threads = p.fields.threads();
  int64_t lines = 1;
  for (size_t d = 0; d + 1 < map.box.size(); ++d) lines *= map.box[d];
  u.open("");
  u.line("const uint32_t to = " + to + ";");
  u.line("const int first = tang_fresh((int)threadIdx.x / 8);"); // else every copy's places stay in registers
  u.line("#pragma unroll");
  u.open("for (int i = 0; i < " + number(ceil_div(lines * chunks, threads)) + "; ++i)");
  u.line("const int line = first + i * " + number(threads / chunks) + ", part = threadIdx.x & 7;");
  if (lines * chunks % threads) u.line("if (line >= " + number(lines) + ") break;");
  std::vector<std::string> at(map.box.size());
  std::vector<bool> without;
  for (size_t d = 0; d < map.box.size(); ++d)
    without.push_back(always_inside(p.kernel, x.from[d], map.box[d], map.apart[d], m.shape[d]));
  int64_t below = 1;
  for (size_t d = map.box.size(); d-- > 0;) {
    at[d] = "c" + number(int64_t(d));
    std::string on = "part * " + number(each);
    if (d + 1 < map.box.size()) {
      on = map.box[d] == 1 ? "0" : "line" + (below > 1 ? " / " + number(below) : "") + (below * map.box[d] < lines ? " % " + number(map.box[d]) : "");
      if (map.box[d] > 1 && map.apart[d] != 1) on += " * " + number(map.apart[d]);
      below *= map.box[d];
    }
    u.line("const int " + at[d] + " = " + text(x.from[d]) + " + " + on + ";");
  }
  u.line("tang_copy_chunk(to + line * 128 + ((part ^ (line & 7)) << 4), m" + number(map.memory) + " + " + offset_of(m, at) +
         ", " + inside(m, at, without) + " ? " + bytes_there(m, at.back()) + " : 0);");
  u.close();
  u.close();
}

namespace {
// The lanes' addresses of an operand's fragments, which have 16 of its rows and 32 bytes of terms.
// Lanes 0 to 7 name the rows of the first 8 x 8 part, and so on; `beyond`: lanes 8 to 15 are eight rows on (else 16 bytes).
void declare(Unit& u, const std::string& side, const kernel::role::Window& w, const std::string& place, const std::string& first,
             bool beyond) {
  // Rows of the slot are the operand's rows, or terms; the parts' order is the registers'.
  const bool rows_first = beyond == w.k_major;
  const std::string row = rows_first ? "(lane & 15)" : "((lane & 7) + (lane >> 4 << 3))", half = rows_first ? "(lane >> 4)" : "(lane >> 3 & 1)";
  const std::string begin = w.k_major ? first + " * 128" : "(" + first + " >> 6) * " + number(w.lead * 16);
  const std::string chunk = w.k_major ? half : half + " ^ (" + first + " >> 3 & 7)";
  u.line("const uint32_t " + side + " = " + place + " + " + begin + " + " + row + " * 128, " + side + "x = ((" + chunk + ") ^ (lane & 7)) << 4;");
}

// The n-th 16 rows, term step s.
std::string address(const std::string& side, const kernel::role::Window& w, const std::string& n) {
  const int64_t box = w.steps.size() > 4 ? w.steps[4] * 16 : 0;
  if (w.k_major)
    return side + " + s / 4 * " + number(box) + " + " + n + " * 2048 + (" + side + "x ^ s % 4 * 32)";
  return side + " + s * 2048 + " + n + " / 4 * " + number(w.lead * 16) + " + (" + side + "x ^ " + n + " % 4 * 32)";
}

std::string fragment(const kernel::role::Window& w) { return w.k_major ? "tang_fragment(" : "tang_fragment_turned("; }
} // namespace

void print_product_of_subgroup(Unit& u, const Program& p, const kernel::role::Issue& x, const std::string& a,
                               const std::string& b) {
  const std::string d = "b" + number(x.dst), tall = number(p.fields.tall), product = "tang_product_" + std::string(expr::row(x.format).name);
  u.open("");
  if (x.a_tile < 0) declare(u, "a", x.a, a, first_row(p), true);
  declare(u, "b", x.b, b, p.beside ? first_column(p) : "0", false);
  if (x.fresh) {
    u.line("#pragma unroll");
    u.line("for (int rows = 0; rows < " + tall + "; ++rows)");
    u.line("  for (int e = 0; e < " + number(x.n / 2) + "; ++e) " + d + "[rows][e] = 0;");
  }
  u.line("#pragma unroll");
  u.open("for (int s = 0; s < " + number(int64_t(x.b.steps.size())) + "; ++s)");
  if (x.a_tile < 0) {
    u.line("uint32_t fa[" + tall + "][4];");
    u.line("#pragma unroll");
    u.line("for (int rows = 0; rows < " + tall + "; ++rows) " + fragment(x.a) + "fa[rows], " + address("a", x.a, "rows") + ");");
  }
  u.line("#pragma unroll");
  u.open("for (int n = 0; n < " + number(x.n / 16) + "; ++n)");
  u.line("uint32_t fb[4];");
  u.line(fragment(x.b) + "fb, " + address("b", x.b, "n") + ");");
  u.line("#pragma unroll");
  u.open("for (int rows = 0; rows < " + tall + "; ++rows)");
  const std::string left = x.a_tile < 0 ? "fa[rows]" : "&b" + number(x.a_tile) + "[rows][4 * s]";
  u.line(product + "(&" + d + "[rows][8 * n], " + left + ", fb[0], fb[1]);");
  u.line(product + "(&" + d + "[rows][8 * n + 4], " + left + ", fb[2], fb[3]);");
  u.close(), u.close(), u.close(), u.close();
}

namespace {
// One box of a subgroup's 16 rows goes to a global, 16 bytes a lane.
void send(Unit& u, const Program& p, const kernel::role::Flush& x, size_t d, int64_t from, int64_t columns) {
  const kernel::Ref& dst = x.what.dst[d];
  const kernel::Memory& m = u.memory(dst.memory);
  const int64_t each = chunk_bytes * 8 / expr::row(m.format).bits;
  u.line("#pragma unroll");
  u.open("for (int i = 0; i < " + number(staged_rows * chunks / subgroup) + "; ++i)");
  u.line("const int line = i * " + number(subgroup / chunks) + " + (lane >> 3), part = lane & 7;");
  print_row(u, x.row, first_row(p) + " + " + number(staged_rows) + " * rows + line");
  u.line("const int " + name(x.column) + " = " + first_column(p) + " + " + number(from) + " + part * " + number(each) + ";");
  std::vector<std::string> at;
  for (auto& c : dst.index) at.push_back(text(c.affine));
  std::string there = inside(m, at);
  if (columns < line_bytes * 8 / expr::row(m.format).bits) there += " && part * " + number(each) + " < " + number(columns);
  u.line("if (" + there + ") tang_put_some(m" + number(dst.memory) + " + " + offset_of(m, at) +
         ", tang_get_quad(stage + line * 128 + ((part ^ (line & 7)) << 4)), " + bytes_there(m, at.back()) + ");");
  u.close();
}
} // namespace

// Each subgroup stages 16 of its rows at a time, a box of 128 bytes of columns after the other.
void print_flush_by_lanes(Unit& u, const Program& p, const kernel::role::Flush& x) {
  const bool halves = expr::row(u.memory(x.what.dst[0].memory).format).bits == 16;
  const int64_t width = halves ? 64 : 32;
  const kernel::Touched t = kernel::touched({x.what});
  each_row_block(u, p, t.reads, [&] {
    rows_text::RowText row(u, x.what.body, x.row, x.column);
    row.prepare(x.what.body.values);
    u.line("const uint32_t stage = base + " + number(p.staging) + " + " + team(p) + " * " + number(staged_rows * line_bytes) + ";");
    for (int64_t from = 0; from < x.columns; from += width) {
      const int64_t columns = std::min(width, x.columns - from);
      u.open("");
      const std::vector<std::string> values = rows_text::print_values(u, row, x, from, columns);
      for (size_t d = 0; d < x.what.dst.size(); ++d) {
        u.line("__syncwarp();"); // what was staged before is read
        u.open("");
        u.line("[[maybe_unused]] const int pair = (lane & 3) * 2;"); // of the box
        for (int64_t q = 0; q < 4; ++q)
          halves ? stage_halves(u, values[d], "stage", q, columns) : stage_words(u, values[d], "stage", q, columns);
        u.close();
        u.line("__syncwarp();");
        send(u, p, x, d, from, columns);
      }
      u.close();
    }
  });
}

void print_let(Unit& u, const kernel::Let& x) {
  using L = kernel::Let;
  std::string e = x.kind == L::load ? "" : text(x.operands[0]);
  if (x.kind == L::load) {
    const kernel::Memory& m = u.memory(x.ref.memory);
    std::vector<std::string> at;
    for (auto& c : x.ref.index) at.push_back(text(c.affine));
    e = "(int)" + load_element(u, m.format, "m" + number(x.ref.memory) + "[" + offset_of(m, at) + "]");
    if (x.ref.checked) e = "(" + inside(m, at) + " ? " + e + " : 0)";
  }
  if (x.kind == L::floor_div) e = "tang_floor_div32(" + e + ", " + number(x.divisor) + ")";
  for (size_t i = 1; i < x.operands.size(); ++i)
    e = (x.kind == L::min ? "min(" : "max(") + e + ", " + text(x.operands[i]) + ")";
  u.line("const int " + name(x.var) + " = " + e + ";");
}

} // namespace tang::emit
