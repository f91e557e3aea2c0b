From Coq Require Import List ZArith QArith.
From Tang Require Import export.lp.
Import ListNotations.
Open Scope Q_scope.
(* m = k = 4096, n = 8, M = 16384: s = (A: 1), t_n = 1; x_n = beta_n. *)
Definition skinny : certificate := Certificate
  [16384; 4096; 8]%Z
  [[0; 1]; [0; 0; 1]; [0; 1]]
  [([[1; 0; 0]; [0; 0; 1]]%Z, [1]); ([[0; 1; 0]; [0; 0; 1]]%Z, [1]); ([[1; 0; 0]; [0; 1; 0]]%Z, [1])]
  [[[1; 0; 0]]; [[0; 1; 0]]; [[0; 0; 1]]]%Z
  [1; 0; 0]
  [0; 1; 0]
  [[1; 0; (-1)]; [0; 0; 1]; [0; 0; 1]]
  (Derivation
    [[[1; 0; 0]; [0; 0; 1]]; [[0; 1; 0]; [0; 0; 1]]; [[1; 0; 0]; [0; 1; 0]]; [[1; 0; 0]]; [[0; 1; 0]]; [[0; 0; 1]]; [[1; 0; 0]; [0; 1; 0]; [0; 0; 1]]]%Z
    [0; 1; 2]%nat [3; 4; 5]%nat 6
    [Step (1) 0 2 6 3; Step (1) 4 3 2 7]).
Theorem skinny_ok : check skinny = true.
Proof. prove_certificate. Qed.
