(* Partial values: present, absent, fault; the operations of semantics.md section 2 that are not strict. *)
From Coq Require Import Bool.

Section Partial.
Context {V W X : Type}.

(* A term that exists is [Some]; absence is [None]. Faults are added below, where their order matters. *)
Definition only (p : bool) (e : option V) : option V := if p then e else None.
Definition or_else (e : option V) (v : V) : V := match e with Some x => x | None => v end.
Definition masked (g : bool) (e : option V) : option V := only g e.
Definition where_ (g : bool) (e : option V) (v : V) : V := or_else (only g e) v.
Definition strict2 (f : V -> W -> X) (a : option V) (b : option W) : option X :=
  match a, b with Some x, Some y => Some (f x y) | _, _ => None end.

Theorem only_only p q e : only p (only q e) = only (p && q) e.
Proof. destruct p, q; reflexivity. Qed.
Theorem only_true e : only true e = e.
Proof. reflexivity. Qed.
Theorem where_select g v d : where_ g (Some v) d = if g then v else d.
Proof. destruct g; reflexivity. Qed.
End Partial.

(* Strict operations push a guard outwards, so that absence in a body can become a domain. *)
Theorem strict_only {V W X} (f : V -> W -> X) p q a b :
  strict2 f (only p a) (only q b) = only (p && q) (strict2 f a b).
Proof. destruct p, q, a; reflexivity. Qed.

(* Three states. Absent beats fault beats value, so operands may be evaluated in any order. *)
Inductive value (V : Type) := Present (v : V) | Absent | Fault.
Arguments Present {V}. Arguments Absent {V}. Arguments Fault {V}.
Definition strict {V W X} (f : V -> W -> X) (a : value V) (b : value W) : value X :=
  match a, b with
  | Absent, _ | _, Absent => Absent
  | Fault, _ | _, Fault => Fault
  | Present x, Present y => Present (f x y)
  end.
Theorem strict_order_free {V W X} (f : V -> W -> X) a b :
  strict f a b = strict (fun y x => f x y) b a.
Proof. destruct a, b; reflexivity. Qed.
Theorem strict_assoc {V} (f : V -> V -> V) a b c :
  (forall x y z, f x (f y z) = f (f x y) z) -> strict f a (strict f b c) = strict f (strict f a b) c.
Proof. intros H; destruct a, b, c; simpl; auto. now rewrite H. Qed.

(* False beats fault in a conjunction, so guards commute and may be reassociated. *)
Definition both (a b : value bool) : value bool :=
  match a, b with
  | Absent, _ | _, Absent => Absent
  | Present false, _ | _, Present false => Present false
  | Fault, _ | _, Fault => Fault
  | Present true, Present true => Present true
  end.
Theorem guards_commute a b : both a b = both b a.
Proof. destruct a as [[|]| |], b as [[|]| |]; reflexivity. Qed.
Theorem guards_assoc a b c : both a (both b c) = both (both a b) c.
Proof. destruct a as [[|]| |], b as [[|]| |], c as [[|]| |]; reflexivity. Qed.
