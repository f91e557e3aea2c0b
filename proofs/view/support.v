(* Storage: a read of a stored map repeats the map's support, so the fill of the array is seen by no node. *)
From Coq Require Import Bool List.
From Tang Require Import fold.partial fold.monoid view.fusion.

Section Support.
Context {M A V : Type} (dom : M -> bool) (pred : M -> bool) (value : M -> V).
(* A map exists where its domain and its residual predicate hold. *)
Definition node (m : M) : option V := only (dom m && pred m) (Some (value m)).
(* Its array holds the value there and anything (the fill) elsewhere; a bool map is stored beside it. *)
Context (stored : M -> V) (alive : M -> bool).
Hypothesis stored_live : forall m, dom m && pred m = true -> stored m = value m.
Hypothesis alive_live : forall m, dom m = true -> alive m = pred m.
Definition stored_read (v : view A M) (a : A) : option V :=
  match v a with Some m => only (dom m) (only (alive m) (Some (stored m))) | None => None end.
Theorem expose_support_sound v a : read node v a = stored_read v a.
Proof.
  unfold read, stored_read, node. destruct (v a) as [m|]; auto.
  destruct (dom m) eqn:D; simpl; auto. rewrite (alive_live m D).
  destruct (pred m) eqn:P; simpl; auto. rewrite stored_live; auto. now rewrite D, P.
Qed.
End Support.

(* Two arrays that differ only in fill give the same reads: no placement can change a result. *)
Theorem fill_unseen {M A V} (dom pred : M -> bool) (value s1 s2 : M -> V) (v : view A M) a :
  (forall m, dom m && pred m = true -> s1 m = value m) ->
  (forall m, dom m && pred m = true -> s2 m = value m) ->
  stored_read dom s1 pred v a = stored_read dom s2 pred v a.
Proof. intros H1 H2. rewrite <- !(expose_support_sound dom pred value); auto. Qed.

(* Reuse: an expression that equals an output (or a stored node) on its support reads it instead. *)
Theorem reuse_sound {M A V} (out e : M -> option V) (v : view A M) a :
  (forall m x, e m = Some x -> out m = Some x) -> (forall m, e m = None -> out m = None) ->
  read e v a = read out v a.
Proof.
  intros H N. unfold read. destruct (v a) as [m|]; auto.
  destruct (e m) eqn:E; symmetry; auto.
Qed.
