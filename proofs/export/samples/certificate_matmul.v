From Coq Require Import List ZArith QArith.
From Tang Require Import export.lp.
Import ListNotations.
(* matmul 1024^3, M = 4096: s = (1/2, 1/2, 1/2), x = (1/2, 1/2, 1/2). Arrays A{i,k}, B{k,j}, C{i,j}. *)
Definition matmul : certificate := Certificate
  [4096; 1024]%Z
  [[0; 1]; [0; 1]; [0; 1]]
  [([0; 2]%nat, [1]); ([2; 1]%nat, [1]); ([0; 1]%nat, [1])]
  [1 # 2; 1 # 2; 1 # 2]
  [0; 0; 0]
  [[1 # 2]; [1 # 2]; [1 # 2]].
Theorem matmul_ok : check matmul = true.
Proof. prove_certificate. Qed.
