From Coq Require Import List ZArith QArith.
From Tang Require Import export.lp.
Import ListNotations.
Open Scope Q_scope.
(* matmul 1024^3, M = 4096: s = (1/2, 1/2, 1/2), x = (1/2, 1/2, 1/2). Arrays A{i,k}, B{k,j}, C{i,j}. *)
Definition matmul : certificate := Certificate
  [4096; 1024]%Z
  [[0; 1]; [0; 1]; [0; 1]]
  [([[1; 0; 0]; [0; 0; 1]]%Z, [1]); ([[0; 1; 0]; [0; 0; 1]]%Z, [1]); ([[1; 0; 0]; [0; 1; 0]]%Z, [1])]
  [[[1; 0; 0]]; [[0; 1; 0]]; [[0; 0; 1]]]%Z
  [1 # 2; 1 # 2; 1 # 2]
  [0; 0; 0]
  [[1 # 2; 0]; [1 # 2; 0]; [1 # 2; 0]]
  (Derivation
    [[[1; 0; 0]; [0; 0; 1]]; [[0; 1; 0]; [0; 0; 1]]; [[1; 0; 0]; [0; 1; 0]]; [[1; 0; 0]]; [[0; 1; 0]]; [[0; 0; 1]]; [[1; 0; 0]; [0; 1; 0]; [0; 0; 1]]]%Z
    [0; 1; 2]%nat [3; 4; 5]%nat 6
    [Step (1 # 2) 0 2 6 3; Step (1 # 2) 1 2 6 4; Step (1 # 2) 4 3 2 7]).
Theorem matmul_ok : check matmul = true.
Proof. prove_certificate. Qed.
