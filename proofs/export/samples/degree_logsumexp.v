From Tang Require Import export.prove_degree.
(* m + log l has degree 0: m shifts up, log l down. *)
Definition logsumexp : list node :=
  [ Node 2 Map (Exp2 (Add (Free 0) (Neg (Read 0 [axis 0]))));
    Node 1 Sum (Read 1 [axis 0; axis 1]);
    Node 1 Map (Add (Read 0 [axis 0]) (Log2 (Read 2 [axis 0]))) ].
Theorem logsumexp_ok : elimination 1 logsumexp [3%nat].
Proof. prove_degree. Qed.
