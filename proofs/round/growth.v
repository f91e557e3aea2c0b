(* Rounding error of any expression, as an error budget follows it: growth, the product of 1 + u along the worst path, and
   weight, the value with the terms of every sum taken by size. Overflow and results below the normal numbers are left out. *)
From Coq Require Import Reals Lra.
Open Scope R_scope.

Lemma between x y : Rabs x <= y <-> - y <= x <= y.
Proof. unfold Rabs. destruct (Rcase_abs x); lra. Qed.
Lemma root_below p q : 0 <= q -> p <= q * q -> sqrt p <= q.
Proof. intros Q H. rewrite <- (sqrt_square q Q). now apply sqrt_le_1_alt. Qed.
Lemma root_above p q : 0 <= p -> p * p <= q -> p <= sqrt q.
Proof. intros P H. rewrite <- (sqrt_square p P) at 1. now apply sqrt_le_1_alt. Qed.

(* c is computed where e is meant: |c - e| <= (growth - 1) weight, and e is not above its weight. *)
Definition within (c e growth weight : R) : Prop := 1 <= growth /\ Rabs e <= weight /\ Rabs (c - e) <= (growth - 1) * weight.

Section Steps.
Context (c e g w c' e' g' w' : R).
Hypothesis A : within c e g w.
Hypothesis B : within c' e' g' w'.
Lemma within_exact x : within x x 1 (Rabs x).
Proof. split; [lra|split; [lra|]]. replace (x - x) with 0 by ring. rewrite Rabs_R0. lra. Qed.
Lemma within_size : Rabs c <= g * w.
Proof.
  destruct A as [G [E D]]. pose proof (Rabs_triang (c - e) e) as T. replace (c - e + e) with c in T by ring. lra.
Qed.
Lemma within_round r u : 0 <= u -> Rabs (r - c) <= u * Rabs c -> within r e ((1 + u) * g) w.
Proof.
  intros U R. pose proof within_size as S. destruct A as [G [E D]]. split; [nra|split; [auto|]].
  pose proof (Rabs_triang (r - c) (c - e)) as T. replace (r - c + (c - e)) with (r - e) in T by ring.
  assert (u * Rabs c <= u * (g * w)) by (apply Rmult_le_compat_l; auto). lra.
Qed.
Lemma within_more k : g <= k -> within c e k w.
Proof.
  destruct A as [G [E D]]. intros K. split; [lra|split; [auto|]]. pose proof (Rabs_pos e). nra.
Qed.
Lemma within_neg : within (- c) (- e) g w.
Proof.
  destruct A as [G [E D]]. split; [auto|split; [now rewrite Rabs_Ropp|]].
  replace (- c - - e) with (- (c - e)) by ring. now rewrite Rabs_Ropp.
Qed.
Lemma within_add : within (c + c') (e + e') (Rmax g g') (w + w').
Proof.
  destruct A as [G [E D]], B as [G' [E' D']]. pose proof (Rmax_l g g'). pose proof (Rmax_r g g').
  pose proof (Rabs_pos e). pose proof (Rabs_pos e').
  split; [lra|split].
  - pose proof (Rabs_triang e e'). lra.
  - pose proof (Rabs_triang (c - e) (c' - e')) as T. replace (c - e + (c' - e')) with (c + c' - (e + e')) in T by ring.
    assert ((g - 1) * w <= (Rmax g g' - 1) * w) by (apply Rmult_le_compat_r; lra).
    assert ((g' - 1) * w' <= (Rmax g g' - 1) * w') by (apply Rmult_le_compat_r; lra). lra.
Qed.
Lemma within_mul : within (c * c') (e * e') (g * g') (w * w').
Proof.
  destruct A as [G [E D]], B as [G' [E' D']]. pose proof (Rabs_pos e). pose proof (Rabs_pos e').
  split; [nra|split].
  - rewrite Rabs_mult. apply Rmult_le_compat; auto.
  - replace (c * c' - e * e') with (e * (c' - e') + ((c - e) * e' + (c - e) * (c' - e'))) by ring.
    pose proof (Rabs_triang (e * (c' - e')) ((c - e) * e' + (c - e) * (c' - e'))) as T1.
    pose proof (Rabs_triang ((c - e) * e') ((c - e) * (c' - e'))) as T2.
    rewrite (Rabs_mult e (c' - e')) in T1. rewrite (Rabs_mult (c - e) e'), (Rabs_mult (c - e) (c' - e')) in T2.
    assert (Rabs e * Rabs (c' - e') <= w * ((g' - 1) * w')) by (apply Rmult_le_compat; auto using Rabs_pos).
    assert (Rabs (c - e) * Rabs e' <= (g - 1) * w * w') by (apply Rmult_le_compat; auto using Rabs_pos).
    assert (Rabs (c - e) * Rabs (c' - e') <= (g - 1) * w * ((g' - 1) * w')) by (apply Rmult_le_compat; auto using Rabs_pos).
    lra.
Qed.
Lemma within_max : within (Rmax c c') (Rmax e e') (Rmax g g') (Rmax w w').
Proof.
  destruct A as [G [E D]], B as [G' [E' D']]. pose proof (Rmax_l g g'). pose proof (Rmax_r g g').
  pose proof (Rmax_l w w'). pose proof (Rmax_r w w'). pose proof (Rabs_pos e). pose proof (Rabs_pos e').
  assert ((g - 1) * w <= (Rmax g g' - 1) * Rmax w w') by (apply Rmult_le_compat; lra).
  assert ((g' - 1) * w' <= (Rmax g g' - 1) * Rmax w w') by (apply Rmult_le_compat; lra).
  split; [lra|split].
  - unfold Rmax at 1. destruct (Rle_dec e e'); lra.
  - apply between. apply between in D. apply between in D'. set (M := (Rmax g g' - 1) * Rmax w w') in *. clearbody M.
    unfold Rmax. destruct (Rle_dec c c'), (Rle_dec e e'); lra.
Qed.
Hypothesis solid : Rabs e = w.
(* A quotient: what is divided by is not 0, nothing cancels in it, and it is not off by all of itself. *)
Lemma within_inverse : e <> 0 -> g < 2 -> within (/ c) (/ e) (/ (2 - g)) (/ w).
Proof.
  destruct A as [G [E D]]. intros N K. assert (P : 0 < w) by (rewrite <- solid; now apply Rabs_pos_lt).
  assert (S : (2 - g) * w <= Rabs c).
  { pose proof (Rabs_triang_inv e (e - c)) as T. replace (e - (e - c)) with c in T by ring.
    rewrite Rabs_minus_sym in D. lra. }
  assert (Pc : 0 < Rabs c) by (apply Rlt_le_trans with (2 := S); apply Rmult_lt_0_compat; lra).
  assert (Nc : c <> 0) by (intros Z; rewrite Z, Rabs_R0 in Pc; lra).
  split; [|split].
  - rewrite <- Rinv_1 at 1. apply Rinv_le_contravar; lra.
  - rewrite Rabs_inv by auto. rewrite solid. lra.
  - replace (/ c - / e) with ((e - c) * (/ c * / e)) by (field; auto).
    rewrite !Rabs_mult, !Rabs_inv by auto. rewrite solid, Rabs_minus_sym.
    apply Rle_trans with ((g - 1) * w * (/ ((2 - g) * w) * / w)); [|right; field; lra].
    apply Rmult_le_compat; auto using Rabs_pos.
    + apply Rmult_le_pos; left; apply Rinv_0_lt_compat; auto.
    + apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. apply Rinv_le_contravar; auto.
      apply Rmult_lt_0_compat; lra.
Qed.
Lemma within_root : 0 <= e -> g <= 2 -> within (sqrt c) (sqrt e) g (sqrt w).
Proof.
  destruct A as [G [E D]]. intros P K. rewrite Rabs_pos_eq in solid by auto. subst w.
  assert (C : (2 - g) * e <= c <= g * e) by (apply between in D; lra).
  assert (C0 : 0 <= c) by nra.
  split; [auto|split; [rewrite Rabs_pos_eq; [lra|apply sqrt_pos]|]].
  pose proof (sqrt_pos e) as S. pose proof (sqrt_pos c) as Sc.
  pose proof (sqrt_sqrt e P) as Q. pose proof (sqrt_sqrt c C0) as Qc.
  apply between. split.
  - assert ((2 - g) * sqrt e <= sqrt c); [|lra]. apply root_above; [nra|].
    replace ((2 - g) * sqrt e * ((2 - g) * sqrt e)) with ((2 - g) * ((2 - g) * e)) by (rewrite <- Q at 1; ring).
    apply Rle_trans with (1 * ((2 - g) * e)); [apply Rmult_le_compat_r; nra|lra].
  - assert (sqrt c <= g * sqrt e); [|lra]. apply root_below; [nra|].
    replace (g * sqrt e * (g * sqrt e)) with (g * (g * e)) by (rewrite <- Q at 1; ring).
    apply Rle_trans with (1 * (g * e)); [lra|apply Rmult_le_compat_r; nra].
Qed.
End Steps.

(* The expressions that a kernel computes. `Stored v` rounds once more, to a narrower format. *)
Inductive term :=
  | Given (x : R) | Add (a b : term) | Mul (a b : term) | Neg (a : term) | Max (a b : term) | Min (a b : term)
  | Inverse (a : term) | Root (a : term) | Stored (v : R) (a : term).
Section Rounded.
Context (u : R) (rnd : R -> R) (stored : R -> R -> R).
Hypothesis u_pos : 0 <= u.
Hypothesis rnd_near : forall x, Rabs (rnd x - x) <= u * Rabs x.
Hypothesis stored_near : forall v x, Rabs (stored v x - x) <= v * Rabs x.
Fixpoint exact (t : term) : R :=
  match t with
  | Given x => x | Add a b => exact a + exact b | Mul a b => exact a * exact b | Neg a => - exact a
  | Max a b => Rmax (exact a) (exact b) | Min a b => - Rmax (- exact a) (- exact b)
  | Inverse a => / exact a | Root a => sqrt (exact a) | Stored _ a => exact a
  end.
Fixpoint computed (t : term) : R :=
  match t with
  | Given x => x | Add a b => rnd (computed a + computed b) | Mul a b => rnd (computed a * computed b)
  | Neg a => - computed a | Max a b => Rmax (computed a) (computed b) | Min a b => - Rmax (- computed a) (- computed b)
  | Inverse a => rnd (/ computed a) | Root a => rnd (sqrt (computed a)) | Stored v a => stored v (computed a)
  end.
Fixpoint weight (t : term) : R :=
  match t with
  | Given x => Rabs x | Add a b => weight a + weight b | Mul a b => weight a * weight b
  | Neg a | Stored _ a => weight a | Max a b | Min a b => Rmax (weight a) (weight b)
  | Inverse a => / weight a | Root a => sqrt (weight a)
  end.
Fixpoint growth (t : term) : R :=
  match t with
  | Given _ => 1 | Add a b => (1 + u) * Rmax (growth a) (growth b) | Mul a b => (1 + u) * (growth a * growth b)
  | Neg a => growth a | Max a b | Min a b => Rmax (growth a) (growth b)
  | Inverse a => (1 + u) * / (2 - growth a) | Root a => (1 + u) * growth a | Stored v a => (1 + v) * growth a
  end.
(* Nothing cancels in what is divided by, or what a root is taken of. *)
Fixpoint sound (t : term) : Prop :=
  match t with
  | Given _ => True | Neg a => sound a | Stored v a => 0 <= v /\ sound a
  | Add a b | Mul a b | Max a b | Min a b => sound a /\ sound b
  | Inverse a => sound a /\ exact a <> 0 /\ Rabs (exact a) = weight a /\ growth a < 2
  | Root a => sound a /\ 0 <= exact a /\ Rabs (exact a) = weight a /\ growth a <= 2
  end.
Theorem expression_error t : sound t ->
  Rabs (computed t - exact t) <= (growth t - 1) * weight t.
Proof.
  intros S. assert (W : within (computed t) (exact t) (growth t) (weight t)); [|apply W].
  induction t as [x|a IA b IB|a IA b IB|a IA|a IA b IB|a IA b IB|a IA|a IA|v a IA]; cbn in *.
  - apply within_exact.
  - destruct S. apply (within_round (computed a + computed b)); auto. apply within_add; auto.
  - destruct S. apply (within_round (computed a * computed b)); auto. apply within_mul; auto.
  - apply within_neg; auto.
  - destruct S. apply within_max; auto.
  - destruct S. apply within_neg, within_max; apply within_neg; auto.
  - destruct S as [S [N [D K]]]. apply (within_round (/ computed a)); auto. apply within_inverse; auto.
  - destruct S as [S [N [D K]]]. apply (within_round (sqrt (computed a))); auto. apply within_root; auto.
  - destruct S as [V S]. apply (within_round (computed a)); auto.
Qed.
(* Sums without cancellation are solid: the weight is the size. *)
Theorem positive_sum_is_solid a b : 0 <= exact a -> 0 <= exact b -> Rabs (exact a) = weight a -> Rabs (exact b) = weight b ->
  Rabs (exact (Add a b)) = weight (Add a b).
Proof. intros A B Sa Sb. cbn. rewrite <- Sa, <- Sb, !Rabs_pos_eq; lra. Qed.
End Rounded.
