From Tang Require Import export.prove_monoid.
Definition online_softmax : row := Row
  [bottom; finite] [ninf; (lit 0 0)]
  [(max_ (v 0) (v 1));
   (add (mul (select (equal_ (v 0) ninf) (lit 0 0) (exp2_ (mul (add (v 0) (neg (max_ (v 0) (v 1)))) (lit 6497320848556798 (-52))))) (v 2))
        (mul (select (equal_ (v 1) ninf) (lit 0 0) (exp2_ (mul (add (v 1) (neg (max_ (v 0) (v 1)))) (lit 6497320848556798 (-52))))) (v 3)))] true.
Theorem online_softmax_ok : monoid_ok online_softmax.
Proof. prove_monoid. Qed.
