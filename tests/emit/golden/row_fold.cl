kernel __attribute__((reqd_work_group_size(64, 1, 1))) void row_fold(global const float* const base0, global float* const base1, const ulong from0, const ulong from1) {
  global const float* const m0 = (global const float*)((global const uchar*)base0 + from0);
  global float* const m1 = (global float*)((global uchar*)base1 + from1);
  local uchar shared[256] __attribute__((aligned(16)));
  local float* const m2 = (local float*)(shared + 0);
  const int lane = (int)get_local_id(0);
  const int wg = (int)get_group_id(0);
  const int64_t x0 = (int64_t)wg * 2;
  for (int p0 = (int)lane; p0 < 32; p0 += 64) {
    const int64_t x1 = (int64_t)((unsigned)p0 / 16);
    const int64_t x3 = (int64_t)((unsigned)p0 % 16);
    if ((-x0 - x1 + 4) >= 0) {
      float a0 = 0x0p+0f;
      for (int64_t x4 = 0; x4 < 5; x4 += 1) {
        if ((-x3 * 5 - x4 + 69) >= 0) {
          const float t1 = m0[(x0 * 70 + x1 * 70 + x3 * 5 + x4)];
          const float l0 = t1;
          const float c3 = (a0 + l0);
          const float n0 = c3;
          a0 = n0;
        }
      }
      m2[(x1 * 16 + x3)] = (float)a0;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int p1 = (int)lane; p1 < 2; p1 += 64) {
    const int64_t x1 = (int64_t)p1;
    if ((-x0 - x1 + 4) >= 0) {
      float a0 = 0x0p+0f;
      for (int64_t x5 = 0; x5 < 16; x5 += 1) {
        const float t1 = m2[(x1 * 16 + x5)];
        const float l0 = t1;
        const float c3 = (a0 + l0);
        const float n0 = c3;
        a0 = n0;
      }
      m1[(x0 + x1)] = (float)a0;
    }
  }
}
