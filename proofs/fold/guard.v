(* Read guard to absence: a padded term may leave the domain iff it acts as the identity wherever it is not NaN. *)
From Coq Require Import List Bool.
From Tang Require Import fold.partial fold.monoid fold.pieces.
Import ListNotations.

Section Guard.
Context {I A V : Type} (m : monoid V).
(* [nan s]: some component of the state is NaN. It survives every later combine. *)
Context (nan : V -> Prop).
Hypothesis nan_stays : forall x y, nan x -> nan (op m x y).
(* The lift of a term as a function of the value of all reads under the guard [g] (the other reads of
   point i are in [lift i]); [pads] is what they give where the guard fails. *)
Context (g : I -> bool) (reads : I -> A) (pads : A) (lift : I -> A -> option V).
Definition padded i := lift i (if g i then reads i else pads).
Definition absent i := only (g i) (lift i (reads i)).

(* What the compiler checks: combine(identity, lift with pads) is the identity, or NaN. *)
Definition pads_are_identity := forall i x, g i = false -> lift i pads = Some x ->
  nan (op m (e m) x) \/ op m (e m) x = e m.

Lemma nan_from l : forall s, nan s -> nan (fold_from m s l).
Proof. induction l as [|[t|] l IH]; intros s H; simpl; auto. Qed.
End Guard.

(* The check at the identity suffices: associativity carries it to every state of the carrier. *)
Section Law.
Context {I A V : Type} (m : monoid V) (nan : V -> Prop).
Hypothesis nan_stays : forall x y, nan x -> nan (op m x y).
Hypothesis nan_enters : forall x y, nan y -> nan (op m x y).
(* A term is injected by the fold: joining x and joining (e . x) are the same on the carrier. *)
Hypothesis injected : forall s x, ok m s -> op m s x = op m s (op m (e m) x).
Context (g : I -> bool) (reads : I -> A) (pads : A) (lift : I -> A -> option V).
Hypothesis closed : forall s x, ok m s -> ok m (op m s x) \/ nan (op m s x).

Theorem guard_to_absence l :
  pads_are_identity m nan g pads lift ->
  nan (fold m (map (padded g reads pads lift) l)) \/
  fold m (map (padded g reads pads lift) l) = fold m (map (absent g reads lift) l).
Proof.
  intros H. unfold fold. generalize (e_ok m). generalize (e m) at 1 2 3 4 as s.
  induction l as [|i l IH]; intros s S; simpl; auto.
  assert (P : padded g reads pads lift i = lift i (if g i then reads i else pads)) by reflexivity.
  assert (Q : absent g reads lift i = only (g i) (lift i (reads i))) by reflexivity.
  rewrite P, Q. clear P Q. destruct (g i) eqn:G; simpl.
  - destruct (lift i (reads i)) as [x|]; simpl; [|auto].
    destruct (closed s x S) as [K|N]; [auto|left; now apply nan_from].
  - destruct (lift i pads) as [x|] eqn:L; simpl; [|auto].
    rewrite injected by auto.
    destruct (H i x G L) as [N|E]; [left; apply nan_from; auto|].
    rewrite E, op_e_r by auto. apply IH; auto.
Qed.
(* And it is necessary: a fold of the single padded term already tells. *)
Theorem guard_to_absence_only_if :
  (forall l, nan (fold m (map (padded g reads pads lift) l)) \/
             fold m (map (padded g reads pads lift) l) = fold m (map (absent g reads lift) l)) ->
  pads_are_identity m nan g pads lift.
Proof.
  intros H i x G L. specialize (H [i]). unfold fold in H; simpl in H.
  unfold padded, absent in H. rewrite G in H. simpl in H. now rewrite L in H.
Qed.
End Law.

(* The total case over the reals: no NaN, terms on the carrier; then the law is an equation. *)
Theorem guard_to_absence_exact {I A V} (m : monoid V) (g : I -> bool) (reads : I -> A) pads
  (lift : I -> A -> option V) l :
  (forall i a x, lift i a = Some x -> ok m x) ->
  (forall i x, g i = false -> lift i pads = Some x -> op m (e m) x = e m) ->
  fold m (map (padded g reads pads lift) l) = fold m (map (absent g reads lift) l).
Proof.
  intros K H. unfold fold. generalize (e_ok m). generalize (e m) at 1 2 3 as s.
  induction l as [|i l IH]; intros s S; simpl; auto.
  assert (P : padded g reads pads lift i = lift i (if g i then reads i else pads)) by reflexivity.
  assert (Q : absent g reads lift i = only (g i) (lift i (reads i))) by reflexivity.
  rewrite P, Q. clear P Q. destruct (g i) eqn:G; simpl.
  - destruct (lift i (reads i)) as [x|] eqn:L; simpl; [|auto]. apply IH, op_ok; eauto.
  - destruct (lift i pads) as [x|] eqn:L; simpl; [|auto].
    rewrite <- (inj_ok m x) by eauto. rewrite (H i x G L), op_e_r by auto. apply IH; auto.
Qed.
