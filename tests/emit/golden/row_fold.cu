extern "C" __global__ void __launch_bounds__(64, 1) row_fold(const float* const m0, float* const m1) {
  tang_follow();
  extern __shared__ __align__(16) unsigned char shared[];
  float* const m2 = (float*)(shared + 0);
  const int lane = (int)threadIdx.x;
  const int wg = (int)blockIdx.x;
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
  __syncthreads();
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
