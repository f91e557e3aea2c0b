From Tang Require Import export.prove_monoid.
Definition min : row := Row
  [real] [inf] [(min_ (v 0) (v 1))] true.
Theorem min_ok : monoid_ok min.
Proof. prove_monoid. Qed.
