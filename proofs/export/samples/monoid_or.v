From Tang Require Import export.prove_monoid.
Definition or : row := Row
  [boolean] [no] [(or_ (v 0) (v 1))] true.
Theorem or_ok : monoid_ok or.
Proof. prove_monoid. Qed.
