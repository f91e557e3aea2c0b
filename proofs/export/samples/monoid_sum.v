From Tang Require Import export.prove_monoid.
Definition sum : row := Row
  [finite] [(lit 0 0)] [(add (v 0) (v 1))] true.
Theorem sum_ok : monoid_ok sum.
Proof. prove_monoid. Qed.
