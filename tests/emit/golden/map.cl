kernel __attribute__((reqd_work_group_size(64, 1, 1))) void map(global const float* const base0, global float* const base1, const ulong from0, const ulong from1) {
  global const float* const m0 = (global const float*)((global const uchar*)base0 + from0);
  global float* const m1 = (global float*)((global uchar*)base1 + from1);
  const int lane = (int)get_local_id(0);
  const int wg = (int)get_group_id(0);
  const int64_t x0 = (int64_t)wg * 32;
  for (int p0 = (int)lane; p0 < 32; p0 += 64) {
    const int64_t x1 = (int64_t)p0;
    if ((-x0 - x1 + 99) >= 0) {
      const float t1 = m0[(x0 + x1)];
      const bool t3 = (t1 < 0x0p+0f);
      const float t4 = (-t1);
      const float t5 = tang_max1(t1, t4);
      const float t7 = (t5 * (-0x1.715476p+0f));
      const float t8 = tang_exp21(t7);
      const float t10 = (0x1p+0f + t8);
      const float t11 = (1 / t10);
      const float t12 = (t8 / t10);
      const float t13 = (t3 ? t12 : t11);
      const float t14 = (t1 * t13);
      const int64_t t15 = x0;
      const int64_t t16 = x1;
      const int64_t t17 = (int64_t)((uint64_t)t15 + (uint64_t)t16);
      const float t18 = (float)t17;
      const float t19 = (t14 + t18);
      const float v0 = t19;
      m1[(x0 + x1)] = (float)v0;
    }
  }
}
