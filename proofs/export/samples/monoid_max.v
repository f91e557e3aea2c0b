From Tang Require Import export.prove_monoid.
Definition max : row := Row
  [real] [ninf] [(max_ (v 0) (v 1))] true.
Theorem max_ok : monoid_ok max.
Proof. prove_monoid. Qed.
