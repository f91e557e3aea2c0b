From Tang Require Import export.prove_monoid.
Definition count : row := Row
  [index] [(lit 0 0)]
  [(add (v 0) (v 1))] true.
Theorem count_ok : monoid_ok count.
Proof. prove_monoid. Qed.
