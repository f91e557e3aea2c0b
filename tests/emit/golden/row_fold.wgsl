var<workgroup> tang_same: i32;
@group(0) @binding(0) var<storage, read_write> m0: array<f32>;
@group(0) @binding(1) var<storage, read_write> m1: array<f32>;
var<workgroup> m2: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane_id: u32, @builtin(workgroup_id) group_id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  _ = &m0;
  _ = &m1;
  let lane: i32 = i32(lane_id);
  let wg: i32 = i32((group_id.x + group_id.y * groups.x));
  let x0: i32 = i32(wg) * 2;
  for (var p0: i32 = i32(lane); p0 < 32; p0 += 64) {
    let x1: i32 = i32((u32(p0) / 16));
    let x3: i32 = i32((u32(p0) % 16));
    if ((-x0 - x1 + 4) >= 0) {
      var a0: f32 = 0.0f;
      for (var x4: i32 = 0; x4 < 5; x4 += 1) {
        if ((-x3 * 5 - x4 + 69) >= 0) {
          let t1: f32 = m0[(x0 * 70 + x1 * 70 + x3 * 5 + x4)];
          let l0: f32 = t1;
          let c3: f32 = (a0 + l0);
          let n0: f32 = c3;
          a0 = n0;
        }
      }
      m2[(x1 * 16 + x3)] = a0;
    }
  }
  storageBarrier(); workgroupBarrier();
  for (var p1: i32 = i32(lane); p1 < 2; p1 += 64) {
    let x1: i32 = i32(p1);
    if ((-x0 - x1 + 4) >= 0) {
      var a0: f32 = 0.0f;
      for (var x5: i32 = 0; x5 < 16; x5 += 1) {
        let t1: f32 = m2[(x1 * 16 + x5)];
        let l0: f32 = t1;
        let c3: f32 = (a0 + l0);
        let n0: f32 = c3;
        a0 = n0;
      }
      m1[(x0 + x1)] = a0;
    }
  }
}
