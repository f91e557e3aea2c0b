From Tang Require Import export.prove_monoid.
Definition welford : row := Row
  [count; finite; finite] [(lit 0 0); (lit 0 0); (lit 0 0)]
  [(add (v 0) (v 1));
   (add (v 2) (mul (add (v 3) (neg (v 2))) (ratio_ (v 1) (add (v 0) (v 1)))));
   (add (add (v 4) (v 5)) (mul (mul (mul (add (v 3) (neg (v 2))) (add (v 3) (neg (v 2)))) (v 0))
                               (ratio_ (v 1) (add (v 0) (v 1)))))] true.
Theorem welford_ok : monoid_ok welford.
Proof. prove_monoid. Qed.
