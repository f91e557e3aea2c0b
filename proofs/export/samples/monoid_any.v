From Tang Require Import export.prove_monoid.
Definition any : row := Row
  [boolean] [no] [(or_ (v 0) (v 1))] true.
Theorem any_ok : monoid_ok any.
Proof. prove_monoid. Qed.
