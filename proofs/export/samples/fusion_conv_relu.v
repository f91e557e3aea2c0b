From Tang Require Import export.fusion.
Import Coq.ZArith.ZArith.
(* Node 1: relu(x[i]) over i; its reader looks at i + r through a guard, pad 0. *)
Definition conv_relu : fusion := Fusion 1 1
  (max_ (rd 0 [(ax 0)]) (lit 0 0))
  (mul (or_else_ (only_ (less_ (add (ax 0) (ax 1)) (lit 8 0)) (rd 1 [(add (ax 0) (ax 1))])) (lit 0 0)) (rd 2 [(ax 1)]))
  (mul (or_else_ (only_ (less_ (add (ax 0) (ax 1)) (lit 8 0)) (max_ (rd 0 [(add (ax 0) (ax 1))]) (lit 0 0))) (lit 0 0))
       (rd 2 [(ax 1)])).
Theorem conv_relu_ok : fusion_ok conv_relu.
Proof. prove_fusion. Qed.
