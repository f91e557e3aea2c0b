From Tang Require Import export.prove_monoid.
Definition count_of_max : row := Row
  [bottom; finite] [ninf; (lit 0 0)]
  [(max_ (v 0) (v 1));
   (add (mul (select (equal_ (v 0) (max_ (v 0) (v 1))) (lit 1 0) (lit 0 0)) (v 2))
        (mul (select (equal_ (v 1) (max_ (v 0) (v 1))) (lit 1 0) (lit 0 0)) (v 3)))] true.
Theorem count_of_max_ok : monoid_ok count_of_max.
Proof. prove_monoid. Qed.
