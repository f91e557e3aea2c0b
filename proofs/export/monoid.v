(* A row of the monoid table as the compiler prints it, the laws asked of it, and what they buy. *)
From Coq Require Import Reals List Bool Arith.
From Tang Require Import export.xr export.term fold.monoid.
Import ListNotations.

Record row := Row {
  components : list kind;        (* what each component of a lift ranges over *)
  identity : list term;          (* closed terms *)
  combine : list term;           (* v (2c): left component c, v (2c+1): right component c *)
  commutes : bool
}.
Definition none_read (n : nat) (xs : list xr) : option xr := None.
Definition none_var (n : nat) : option xr := None.
Definition operand (a b : list xr) (n : nat) : option xr := nth_error (if Nat.even n then a else b) (Nat.div2 n).
(* Total by convention: a value that is absent would be NaN; `closed` below excludes it. *)
Definition get (x : option xr) : xr := match x with Some y => y | None => Nan end.
Definition unit_of (r : row) : list xr := map (fun t => get (eval none_var none_var none_read t)) (identity r).
Definition join (r : row) (a b : list xr) : list xr :=
  map (fun t => get (eval (operand a b) none_var none_read t)) (combine r).
Fixpoint state_ok (ks : list kind) (s : list xr) : Prop :=
  match ks, s with
  | [], [] => True
  | k :: ks, x :: s => in_kind k (Some x) /\ state_ok ks s
  | _, _ => False
  end.
(* A fold injects every term. *)
Definition inject (r : row) (a : list xr) : list xr := join r (unit_of r) a.

(* "For every state of these kinds", with one quantifier a component. *)
Fixpoint for_state (ks : list kind) (P : list xr -> Prop) : Prop :=
  match ks with
  | [] => P []
  | k :: ks => forall x, in_kind k (Some x) -> for_state ks (fun s => P (x :: s))
  end.
(* The states a term really has: a live max is not -inf, a count of something is not 0. *)
Definition proper (k : kind) (x : xr) : Prop :=
  match k, x with
  | (bottom | top), Fin _ => True
  | count, Fin x => (0 < x)%R
  | (bottom | top | count), _ => False
  | _, _ => in_kind k (Some x)
  end.
Fixpoint for_proper (ks : list kind) (P : list xr -> Prop) : Prop :=
  match ks with
  | [] => P []
  | k :: ks => forall x, proper k x -> for_proper ks (fun s => P (x :: s))
  end.
(* Injecting changes no such state: without this any absorbing element would pass for an identity. *)
Definition law_faithful r := for_proper (components r) (fun a => inject r a = a).
Definition law_closed r := for_state (components r) (fun a => for_state (components r) (fun b =>
  state_ok (components r) (join r a b))).
Definition law_unit r := state_ok (components r) (unit_of r) /\ join r (unit_of r) (unit_of r) = unit_of r.
Definition law_injects r := for_state (components r) (fun a => inject r (inject r a) = inject r a).
Definition law_right r := for_state (components r) (fun a => join r (inject r a) (unit_of r) = inject r a).
Definition law_inside r := for_state (components r) (fun a => for_state (components r) (fun b =>
  inject r (join r (inject r a) (inject r b)) = join r (inject r a) (inject r b))).
Definition law_assoc r := for_state (components r) (fun a => for_state (components r) (fun b =>
  for_state (components r) (fun c =>
    join r (inject r a) (join r (inject r b) (inject r c)) = join r (join r (inject r a) (inject r b)) (inject r c)))).
Definition law_comm r := for_state (components r) (fun a => for_state (components r) (fun b =>
  join r (inject r a) (inject r b) = join r (inject r b) (inject r a))).
(* What an exported monoid must satisfy before it may be split or reassociated (and, if it says so, reordered). *)
Record monoid_ok (r : row) : Prop := {
  ok_closed : law_closed r; ok_faithful : law_faithful r; ok_unit : law_unit r; ok_injects : law_injects r; ok_right : law_right r;
  ok_inside : law_inside r; ok_assoc : law_assoc r; ok_comm : commutes r = true -> law_comm r
}.

Lemma for_state_all ks P : for_state ks P -> forall s, state_ok ks s -> P s.
Proof.
  revert P. induction ks as [|k ks IH]; intros P H [|x s] S; simpl in *; auto; try contradiction.
  destruct S as [K S]. apply (IH _ (H x K) s S).
Qed.
Section Exported.
Context (r : row) (H : monoid_ok r).
Notation good := (state_ok (components r)).
Definition carrier (s : list xr) : Prop := good s /\ inject r s = s.
Lemma join_good a b : good a -> good b -> good (join r a b).
Proof.
  intros A B. pose proof (for_state_all _ _ (ok_closed r H) a A) as X. exact (for_state_all _ _ X b B).
Qed.
Definition exported : monoid (list xr).
Proof.
  refine {| ok := carrier; op := join r; e := unit_of r |}.
  - intros x [_ E]. exact E.
  - exact (ok_unit r H).
  - intros x y [X EX] [Y EY]. split; [now apply join_good|].
    pose proof (for_state_all _ _ (for_state_all _ _ (ok_inside r H) x X) y Y) as I. simpl in I.
    now rewrite EX, EY in I.
  - intros x [X EX]. pose proof (for_state_all _ _ (ok_right r H) x X) as R. simpl in R. now rewrite EX in R.
  - intros x y z [X EX] [Y EY] [Z EZ].
    pose proof (for_state_all _ _ (for_state_all _ _ (for_state_all _ _ (ok_assoc r H) x X) y Y) z Z) as A.
    simpl in A. now rewrite EX, EY, EZ in A.
Defined.
Lemma injected_ok s : good s -> carrier (inject r s).
Proof.
  intros S. split; [apply join_good; auto; apply (ok_unit r H)|].
  exact (for_state_all _ _ (ok_injects r H) s S).
Qed.
(* A printed monoid that satisfies its laws may be split into blocks, any lift being injected first. *)
Theorem exported_split (blocks : list (list (option (list xr)))) :
  (forall b x, In b blocks -> In (Some x) b -> good x) ->
  let injected := map (option_map (inject r)) in
  fold exported (concat (map injected blocks)) = fold exported (map (fun b => Some (fold exported (injected b))) blocks).
Proof.
  intros G injected. rewrite split_fold; [now rewrite map_map|].
  intros b Hb x Hx. apply in_map_iff in Hb as [c [<- Hc]]. apply in_map_iff in Hx as [t [E Ht]].
  destruct t as [y|]; inversion E; subst. apply injected_ok. eauto.
Qed.
Theorem exported_commutative : commutes r = true -> commutative exported.
Proof.
  intros C a b [A EA] [B EB].
  pose proof (for_state_all _ _ (for_state_all _ _ (ok_comm r H C) a A) b B) as K. simpl in K.
  now rewrite EA, EB in K.
Qed.
End Exported.
