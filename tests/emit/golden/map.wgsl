var<workgroup> tang_same: i32;
@group(0) @binding(0) var<storage, read_write> m0: array<f32>;
@group(0) @binding(1) var<storage, read_write> m1: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane_id: u32, @builtin(workgroup_id) group_id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  _ = &m0;
  _ = &m1;
  let lane: i32 = i32(lane_id);
  let wg: i32 = i32((group_id.x + group_id.y * groups.x));
  let x0: i32 = i32(wg) * 32;
  for (var p0: i32 = i32(lane); p0 < 32; p0 += 64) {
    let x1: i32 = i32(p0);
    if ((-x0 - x1 + 99) >= 0) {
      let t1: f32 = m0[(x0 + x1)];
      let t3: bool = (t1 < 0.0f);
      let t4: f32 = (-t1);
      let t5: f32 = tang_max1(t1, t4);
      let t7: f32 = (t5 * (-1.44269502f));
      let t8: f32 = tang_exp21(t7);
      let t10: f32 = (1.0f + t8);
      let t11: f32 = (1 / t10);
      let t12: f32 = (t8 / t10);
      let t13: f32 = select(t11, t12, t3);
      let t14: f32 = (t1 * t13);
      let t15: i32 = x0;
      let t16: i32 = x1;
      let t17: i32 = (t15 + t16);
      let t18: f32 = f32(t17);
      let t19: f32 = (t14 + t18);
      let v0: f32 = t19;
      m1[(x0 + x1)] = v0;
    }
  }
}
