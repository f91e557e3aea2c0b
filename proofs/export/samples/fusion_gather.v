From Tang Require Import export.fusion.
Import Coq.ZArith.ZArith.
(* Node 2: a dequantized table row; the reader gathers it by ids. *)
Definition gather : fusion := Fusion 2 2
  (mul (rd 0 [(ax 0); (ax 1)]) (rd 1 [(ax 0)]))
  (rd 2 [(rd 3 [(ax 0)]); (ax 1)])
  (mul (rd 0 [(rd 3 [(ax 0)]); (ax 1)]) (rd 1 [(rd 3 [(ax 0)])])).
Theorem gather_ok : fusion_ok gather.
Proof. prove_fusion. Qed.
