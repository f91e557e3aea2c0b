layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer B0 { float m0[]; };
layout(std430, set = 0, binding = 1) buffer B1 { float m1[]; };
shared float m2[64];
void main() {
  const int lane = int(gl_LocalInvocationIndex);
  const int wg = int((gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x));
  const int64_t x0 = int64_t(wg) * 2;
  for (int p0 = int(lane); p0 < 32; p0 += 64) {
    const int64_t x1 = int64_t((uint(p0) / 16));
    const int64_t x3 = int64_t((uint(p0) % 16));
    if ((-x0 - x1 + 4) >= 0) {
      float a0 = 0.0f;
      for (int64_t x4 = 0; x4 < 5; x4 += 1) {
        if ((-x3 * 5 - x4 + 69) >= 0) {
          const float t1 = m0[uint((x0 * 70 + x1 * 70 + x3 * 5 + x4))];
          const float l0 = t1;
          const float c3 = (a0 + l0);
          const float n0 = c3;
          a0 = n0;
        }
      }
      m2[uint((x1 * 16 + x3))] = float(a0);
    }
  }
  groupMemoryBarrier(); barrier();
  for (int p1 = int(lane); p1 < 2; p1 += 64) {
    const int64_t x1 = int64_t(p1);
    if ((-x0 - x1 + 4) >= 0) {
      float a0 = 0.0f;
      for (int64_t x5 = 0; x5 < 16; x5 += 1) {
        const float t1 = m2[uint((x1 * 16 + x5))];
        const float l0 = t1;
        const float c3 = (a0 + l0);
        const float n0 = c3;
        a0 = n0;
      }
      m1[uint((x0 + x1))] = float(a0);
    }
  }
}
