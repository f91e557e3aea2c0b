(* Max eliminations as printed terms: the degree pass itself runs in Coq, and its answer is compared. *)
From Coq Require Export List ZArith QArith.
From Tang Require Export grad.degree grad.degree_forms grad.degree_sound.
From Tang Require grad.degree_theorem.
Export ListNotations.

(* `elimination P nodes roots`: node 0 is the max over P point axes; nodes 1.. in order; roots are node numbers. *)
Definition elimination (P : nat) (nodes : list node) (roots : list nat) : Prop := max_eliminated P nodes roots = true.
(* Printing helpers: an axis as a form, and the view that reads axes 0 .. n-1 in order. *)
Definition axis (a : nat) : form := Form [(a, 1%Z)] 0.
Definition here (n : nat) : view := map axis (seq 0 n).
Ltac prove_degree := first
  [ solve [ vm_compute; reflexivity ] | fail 1 "tang: not proved: max elimination" ].
