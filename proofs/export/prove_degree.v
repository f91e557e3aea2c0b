(* Max eliminations as printed terms: the degree pass itself runs in Coq, and its answer is compared. *)
From Coq Require Export List ZArith QArith.
From Coq Require Import Reals Qabs.
From Coquelicot Require Import Coquelicot.
From Tang Require Export grad.degree grad.degree_forms grad.degree_sound.
From Tang Require grad.degree_theorem.
Export ListNotations.

(* Every read is of an earlier node: what a node reads is what the list says of it. *)
Fixpoint reads_below (n : nat) (b : body) : bool :=
  match b with
  | Free _ | Num _ => true
  | Read m _ => Nat.ltb m n
  | Neg a | Recip a | Exp2 a | Log2 a | Sqrt a | Finite a | Not a => reads_below n a
  | Add a b | Mul a b | Ratio a b | Max a b | Min a b | Less a b | Equal a b | Op _ a b | Only a b | Or_else a b =>
      reads_below n a && reads_below n b
  | Select c a b => reads_below n c && reads_below n a && reads_below n b
  end.
Fixpoint in_order (n : nat) (nodes : list node) : bool :=
  match nodes with [] => true | nd :: r => reads_below n (lift nd) && in_order (S n) r end.
(* `elimination P nodes roots`: node 0 is the max over P point axes; nodes 1.. in order; roots are node numbers. *)
Definition elimination (P : nat) (nodes : list node) (roots : list nat) : Prop :=
  in_order 1 nodes && forallb (fun r => Nat.leb 1 r && Nat.leb r (length nodes)) roots && max_eliminated P nodes roots = true.
Theorem elimination_sound P nodes roots : elimination P nodes roots -> forall free op other dom m,
  run_ok free op other dom 1 nodes (degree_theorem.initial P m) ->
  forall direction r xs, In r roots ->
  is_derive (fun t => degree_theorem.number (degree_theorem.root free op other dom P nodes r xs
    (fun row => m row + t * direction row)%R)) 0%R 0%R.
Proof.
  intros E free op other dom m K. apply andb_prop in E as [_ E].
  exact (degree_theorem.zero_gradient_of_max free op other dom P nodes m roots E K).
Qed.
(* Numbers that stand for doubles m * 2^e: within one unit in the last place. *)
Local Open Scope Q_scope.
Definition two_to (e : Z) : Q := if (e <? 0)%Z then (1 # Z.to_pos (2 ^ (- e))) else inject_Z (2 ^ e).
Definition rounded (l : list (Q * (Z * Z))) : Prop :=
  forallb (fun t => let d := (inject_Z (fst (snd t)) * two_to (snd (snd t)))%Q in
    Qle_bool (Qabs (fst t - d) * inject_Z (2 ^ 52)) (Qabs d)) l = true.
(* Printing helpers: an axis as a form, and the view that reads axes 0 .. n-1 in order. *)
Definition axis (a : nat) : form := Form [(a, 1%Z)] 0.
Definition here (n : nat) : view := map axis (seq 0 n).
Ltac prove_degree := first
  [ solve [ vm_compute; reflexivity ] | fail 1 "tang: not proved: max elimination" ].
