From Tang Require Import export.prove_monoid.
Definition left_wins : term :=
  (select (is_nan (v 0)) (select (is_nan (v 1)) (not_ (less_ (v 3) (v 2))) yes)
    (select (is_nan (v 1)) no (or_ (less_ (v 1) (v 0)) (and_ (equal_ (v 0) (v 1)) (not_ (less_ (v 3) (v 2))))))).
Definition argmax : row := Row
  [real; place] [ninf; (lit 9223372036854775807 0)]
  [(select left_wins (v 0) (v 1)); (select left_wins (v 2) (v 3))] true.
Theorem argmax_ok : monoid_ok argmax.
Proof. prove_monoid. Qed.
