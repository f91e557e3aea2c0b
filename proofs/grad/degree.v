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

(* Bodies. `Free` is any subterm that reads nothing downstream of the max: its value, or its absence, is data of the
   point. Truth values are 1 and 0. `Op` is any strict operation, `Finite` says that a value is a number, which every
   value here is. *)
Inductive body :=
  | Free (k : nat)
  | Num (q : Q)
  | Read (node : nat) (w : view)
  | Add (a b : body) | Mul (a b : body) | Neg (a : body) | Recip (a : body) | Ratio (a b : body)
  | Exp2 (a : body) | Log2 (a : body) | Sqrt (a : body) | Max (a b : body) | Min (a b : body)
  | Less (a b : body) | Equal (a b : body) | Finite (a : body) | Not (a : body) | Op (k : nat) (a b : body)
  | Select (c a b : body) | Only (g a : body) | Or_else (a b : body).
(* `Other k`: any function of the terms, absent ones included. *)
Inductive fold := Map | Sum | Maximum | Minimum | Other (k : nat).
(* A node: its number of point axes, how it folds, its body over point axes then fold axes. *)
Record node := Node { points : nat; how : fold; lift : body }.

(* Degrees. `row` says which row of the max the node sees: a view over the node's point axes. *)
Inductive degree := Inv | Scale (d : Q) (row : view) | Shift (d : Q) (row : view).

Section Meaning.
(* Node 0 is the max; nodes are evaluated in order. Data: free subterms, operations, folds, and the points of folds. *)
Context (free : nat -> nat -> point -> option R) (op : nat -> R -> R -> R) (other : nat -> list (option R) -> option R).
Context (dom : nat -> point -> list point).
Definition values := nat -> list Z -> option R.
Definition lift1 (f : R -> R) (x : option R) : option R := match x with Some x => Some (f x) | None => None end.
Definition lift2 (f : R -> R -> R) (x y : option R) : option R :=
  match x, y with Some x, Some y => Some (f x y) | _, _ => None end.
Definition truth {P Q : Prop} (b : {P} + {Q}) : R := if b then 1 else 0.
Fixpoint value (n : nat) (vals : values) (p : point) (b : body) : option R :=
  match b with
  | Free k => free n k p
  | Num q => Some (Q2R q)
  | Read m w => vals m (at_view p w)
  | Add a b => lift2 Rplus (value n vals p a) (value n vals p b)
  | Mul a b => lift2 Rmult (value n vals p a) (value n vals p b)
  | Neg a => lift1 Ropp (value n vals p a)
  | Recip a => lift1 Rinv (value n vals p a)
  | Ratio a b => lift2 ratio (value n vals p a) (value n vals p b)
  | Exp2 a => lift1 exp2 (value n vals p a)
  | Log2 a => lift1 log2 (value n vals p a)
  | Sqrt a => lift1 sqrt (value n vals p a)
  | Max a b => lift2 Rmax (value n vals p a) (value n vals p b)
  | Min a b => lift2 Rmin (value n vals p a) (value n vals p b)
  | Less a b => lift2 (fun x y => truth (Rlt_dec x y)) (value n vals p a) (value n vals p b)
  | Equal a b => lift2 (fun x y => truth (Req_EM_T x y)) (value n vals p a) (value n vals p b)
  | Finite a => lift1 (fun _ => 1) (value n vals p a)
  | Not a => lift1 (fun x => 1 - x) (value n vals p a)
  | Op k a b => lift2 (op k) (value n vals p a) (value n vals p b)
  | Select c a b =>
    match value n vals p c with
    | Some x => if Req_EM_T x 0 then value n vals p b else value n vals p a
    | None => None
    end
  | Only g a =>
    match value n vals p g with Some x => if Req_EM_T x 0 then None else value n vals p a | None => None end
  | Or_else a b => match value n vals p a with Some x => Some x | None => value n vals p b end
  end.
(* The log of a node's body must be taken of a positive number: elsewhere it has no value. Only what is asked for counts. *)
Fixpoint logs_ok (n : nat) (vals : values) (p : point) (b : body) : Prop :=
  match b with
  | Free _ | Num _ | Read _ _ => True
  | Add a b | Mul a b | Ratio a b | Max a b | Min a b | Less a b | Equal a b | Op _ a b =>
      logs_ok n vals p a /\ logs_ok n vals p b
  | Neg a | Recip a | Exp2 a | Sqrt a | Finite a | Not a => logs_ok n vals p a
  | Log2 a => logs_ok n vals p a /\ match value n vals p a with Some x => 0 < x | None => True end
  | Select c a b => logs_ok n vals p c /\
    match value n vals p c with
    | Some x => if Req_EM_T x 0 then logs_ok n vals p b else logs_ok n vals p a
    | None => True
    end
  | Only g a => logs_ok n vals p g /\
    match value n vals p g with Some x => if Req_EM_T x 0 then True else logs_ok n vals p a | None => True end
  | Or_else a b => logs_ok n vals p a /\ match value n vals p a with Some _ => True | None => logs_ok n vals p b end
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
Fixpoint present (l : list (option R)) : list R :=
  match l with [] => [] | Some x :: r => x :: present r | None :: r => present r end.
Definition maximum (xs : list R) : R := match xs with [] => 0 | x :: r => fold_right Rmax x r end.
Definition minimum (xs : list R) : R := - maximum (map Ropp xs).
Definition terms (n : nat) (nd : node) (vals : values) (xs : list Z) : list (option R) :=
  map (fun p => value n vals p (lift nd)) (visited n nd xs).
Definition folded (h : fold) (vs : list (option R)) : option R :=
  match h with
  | Map => hd None vs
  | Sum => Some (rsum (fun x => x) (present vs))
  | Maximum => Some (maximum (present vs))
  | Minimum => Some (minimum (present vs))
  | Other k => other k vs
  end.
Definition fold_value (n : nat) (nd : node) (vals : values) (xs : list Z) : option R := folded (how nd) (terms n nd vals xs).
Definition set (vals : values) (n : nat) (f : list Z -> option R) : values := fun k => if Nat.eqb k n then f else vals k.
Fixpoint run (n : nat) (nodes : list node) (vals : values) : values :=
  match nodes with [] => vals | nd :: r => run (S n) r (set vals n (fold_value n nd vals)) end.
(* What a run needs to have values at all: logs of positive numbers, no empty maximum. *)
Definition extreme (h : fold) : bool := match h with Maximum | Minimum => true | _ => false end.
Fixpoint run_ok (n : nat) (nodes : list node) (vals : values) : Prop :=
  match nodes with
  | [] => True
  | nd :: r => (forall xs p, In p (visited n nd xs) -> logs_ok n vals p (lift nd)) /\
               (extreme (how nd) = true -> forall xs, present (terms n nd vals xs) <> []) /\
               run_ok (S n) r (set vals n (fold_value n nd vals))
  end.
End Meaning.
