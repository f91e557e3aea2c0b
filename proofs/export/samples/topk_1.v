From Tang Require Import export.prove_topk.
Definition top1 : row := Row
  [real; place] [ninf; (lit 9223372036854775807 0)]
  [(select (select (is_nan (v 0)) (or_ (not_ (is_nan (v 1))) (or_ (less_ (v 2) (v 3)) (equal_ (v 2) (v 3)))) (and_ (not_ (is_nan (v 1))) (or_ (less_ (v 1) (v 0)) (and_ (equal_ (v 0) (v 1)) (or_ (less_ (v 2) (v 3)) (equal_ (v 2) (v 3))))))) (v 0) (v 1));
   (select (select (is_nan (v 0)) (or_ (not_ (is_nan (v 1))) (or_ (less_ (v 2) (v 3)) (equal_ (v 2) (v 3)))) (and_ (not_ (is_nan (v 1))) (or_ (less_ (v 1) (v 0)) (and_ (equal_ (v 0) (v 1)) (or_ (less_ (v 2) (v 3)) (equal_ (v 2) (v 3))))))) (v 2) (v 3))] true.
Theorem top1_ok : top1 = topk_row 1.
Proof. prove_topk. Qed.
