(* The degree calculus: which nodes are e^(d m) f or d m + f with f free of a stabilizing max m, row by row. *)
From Coq Require Import Reals Lra Lia List ZArith QArith Qreals Bool Arith.
From Tang Require Import grad.scalar sums.rsum.
Import ListNotations.
Open Scope R_scope.

(* A point is a valuation of axes. An affine form over axes, and a view as a list of forms. *)
Definition point := nat -> Z.
Record form := Form { coeffs : list (nat * Z); offset : Z }.
Definition at_form (p : point) (f : form) : Z := fold_right (fun t s => (snd t * p (fst t) + s)%Z) (offset f) (coeffs f).
Definition view := list form.
Definition at_view (p : point) (w : view) : list Z := map (at_form p) w.

(* Bodies. `Free` is any subterm that reads nothing downstream of the max: its value is data of the point. *)
Inductive body :=
  | Free (k : nat)
  | Num (q : Q)
  | Read (node : nat) (w : view)
  | Add (a b : body) | Mul (a b : body) | Neg (a : body) | Recip (a : body) | Ratio (a b : body)
  | Exp2 (a : body) | Log2 (a : body) | Max (a b : body) | Select (k : nat) (a b : body).   (* condition k is data *)
Inductive fold := Map | Sum | Maximum.
(* A node: its number of point axes, how it folds, its body over point axes then fold axes. *)
Record node := Node { points : nat; how : fold; lift : body }.

(* Degrees. `row` says which row of the max the node sees: a view over the node's point axes. *)
Inductive degree := Inv | Scale (d : Q) (row : view) | Shift (d : Q) (row : view).

Section Meaning.
(* Node 0 is the max; nodes are evaluated in order. Data: free subterms, select conditions, fold domains. *)
Context (free : nat -> nat -> point -> R) (cond : nat -> nat -> point -> bool) (dom : nat -> point -> list point).
Definition values := nat -> list Z -> R.
Fixpoint value (n : nat) (vals : values) (p : point) (b : body) : R :=
  match b with
  | Free k => free n k p
  | Num q => Q2R q
  | Read m w => vals m (at_view p w)
  | Add a b => value n vals p a + value n vals p b
  | Mul a b => value n vals p a * value n vals p b
  | Neg a => - value n vals p a
  | Recip a => / value n vals p a
  | Ratio a b => ratio (value n vals p a) (value n vals p b)
  | Exp2 a => exp2 (value n vals p a)
  | Log2 a => log2 (value n vals p a)
  | Max a b => Rmax (value n vals p a) (value n vals p b)
  | Select k a b => if cond n k p then value n vals p a else value n vals p b
  end.
(* The log of a node's body must be taken of a positive number: elsewhere it has no value. *)
Fixpoint logs_ok (n : nat) (vals : values) (p : point) (b : body) : Prop :=
  match b with
  | Free _ | Num _ | Read _ _ => True
  | Add a b | Mul a b | Ratio a b | Max a b => logs_ok n vals p a /\ logs_ok n vals p b
  | Neg a | Recip a | Exp2 a => logs_ok n vals p a
  | Log2 a => logs_ok n vals p a /\ 0 < value n vals p a
  | Select k a b => logs_ok n vals p a /\ logs_ok n vals p b
  end.
(* Reads go to earlier nodes by number; what is not yet computed is whatever the start says. *)
Definition of_coords (xs : list Z) : point := fun a => nth a xs 0%Z.
(* A point of the fold: point axes first, then the fold axes that the domain gives. *)
Definition extend (P : nat) (p q : point) : point := fun a => if (a <? P)%nat then p a else q (a - P)%nat.
Definition visited (n : nat) (nd : node) (xs : list Z) : list point :=
  match how nd with
  | Map => [of_coords xs]
  | _ => map (extend (points nd) (of_coords xs)) (dom n (of_coords xs))
  end.
Definition maximum (xs : list R) : R := match xs with [] => 0 | x :: r => fold_right Rmax x r end.
Definition fold_value (n : nat) (nd : node) (vals : values) (xs : list Z) : R :=
  let vs := map (fun p => value n vals p (lift nd)) (visited n nd xs) in
  match how nd with Maximum => maximum vs | _ => rsum (fun x => x) vs end.
Definition set (vals : values) (n : nat) (f : list Z -> R) : values := fun k => if Nat.eqb k n then f else vals k.
Fixpoint run (n : nat) (nodes : list node) (vals : values) : values :=
  match nodes with [] => vals | nd :: r => run (S n) r (set vals n (fold_value n nd vals)) end.
(* What a run needs to have values at all: logs of positive numbers, no empty maximum. *)
Fixpoint run_ok (n : nat) (nodes : list node) (vals : values) : Prop :=
  match nodes with
  | [] => True
  | nd :: r => (forall xs p, In p (visited n nd xs) -> logs_ok n vals p (lift nd)) /\
               (how nd = Maximum -> forall xs, visited n nd xs <> []) /\
               run_ok (S n) r (set vals n (fold_value n nd vals))
  end.
End Meaning.
