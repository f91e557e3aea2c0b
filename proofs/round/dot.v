(* Dot products: leaves that carry a relative error themselves (rounded products, rounded inputs). *)
From Coq Require Import Reals Lra Lia.
From Tang Require Import round.tree.
Open Scope R_scope.

Section Dot.
Context (F : R -> Prop) (rnd : R -> R) (u delta : R).
Hypothesis u_pos : 0 <= u.
Hypothesis delta_pos : 0 <= delta.
Hypothesis rnd_in : forall x, F (rnd x).
Hypothesis rnd_sum : forall x y, F x -> F y -> Rabs (rnd (x + y) - (x + y)) <= u * Rabs (x + y).
(* The same tree, every leaf within a relative error delta: what is summed against what is meant. *)
Inductive near : tree -> tree -> Prop :=
  | near_term x y : Rabs (x - y) <= delta * Rabs y -> near (Term x) (Term y)
  | near_plus a b c d : near a c -> near b d -> near (Plus a b) (Plus c d).
Lemma near_depth s t : near s t -> depth s = depth t.
Proof. induction 1; simpl; auto. Qed.
Lemma near_weight s t : near s t -> weight s <= (1 + delta) * weight t.
Proof.
  induction 1; simpl; [|lra]. pose proof (Rabs_triang (x - y) y). replace (x - y + y) with x in H0 by ring. lra.
Qed.
Lemma near_exact s t : near s t -> Rabs (exact s - exact t) <= delta * weight t.
Proof.
  induction 1; simpl; auto. replace (exact a + exact b - (exact c + exact d)) with ((exact a - exact c) + (exact b - exact d)) by ring.
  pose proof (Rabs_triang (exact a - exact c) (exact b - exact d)). lra.
Qed.
Theorem dot_error s t : near s t -> leaves_in F s ->
  Rabs (rounded rnd s - exact t) <= ((1 + u) ^ depth t * (1 + delta) - 1) * weight t.
Proof.
  intros N L. pose proof (tree_sum_error F rnd u u_pos rnd_in rnd_sum s L) as E. rewrite (near_depth s t N) in E.
  pose proof (near_weight s t N) as W. pose proof (near_exact s t N) as X.
  replace (rounded rnd s - exact t) with ((rounded rnd s - exact s) + (exact s - exact t)) by ring.
  pose proof (Rabs_triang (rounded rnd s - exact s) (exact s - exact t)).
  assert (P : 1 <= (1 + u) ^ depth t) by (apply pow_R1_Rle; lra).
  assert (Q : ((1 + u) ^ depth t - 1) * weight s <= ((1 + u) ^ depth t - 1) * ((1 + delta) * weight t))
    by (apply Rmult_le_compat_l; lra).
  lra.
Qed.
End Dot.
