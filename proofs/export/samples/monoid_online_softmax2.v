From Tang Require Import export.prove_monoid.
Definition online_softmax2 : row := Row
  [bottom; finite; finite] [ninf; (lit 0 0); (lit 0 0)]
  [(max_ (v 0) (v 1));
   (add (mul (select (equal_ (v 0) ninf) (lit 0 0) (exp2_ (mul (add (v 0) (neg (max_ (v 0) (v 1)))) (lit 6497320848556798 (-52))))) (v 2))
        (mul (select (equal_ (v 1) ninf) (lit 0 0) (exp2_ (mul (add (v 1) (neg (max_ (v 0) (v 1)))) (lit 6497320848556798 (-52))))) (v 3)));
   (add (mul (select (equal_ (v 0) ninf) (lit 0 0) (exp2_ (mul (add (v 0) (neg (max_ (v 0) (v 1)))) (lit 6497320848556798 (-52))))) (v 4))
        (mul (select (equal_ (v 1) ninf) (lit 0 0) (exp2_ (mul (add (v 1) (neg (max_ (v 0) (v 1)))) (lit 6497320848556798 (-52))))) (v 5)))] true.
Theorem online_softmax2_ok : monoid_ok online_softmax2.
Proof. prove_monoid. Qed.
