var<workgroup> tang_same: i32;
@group(0) @binding(0) var<storage, read_write> m0: array<f32>;
@group(0) @binding(1) var<storage, read_write> m1: array<f32>;
@group(0) @binding(2) var<storage, read_write> m2: array<f32>;
var<workgroup> m3: array<f32, 32>;
var<workgroup> m4: array<f32, 32>;
var<workgroup> m5: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane_id: u32, @builtin(workgroup_id) group_id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  _ = &m0;
  _ = &m1;
  _ = &m2;
  let lane: i32 = i32(lane_id);
  let wg: i32 = i32((group_id.x + group_id.y * groups.x));
  let x1: i32 = i32((u32(wg) % 3)) * 8;
  let x0: i32 = i32((u32(wg) / 3)) * 8;
  for (var p0: i32 = i32(lane); p0 < 64; p0 += 64) {
    let x3: i32 = i32((u32(p0) / 8));
    let x4: i32 = i32((u32(p0) % 8));
     {
      let v0: f32 = 0.0f;
      m5[(x3 * 8 + x4)] = v0;
    }
  }
  let end1: i32 = 12;
  for (var x2: i32 = 0; x2 < end1; x2 += 4) {
    storageBarrier(); workgroupBarrier();
    for (var p2: i32 = i32(lane); p2 < 32; p2 += 64) {
      let x5: i32 = i32((u32(p2) / 4));
      let x6: i32 = i32((u32(p2) % 4));
      if ((-x0 - x5 + 18) >= 0) {
        let t1: f32 = m0[(x0 * 13 + x2 + x5 * 13 + x6)];
        let v0: f32 = t1;
        m3[(x5 * 4 + x6)] = v0;
      }
      else {
        m3[(x5 * 4 + x6)] = 0.0f;
      }
    }
    for (var p3: i32 = i32(lane); p3 < 32; p3 += 64) {
      let x7: i32 = i32((u32(p3) / 16));
      let x8: i32 = i32((u32(p3) / 4 % 4));
      let x9: i32 = i32((u32(p3) % 4));
      if ((-x1 - x7 * 4 - x9 + 20) >= 0) {
        let t1: f32 = m1[(x1 + x2 * 21 + x7 * 4 + x8 * 21 + x9)];
        let v0: f32 = t1;
        m4[(x7 * 16 + x8 * 4 + x9)] = v0;
      }
      else {
        m4[(x7 * 16 + x8 * 4 + x9)] = 0.0f;
      }
    }
    storageBarrier(); workgroupBarrier();
     {
      let M: i32 = tang_lesser(8, (-x0 + 19));
      let N: i32 = tang_lesser(8, (-x1 + 21));
      let K: i32 = tang_lesser(4, (-x2 + 13));
      for (var block: i32 = lane / 32; block < 4; block += 2) {
        var left: i32 = block;
        let x12: i32 = left % 1 * 32;
        left = left / 1;
        let x11: i32 = left % 2;
        left = left / 2;
        let x10: i32 = left % 2 * 4;
        left = left / 2;
        let rows: i32 = i32(tang_lesser(M - x10, 8 - x10));
        let columns: i32 = i32(tang_lesser(N - (x11 * 4 + x12), 4 - x12));
        if (rows <= 0 || columns <= 0) { continue; }
        var acc: array<array<f32, 1>, 4>;
        var ra: array<i32, 4>;
        for (var r: i32 = 0; r < 4; r += 1) {
          ra[r] = select(rows - 1, r, r < rows) * 4;
        }
        var cb: array<i32, 1>;
        for (var v: i32 = 0; v < 1; v += 1) {
          let x: i32 = lane % 32 + v * 32;
          cb[v] = select(columns - 1, x, x < columns) * 1;
        }
        for (var r: i32 = 0; r < 4; r += 1) {
          for (var v: i32 = 0; v < 1; v += 1) {
            acc[r][v] = 0.0f;
          }
        }
        let ia0: i32 = i32(((x10 * 4)));
        let ib0: i32 = i32(((x11 * 16 + x12)));
        let terms: i32 = i32(K);
        for (var x13: i32 = 0; x13 < 4 && x13 * 1 < terms; x13 += 1) {
          let ia: i32 = ia0 + x13 * 1;
          let ib: i32 = ib0 + x13 * 4;
          var b: array<f32, 1>;
          for (var v: i32 = 0; v < 1; v += 1) {
            b[v] = m4[ib + cb[v]];
          }
          for (var r: i32 = 0; r < 4; r += 1) {
            let a: f32 = m3[ia + ra[r]];
            for (var v: i32 = 0; v < 1; v += 1) {
              acc[r][v] = tang_fma1(a, b[v], acc[r][v]);
            }
          }
        }
        for (var r: i32 = 0; r < 4; r += 1) {
          for (var v: i32 = 0; v < 1; v += 1) {
            let x: i32 = lane % 32 + v * 32;
            if (r < rows && x < columns) {
              m5[(x10 * 8 + x11 * 4 + x12) + r * 8 + x * 1] = (m5[(x10 * 8 + x11 * 4 + x12) + r * 8 + x * 1] + acc[r][v]);
            }
          }
        }
      }
    }
  }
  let end4: i32 = 13;
  for (var x2: i32 = 12; x2 < end4; x2 += 4) {
    storageBarrier(); workgroupBarrier();
    for (var p5: i32 = i32(lane); p5 < 32; p5 += 64) {
      let x5: i32 = i32((u32(p5) / 4));
      let x6: i32 = i32((u32(p5) % 4));
      if ((-x0 - x5 + 18) >= 0 && (((-x2 - x6 + 12) >= 0))) {
        let t1: f32 = m0[(x0 * 13 + x2 + x5 * 13 + x6)];
        let v0: f32 = t1;
        m3[(x5 * 4 + x6)] = v0;
      }
      else {
        m3[(x5 * 4 + x6)] = 0.0f;
      }
    }
    for (var p6: i32 = i32(lane); p6 < 32; p6 += 64) {
      let x7: i32 = i32((u32(p6) / 16));
      let x8: i32 = i32((u32(p6) / 4 % 4));
      let x9: i32 = i32((u32(p6) % 4));
      if ((-x1 - x7 * 4 - x9 + 20) >= 0 && (((-x2 - x8 + 12) >= 0))) {
        let t1: f32 = m1[(x1 + x2 * 21 + x7 * 4 + x8 * 21 + x9)];
        let v0: f32 = t1;
        m4[(x7 * 16 + x8 * 4 + x9)] = v0;
      }
      else {
        m4[(x7 * 16 + x8 * 4 + x9)] = 0.0f;
      }
    }
    storageBarrier(); workgroupBarrier();
     {
      let M: i32 = tang_lesser(8, (-x0 + 19));
      let N: i32 = tang_lesser(8, (-x1 + 21));
      let K: i32 = tang_lesser(4, (-x2 + 13));
      for (var block: i32 = lane / 32; block < 4; block += 2) {
        var left: i32 = block;
        let x12: i32 = left % 1 * 32;
        left = left / 1;
        let x11: i32 = left % 2;
        left = left / 2;
        let x10: i32 = left % 2 * 4;
        left = left / 2;
        let rows: i32 = i32(tang_lesser(M - x10, 8 - x10));
        let columns: i32 = i32(tang_lesser(N - (x11 * 4 + x12), 4 - x12));
        if (rows <= 0 || columns <= 0) { continue; }
        var acc: array<array<f32, 1>, 4>;
        var ra: array<i32, 4>;
        for (var r: i32 = 0; r < 4; r += 1) {
          ra[r] = select(rows - 1, r, r < rows) * 4;
        }
        var cb: array<i32, 1>;
        for (var v: i32 = 0; v < 1; v += 1) {
          let x: i32 = lane % 32 + v * 32;
          cb[v] = select(columns - 1, x, x < columns) * 1;
        }
        for (var r: i32 = 0; r < 4; r += 1) {
          for (var v: i32 = 0; v < 1; v += 1) {
            acc[r][v] = 0.0f;
          }
        }
        let ia0: i32 = i32(((x10 * 4)));
        let ib0: i32 = i32(((x11 * 16 + x12)));
        let terms: i32 = i32(K);
        for (var x13: i32 = 0; x13 < 4 && x13 * 1 < terms; x13 += 1) {
          let ia: i32 = ia0 + x13 * 1;
          let ib: i32 = ib0 + x13 * 4;
          var b: array<f32, 1>;
          for (var v: i32 = 0; v < 1; v += 1) {
            b[v] = m4[ib + cb[v]];
          }
          for (var r: i32 = 0; r < 4; r += 1) {
            let a: f32 = m3[ia + ra[r]];
            for (var v: i32 = 0; v < 1; v += 1) {
              acc[r][v] = tang_fma1(a, b[v], acc[r][v]);
            }
          }
        }
        for (var r: i32 = 0; r < 4; r += 1) {
          for (var v: i32 = 0; v < 1; v += 1) {
            let x: i32 = lane % 32 + v * 32;
            if (r < rows && x < columns) {
              m5[(x10 * 8 + x11 * 4 + x12) + r * 8 + x * 1] = (m5[(x10 * 8 + x11 * 4 + x12) + r * 8 + x * 1] + acc[r][v]);
            }
          }
        }
      }
    }
  }
  storageBarrier(); workgroupBarrier();
  for (var p7: i32 = i32(lane); p7 < 64; p7 += 64) {
    let x14: i32 = i32((u32(p7) / 8));
    let x15: i32 = i32((u32(p7) % 8));
    if ((-x0 - x14 + 18) >= 0 && (-x1 - x15 + 20) >= 0) {
      let t1: f32 = m5[(x14 * 8 + x15)];
      let v0: f32 = t1;
      m2[(x0 * 21 + x1 + x14 * 21 + x15)] = v0;
    }
  }
}
