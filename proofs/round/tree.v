(* Rounding error of a sum in any order of additions: the bound depends on the depth of the tree alone. *)
From Coq Require Import Reals Lra Lia Arith.
Open Scope R_scope.

Inductive tree := Term (x : R) | Plus (a b : tree).
Fixpoint exact (t : tree) : R := match t with Term x => x | Plus a b => exact a + exact b end.
Fixpoint weight (t : tree) : R := match t with Term x => Rabs x | Plus a b => weight a + weight b end.
Fixpoint depth (t : tree) : nat := match t with Term _ => O | Plus a b => S (max (depth a) (depth b)) end.
Fixpoint terms (t : tree) : nat := match t with Term _ => 1 | Plus a b => terms a + terms b end.

Section Rounded.
(* Format F, rounding rnd, unit roundoff u: asked only of sums of two members of the format. *)
Context (F : R -> Prop) (rnd : R -> R) (u : R).
Hypothesis u_pos : 0 <= u.
Hypothesis rnd_in : forall x, F (rnd x).
Hypothesis rnd_sum : forall x y, F x -> F y -> Rabs (rnd (x + y) - (x + y)) <= u * Rabs (x + y).
Fixpoint rounded (t : tree) : R := match t with Term x => x | Plus a b => rnd (rounded a + rounded b) end.
Fixpoint leaves_in (t : tree) : Prop := match t with Term x => F x | Plus a b => leaves_in a /\ leaves_in b end.

Lemma weight_pos t : 0 <= weight t.
Proof. induction t; simpl; [apply Rabs_pos|lra]. Qed.
Lemma exact_weight t : Rabs (exact t) <= weight t.
Proof. induction t; simpl; [lra|]. pose proof (Rabs_triang (exact t1) (exact t2)). lra. Qed.
Lemma power_mono m n : (m <= n)%nat -> (1 + u) ^ m <= (1 + u) ^ n.
Proof. intro. apply Rle_pow; [lra|auto]. Qed.
Lemma rounded_in t : leaves_in t -> F (rounded t).
Proof. destruct t; simpl; auto. Qed.
Theorem tree_sum_error t : leaves_in t -> Rabs (rounded t - exact t) <= ((1 + u) ^ depth t - 1) * weight t.
Proof.
  induction t as [x|a IA b IB]; simpl; intros L.
  { replace (x - x) with 0 by ring. rewrite Rabs_R0. lra. }
  destruct L as [LA LB]. set (h := max (depth a) (depth b)).
  pose proof (weight_pos a) as PA. pose proof (weight_pos b) as PB.
  assert (HA : Rabs (rounded a - exact a) <= ((1 + u) ^ h - 1) * weight a).
  { eapply Rle_trans; [exact (IA LA)|]. apply Rmult_le_compat_r; auto.
    pose proof (power_mono (depth a) h (Nat.le_max_l _ _)). lra. }
  assert (HB : Rabs (rounded b - exact b) <= ((1 + u) ^ h - 1) * weight b).
  { eapply Rle_trans; [exact (IB LB)|]. apply Rmult_le_compat_r; auto.
    pose proof (power_mono (depth b) h (Nat.le_max_r _ _)). lra. }
  pose proof (rnd_sum _ _ (rounded_in a LA) (rounded_in b LB)) as R1.
  assert (S1 : Rabs (rounded a + rounded b - (exact a + exact b)) <= ((1 + u) ^ h - 1) * (weight a + weight b)).
  { replace (rounded a + rounded b - (exact a + exact b)) with ((rounded a - exact a) + (rounded b - exact b)) by ring.
    pose proof (Rabs_triang (rounded a - exact a) (rounded b - exact b)). lra. }
  assert (S2 : Rabs (rounded a + rounded b) <= (1 + u) ^ h * (weight a + weight b)).
  { replace (rounded a + rounded b) with ((rounded a + rounded b - (exact a + exact b)) + (exact a + exact b)) by ring.
    pose proof (Rabs_triang (rounded a + rounded b - (exact a + exact b)) (exact a + exact b)).
    pose proof (Rabs_triang (exact a) (exact b)). pose proof (exact_weight a). pose proof (exact_weight b). lra. }
  replace (rnd (rounded a + rounded b) - (exact a + exact b))
    with ((rnd (rounded a + rounded b) - (rounded a + rounded b)) + (rounded a + rounded b - (exact a + exact b))) by ring.
  pose proof (Rabs_triang (rnd (rounded a + rounded b) - (rounded a + rounded b)) (rounded a + rounded b - (exact a + exact b))).
  assert (u * Rabs (rounded a + rounded b) <= u * ((1 + u) ^ h * (weight a + weight b))) by (apply Rmult_le_compat_l; auto).
  lra.
Qed.
End Rounded.

(* The orders a schedule picks from, and their depths: one running sum, a balanced tree, k splits of m terms. *)
Fixpoint sequential (x : nat -> R) (n : nat) : tree := match n with O => Term (x O) | S n => Plus (sequential x n) (Term (x (S n))) end.
Theorem sequential_depth x n : depth (sequential x n) = n /\ terms (sequential x n) = S n.
Proof. induction n as [|n [D T]]; simpl; auto. rewrite D, T. lia. Qed.
Fixpoint balanced (leaf : nat -> tree) (h base : nat) : tree :=
  match h with O => leaf base | S h => Plus (balanced leaf h base) (balanced leaf h (base + 2 ^ h)) end.
Theorem balanced_depth leaf h d : (forall i, depth (leaf i) = d) -> forall base, depth (balanced leaf h base) = (d + h)%nat.
Proof. intros L. induction h as [|h IH]; intros base; simpl; [rewrite L; lia|]. rewrite !IH. lia. Qed.
(* 2^h splits of m + 1 terms, each summed in order, then a tree: depth m + h instead of 2^h (m + 1) - 1. *)
Theorem split_depth x m h : depth (balanced (fun i => sequential (x i) m) h 0) = (m + h)%nat.
Proof. apply balanced_depth. intro. apply sequential_depth. Qed.
