#include "tang/emit/cuda_roles_join.hpp"

#include "tang/base/number.hpp"

namespace tang::emit {

using namespace kernel::role;

// Parts lie as the lanes hold them: four values of a lane after each other, so that all accesses are 16 bytes
// wide.
void print_join(Unit& u, const Program& p, const Join& j, const std::string& at, const std::function<void()>& then) {
  const std::string team = name(p.team), m = "m" + number(j.dst), math = number(p.fields.math),
                    split = number(p.fields.split);
  const int64_t each = p.part_values / 128 / 4; // 16-byte words of a lane
  u.open("");
  u.line("float4* const all = (float4*)parts + ((int64_t)" + text(j.tile) + " * " + split + " * " + math +
         " + " + team + ") * " + number(each * 128) + " + (threadIdx.x & 127);");
  u.line("const int stride = " + number(each * 128) + " * " + math + ";");
  u.line("#pragma unroll");
  u.line("for (int i = 0; i < " + number(each) + "; ++i) all[" + name(p.part) +
         " * stride + i * 128] = make_float4(" + m + "[4 * i], " + m + "[4 * i + 1], " + m + "[4 * i + 2], " +
         m + "[4 * i + 3]);");
  u.line("__threadfence();");
  u.line("tang_team_sync(" + at + ");");
  u.line("const uint32_t word = base + " + number(p.words) + " + " +
         number(int64_t(8 * (p.kernel.grid.size() + 1))) + " + 4 * " + team + ";");
  u.open("if ((threadIdx.x & 127) == 0)");
  u.line("int* const arrived = queue + 2 + " + text(j.tile) + " * " + math + " + " + team + ";");
  u.line("const int last = atomicAdd(arrived, 1) == " + number(p.fields.split - 1) + ";");
  u.line("if (last) *arrived = 0;");
  u.line("tang_put_word(word, last);");
  u.close();
  u.line("tang_team_sync(" + at + ");");
  u.open("if (tang_get_word(word))");
  u.line("__threadfence();");
  u.line("#pragma unroll");
  u.line("for (int i = 0; i < " + number(2 * each * 2) + "; ++i) " + m + "[i] = 0;");
  u.line("#pragma unroll 1");
  u.open("for (int p = 0; p < " + split + "; ++p)");
  u.line("#pragma unroll");
  u.open("for (int i = 0; i < " + number(each) + "; ++i)");
  u.line("const float4 v = __ldcg(all + p * stride + i * 128);");
  u.line(m + "[4 * i] += v.x, " + m + "[4 * i + 1] += v.y, " + m + "[4 * i + 2] += v.z, " + m +
         "[4 * i + 3] += v.w;");
  u.close();
  u.close();
  then();
  u.close();
  u.close();
}

namespace {
// A part in shared memory: a warp's rows after those of the warp before, of each the lanes' values as in print_join.
int64_t warp_bytes(const Program& p) { return p.part_values; } // 16 of 64 rows, 4 bytes a value

std::string owner(const Program& p) {
  return "(" + name(p.team) + " * 4 + warp) * " + number(p.fields.split) + " / " + number(4 * p.fields.math);
}

std::string warp_place(const Program& p, const std::string& slot) {
  return slot + " + (" + name(p.team) + " * 4 + warp) * " + number(warp_bytes(p)) + " + lane * 16";
}
} // namespace

// Rows of its own a workgroup keeps in registers.
void print_offer(Unit& u, const Program& p, const Offer& x, const std::string& slot) {
  const std::string m = "m" + number(x.tile);
  u.open("if (" + owner(p) + " != " + name(p.part) + ")");
  u.line("const uint32_t to = " + warp_place(p, slot) + ";");
  u.line("#pragma unroll");
  u.line("for (int i = 0; i < " + number(p.part_values / 512) + "; ++i) tang_store_quad(to + i * 512, " + m +
         "[4 * i], " + m + "[4 * i + 1], " + m + "[4 * i + 2], " + m + "[4 * i + 3]);");
  u.close();
  u.line("tang_fence_async();"); // copies come there later
  u.line("__syncwarp();");
}

void print_share(Unit& u, const Program& p, const Join& j, const std::string& slot, const std::function<void()>& then) {
  const std::string m = "m" + number(j.dst), split = number(p.fields.split);
  u.open("if (" + owner(p) + " == " + name(p.part) + ")");
  u.line("const uint32_t from = " + warp_place(p, slot) + ";");
  u.line("uint32_t peer[" + split + "];");
  u.line("#pragma unroll");
  u.line("for (int p = 0; p < " + split + "; ++p) peer[p] = tang_at(from, p);");
  u.line("#pragma unroll");
  u.open("for (int i = 0; i < " + number(p.part_values / 512) + "; ++i)");
  u.line("if (i % 4 == 0) __syncwarp();"); // else all loads would come first, and take more registers than there are
  u.line("float s[4] = {0, 0, 0, 0};");
  u.line("#pragma unroll");
  u.open("for (int p = 0; p < " + split + "; ++p)");
  u.line("float v[4] = {" + m + "[4 * i], " + m + "[4 * i + 1], " + m + "[4 * i + 2], " + m + "[4 * i + 3]};");
  u.line("tang_peer_quad(v, peer[p] + i * 512, p != " + name(p.part) + ");");
  u.line("s[0] += v[0], s[1] += v[1], s[2] += v[2], s[3] += v[3];");
  u.close();
  u.line(m + "[4 * i] = s[0], " + m + "[4 * i + 1] = s[1], " + m + "[4 * i + 2] = s[2], " + m + "[4 * i + 3] = s[3];");
  u.close();
  then();
  u.close();
}

} // namespace tang::emit
