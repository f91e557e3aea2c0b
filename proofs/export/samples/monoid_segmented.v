From Tang Require Import export.prove_monoid.
Definition segmented : row := Row
  [boolean; finite] [no; (lit 0 0)]
  [(or_ (v 0) (v 1)); (select (v 1) (v 3) (add (v 2) (v 3)))] false.
Theorem segmented_ok : monoid_ok segmented.
Proof. prove_monoid. Qed.
