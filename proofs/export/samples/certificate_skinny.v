From Coq Require Import List ZArith QArith.
From Tang Require Import export.lp.
Import ListNotations.
(* m = k = 4096, n = 8, M = 16384: s = (A: 1), t_n = 1; x_n = beta_n. Loops i, j, k. *)
Definition skinny : certificate := Certificate
  [16384; 4096; 8]%Z
  [[0; 1]; [0; 0; 1]; [0; 1]]
  [([0; 2]%nat, [1]); ([2; 1]%nat, [1]); ([0; 1]%nat, [1])]
  [1; 0; 0]
  [0; 1; 0]
  [[1 # 2]; [0; 0; 1]; [1 # 2]].
Theorem skinny_ok : check skinny = true.
Proof. prove_certificate. Qed.
