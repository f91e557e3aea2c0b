From Tang Require Import export.prove_degree.
(* o[i, c] = (sum_j w v) / l with natural exp spelled exp2(x log2 e): scaled shifts. *)
Definition log2e : Q := 6497320848556798 # 4503599627370496.
Definition attention : list node :=
  [ Node 2 Map (Exp2 (Mul (Add (Free 0) (Neg (Read 0 [axis 0]))) (Num log2e)));
    Node 1 Sum (Read 1 [axis 0; axis 1]);
    Node 2 Sum (Mul (Read 1 [axis 0; axis 2]) (Free 0));
    Node 2 Map (Ratio (Read 3 [axis 0; axis 1]) (Read 2 [axis 0])) ].
Theorem attention_ok : elimination 1 attention [4%nat].
Proof. prove_degree. Qed.
