(* One-term splice: reads that are 0 outside one domain; the domain joins the reader's. *)
From Coq Require Import List Bool.
From Tang Require Import fold.partial fold.monoid fold.pieces.
Import ListNotations.

(* A node with a monoid and no fold axes: one term, the identity outside its domain. *)
Definition one_term {I V} (m : monoid V) (d : I -> bool) (x : I -> V) (i : I) : V :=
  fold m [only (d i) (Some (x i))].

Section Splice.
Context {I K U V : Type} (inner : monoid U) (m : monoid V) (D : I -> bool) (z : K -> I -> U).
(* All reads of Z at once: the term as a function of their values. *)
Context (term : I -> (K -> U) -> option V).
Hypothesis term_ext : forall i a b, (forall k, a k = b k) -> term i a = term i b.
Hypothesis z_ok : forall k i, ok inner (z k i).
Hypothesis term_ok : forall i a x, term i a = Some x -> ok m x.
(* The check: with every read of Z replaced by the inner identity the term is the identity (or absent). *)
Hypothesis zero_is_identity : forall i x, term i (fun _ => e inner) = Some x -> op m (e m) x = e m.

Theorem one_term_splice (dom : I -> bool) (l : list I) :
  fold m (over (fun i => term i (fun k => one_term inner D (z k) i)) dom l) =
  fold m (over (fun i => term i (fun k => z k i)) (fun i => dom i && D i) l).
Proof.
  unfold fold. generalize (e_ok m). generalize (e m) at 1 2 3 as s.
  induction l as [|i l IH]; intros s S; simpl; auto.
  destruct (dom i) eqn:G; simpl; [|auto].
  destruct (D i) eqn:E; simpl.
  - rewrite (term_ext i (fun k => one_term inner D (z k) i) (fun k => z k i)).
    + destruct (term i (fun k => z k i)) as [x|] eqn:T; simpl; auto. apply IH, op_ok; eauto.
    + intro k. unfold one_term. rewrite E. apply inj_ok, z_ok.
  - rewrite (term_ext i (fun k => one_term inner D (z k) i) (fun _ => e inner)).
    + destruct (term i (fun _ => e inner)) as [x|] eqn:T; simpl; auto.
      rewrite <- (inj_ok m x) by eauto. rewrite (zero_is_identity i x T), op_e_r by auto. apply IH; auto.
    + intro k. unfold one_term. rewrite E. reflexivity.
Qed.
End Splice.
