From Tang Require Import export.prove_degree.
(* softmax(s)[i, j] = w / l, w = exp2(s - m), l = sum_j w; the loss reads w / l only. Node 0: m over i. *)
Definition softmax : list node :=
  [ Node 2 Map (Exp2 (Add (Free 0) (Neg (Read 0 [axis 0]))));
    Node 1 Sum (Read 1 [axis 0; axis 1]);
    Node 2 Map (Ratio (Read 1 [axis 0; axis 1]) (Read 2 [axis 0])) ].
Theorem softmax_ok : elimination 1 softmax [3%nat].
Proof. prove_degree. Qed.
