extern "C" __global__ void __launch_bounds__(64, 1) matmul(const float* const m0, const float* const m1, float* const m2) {
  tang_follow();
  extern __shared__ __align__(16) unsigned char shared[];
  float* const m3 = (float*)(shared + 0);
  float* const m4 = (float*)(shared + 128);
  float* const m5 = (float*)(shared + 256);
  const int lane = (int)threadIdx.x;
  const int wg = (int)blockIdx.x;
  const int64_t x1 = (int64_t)((unsigned)wg % 3) * 8;
  const int64_t x0 = (int64_t)((unsigned)wg / 3) * 8;
  for (int p0 = (int)lane; p0 < 64; p0 += 64) {
    const int64_t x3 = (int64_t)((unsigned)p0 / 8);
    const int64_t x4 = (int64_t)((unsigned)p0 % 8);
     {
      const float v0 = 0x0p+0f;
      m5[(x3 * 8 + x4)] = (float)v0;
    }
  }
  const int64_t end1 = 12;
  for (int64_t x2 = 0; x2 < end1; x2 += 4) {
    __syncthreads();
    for (int p2 = (int)lane; p2 < 32; p2 += 64) {
      const int64_t x5 = (int64_t)((unsigned)p2 / 4);
      const int64_t x6 = (int64_t)((unsigned)p2 % 4);
      if ((-x0 - x5 + 18) >= 0) {
        const float t1 = m0[(x0 * 13 + x2 + x5 * 13 + x6)];
        const float v0 = t1;
        m3[(x5 * 4 + x6)] = (float)v0;
      }
      else {
        m3[(x5 * 4 + x6)] = (float)0x0p+0f;
      }
    }
    for (int p3 = (int)lane; p3 < 32; p3 += 64) {
      const int64_t x7 = (int64_t)((unsigned)p3 / 16);
      const int64_t x8 = (int64_t)((unsigned)p3 / 4 % 4);
      const int64_t x9 = (int64_t)((unsigned)p3 % 4);
      if ((-x1 - x7 * 4 - x9 + 20) >= 0) {
        const float t1 = m1[(x1 + x2 * 21 + x7 * 4 + x8 * 21 + x9)];
        const float v0 = t1;
        m4[(x7 * 16 + x8 * 4 + x9)] = (float)v0;
      }
      else {
        m4[(x7 * 16 + x8 * 4 + x9)] = (float)0x0p+0f;
      }
    }
    __syncthreads();
     {
      const int64_t M = tang_lesser(8, (-x0 + 19));
      const int64_t N = tang_lesser(8, (-x1 + 21));
      const int64_t K = tang_lesser(4, (-x2 + 13));
      for (int block = lane / 32; block < 4; block += 2) {
        int left = block;
        const int64_t x12 = left % 1 * 32;
        left = left / 1;
        const int64_t x11 = left % 2;
        left = left / 2;
        const int64_t x10 = left % 2 * 4;
        left = left / 2;
        const int rows = (int)tang_lesser(M - x10, 8 - x10);
        const int columns = (int)tang_lesser(N - (x11 * 4 + x12), 4 - x12);
        if (rows <= 0 || columns <= 0) { continue; }
        float acc[4][1];
        int ra[4];
        #pragma unroll
        for (int r = 0; r < 4; r += 1) {
          ra[r] = (r < rows ? r : rows - 1) * 4;
        }
        int cb[1];
        #pragma unroll
        for (int v = 0; v < 1; v += 1) {
          const int x = lane % 32 + v * 32;
          cb[v] = (x < columns ? x : columns - 1) * 1;
        }
        #pragma unroll
        for (int r = 0; r < 4; r += 1) {
          #pragma unroll
          for (int v = 0; v < 1; v += 1) {
            acc[r][v] = 0x0p+0f;
          }
        }
        const int ia0 = (int)((x10 * 4));
        const int ib0 = (int)((x11 * 16 + x12));
        const int terms = (int)K;
        #pragma unroll 4
        for (int x13 = 0; x13 < 4 && x13 * 1 < terms; x13 += 1) {
          const int ia = ia0 + x13 * 1;
          const int ib = ib0 + x13 * 4;
          float b[1];
          #pragma unroll
          for (int v = 0; v < 1; v += 1) {
            b[v] = m4[ib + cb[v]];
          }
          #pragma unroll
          for (int r = 0; r < 4; r += 1) {
            const float a = m3[ia + ra[r]];
            #pragma unroll
            for (int v = 0; v < 1; v += 1) {
              acc[r][v] = tang_fma1(a, b[v], acc[r][v]);
            }
          }
        }
        #pragma unroll
        for (int r = 0; r < 4; r += 1) {
          #pragma unroll
          for (int v = 0; v < 1; v += 1) {
            const int x = lane % 32 + v * 32;
            if (r < rows && x < columns) {
              m5[(x10 * 8 + x11 * 4 + x12) + r * 8 + x * 1] = (float)(m5[(x10 * 8 + x11 * 4 + x12) + r * 8 + x * 1] + acc[r][v]);
            }
          }
        }
      }
    }
  }
  const int64_t end4 = 13;
  for (int64_t x2 = 12; x2 < end4; x2 += 4) {
    __syncthreads();
    for (int p5 = (int)lane; p5 < 32; p5 += 64) {
      const int64_t x5 = (int64_t)((unsigned)p5 / 4);
      const int64_t x6 = (int64_t)((unsigned)p5 % 4);
      if ((-x0 - x5 + 18) >= 0 && (((-x2 - x6 + 12) >= 0))) {
        const float t1 = m0[(x0 * 13 + x2 + x5 * 13 + x6)];
        const float v0 = t1;
        m3[(x5 * 4 + x6)] = (float)v0;
      }
      else {
        m3[(x5 * 4 + x6)] = (float)0x0p+0f;
      }
    }
    for (int p6 = (int)lane; p6 < 32; p6 += 64) {
      const int64_t x7 = (int64_t)((unsigned)p6 / 16);
      const int64_t x8 = (int64_t)((unsigned)p6 / 4 % 4);
      const int64_t x9 = (int64_t)((unsigned)p6 % 4);
      if ((-x1 - x7 * 4 - x9 + 20) >= 0 && (((-x2 - x8 + 12) >= 0))) {
        const float t1 = m1[(x1 + x2 * 21 + x7 * 4 + x8 * 21 + x9)];
        const float v0 = t1;
        m4[(x7 * 16 + x8 * 4 + x9)] = (float)v0;
      }
      else {
        m4[(x7 * 16 + x8 * 4 + x9)] = (float)0x0p+0f;
      }
    }
    __syncthreads();
     {
      const int64_t M = tang_lesser(8, (-x0 + 19));
      const int64_t N = tang_lesser(8, (-x1 + 21));
      const int64_t K = tang_lesser(4, (-x2 + 13));
      for (int block = lane / 32; block < 4; block += 2) {
        int left = block;
        const int64_t x12 = left % 1 * 32;
        left = left / 1;
        const int64_t x11 = left % 2;
        left = left / 2;
        const int64_t x10 = left % 2 * 4;
        left = left / 2;
        const int rows = (int)tang_lesser(M - x10, 8 - x10);
        const int columns = (int)tang_lesser(N - (x11 * 4 + x12), 4 - x12);
        if (rows <= 0 || columns <= 0) { continue; }
        float acc[4][1];
        int ra[4];
        #pragma unroll
        for (int r = 0; r < 4; r += 1) {
          ra[r] = (r < rows ? r : rows - 1) * 4;
        }
        int cb[1];
        #pragma unroll
        for (int v = 0; v < 1; v += 1) {
          const int x = lane % 32 + v * 32;
          cb[v] = (x < columns ? x : columns - 1) * 1;
        }
        #pragma unroll
        for (int r = 0; r < 4; r += 1) {
          #pragma unroll
          for (int v = 0; v < 1; v += 1) {
            acc[r][v] = 0x0p+0f;
          }
        }
        const int ia0 = (int)((x10 * 4));
        const int ib0 = (int)((x11 * 16 + x12));
        const int terms = (int)K;
        #pragma unroll 4
        for (int x13 = 0; x13 < 4 && x13 * 1 < terms; x13 += 1) {
          const int ia = ia0 + x13 * 1;
          const int ib = ib0 + x13 * 4;
          float b[1];
          #pragma unroll
          for (int v = 0; v < 1; v += 1) {
            b[v] = m4[ib + cb[v]];
          }
          #pragma unroll
          for (int r = 0; r < 4; r += 1) {
            const float a = m3[ia + ra[r]];
            #pragma unroll
            for (int v = 0; v < 1; v += 1) {
              acc[r][v] = tang_fma1(a, b[v], acc[r][v]);
            }
          }
        }
        #pragma unroll
        for (int r = 0; r < 4; r += 1) {
          #pragma unroll
          for (int v = 0; v < 1; v += 1) {
            const int x = lane % 32 + v * 32;
            if (r < rows && x < columns) {
              m5[(x10 * 8 + x11 * 4 + x12) + r * 8 + x * 1] = (float)(m5[(x10 * 8 + x11 * 4 + x12) + r * 8 + x * 1] + acc[r][v]);
            }
          }
        }
      }
    }
  }
  __syncthreads();
  for (int p7 = (int)lane; p7 < 64; p7 += 64) {
    const int64_t x14 = (int64_t)((unsigned)p7 / 8);
    const int64_t x15 = (int64_t)((unsigned)p7 % 8);
    if ((-x0 - x14 + 18) >= 0 && (-x1 - x15 + 20) >= 0) {
      const float t1 = m5[(x14 * 8 + x15)];
      const float v0 = t1;
      m2[(x0 * 21 + x1 + x14 * 21 + x15)] = (float)v0;
    }
  }
}
