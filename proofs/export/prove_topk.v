(* `prove_topk` closes `row = topk_row k`: the printed combine is the network of export/topk.v, term for term. *)
From Coq Require Export Reals ZArith List Bool.
From Tang Require Export export.xr export.term export.monoid export.topk.
Export ListNotations.
Ltac prove_topk := first [ solve [ vm_compute; reflexivity ] | fail 1 "tang: not proved: top-k" ].
