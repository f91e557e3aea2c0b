From Tang Require Import export.prove_monoid.
Definition all : row := Row
  [boolean] [yes]
  [(and_ (v 0) (v 1))] true.
Theorem all_ok : monoid_ok all.
Proof. prove_monoid. Qed.
