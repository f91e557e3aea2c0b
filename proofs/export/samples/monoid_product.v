From Tang Require Import export.prove_monoid.
Definition product : row := Row
  [finite] [(lit 1 0)] [(mul (v 0) (v 1))] true.
Theorem product_ok : monoid_ok product.
Proof. prove_monoid. Qed.
