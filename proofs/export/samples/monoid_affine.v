From Tang Require Import export.prove_monoid.
Definition affine : row := Row
  [finite; finite] [(lit 1 0); (lit 0 0)]
  [(mul (v 1) (v 0)); (add (mul (v 1) (v 2)) (v 3))] false.
Theorem affine_ok : monoid_ok affine.
Proof. prove_monoid. Qed.
