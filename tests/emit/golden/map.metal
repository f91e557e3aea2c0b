kernel void map(device const float* m0 [[buffer(0)]], device float* m1 [[buffer(1)]], threadgroup uchar* shared [[threadgroup(0)]], uint lane_id [[thread_index_in_threadgroup]], uint group_id [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]]) {
  const int lane = (int)lane_id;
  const int wg = (int)group_id;
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
