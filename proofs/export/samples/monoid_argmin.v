From Tang Require Import export.prove_topk.
Definition left_wins : term :=
  (select (is_nan (v 0)) (or_ (not_ (is_nan (v 1))) (or_ (less_ (v 2) (v 3)) (equal_ (v 2) (v 3)))) (and_ (not_ (is_nan (v 1))) (or_ (less_ (v 0) (v 1)) (and_ (equal_ (v 0) (v 1)) (or_ (less_ (v 2) (v 3)) (equal_ (v 2) (v 3))))))).
Definition argmin : row := Row
  [real; place] [inf; (lit 9223372036854775807 0)]
  [(select left_wins (v 0) (v 1));
   (select left_wins (v 2) (v 3))] true.
Theorem argmin_ok : argmin = argmin_row.
Proof. prove_topk. Qed.
