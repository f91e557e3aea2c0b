(* The symbolic derivative is the derivative: every body along every differentiable path of its arguments. *)
From Coq Require Import Reals Lra Lia List.
From Coquelicot Require Import Coquelicot.
From Tang Require Import sums.rsum grad.calculus grad.scalar.
Open Scope R_scope.

Fixpoint bounded (n : nat) (x : sexpr) : Prop :=            (* the body reads arguments below n *)
  match x with
  | Lit _ => True | Arg k => (k < n)%nat
  | Neg a | Recip a | Sqrt a | Sin a | Exp2 a | Log2 a => bounded n a
  | Add a b | Mul a b | Atan2 a b | Ratio a b | Max a b | Min a b | Select _ a b => bounded n a /\ bounded n b
  end.

Lemma is_derive_exp2 y : is_derive exp2 y (ln 2 * exp2 y).
Proof. unfold exp2. auto_derive; auto. ring. Qed.
Lemma is_derive_log2 y : 0 < y -> is_derive log2 y (/ (ln 2 * y)).
Proof. intros Y. pose proof ln2_pos. unfold log2. auto_derive; auto. field. split; lra. Qed.
Lemma less_near f g t a b : is_derive f t a -> is_derive g t b -> f t < g t -> locally t (fun u => f u < g u).
Proof.
  intros F G L. assert (D : is_derive (fun u => g u - f u) t (b - a)).
  { apply (is_derive_minus (V := R_NormedModule)); auto. }
  generalize (near_pos _ t _ D ltac:(simpl; lra)). apply filter_imp. intros u U. lra.
Qed.
Section Chain.
Context (n : nat) (f : nat -> R -> R) (d : nat -> R) (t : R).
Hypothesis path : forall k, is_derive (f k) t (d k).
Definition env (u : R) (k : nat) : R := f k u.
(* sum over arguments of (partial derivative) * (speed of the argument) *)
Definition speed (x : sexpr) : R := rsum (fun k => eval (env t) (diff (env t) k x) * d k) (seq 0 n).

Lemma speed_arg k : (k < n)%nat -> speed (Arg k) = d k.
Proof.
  intros H. unfold speed. simpl.
  assert (G : forall m a, (a <= k)%nat -> (k < a + m)%nat ->
              rsum (fun j => (if Nat.eqb k j then 1 else 0) * d j) (seq a m) = d k).
  { induction m as [|m IH]; intros a A B; [lia|]. simpl.
    destruct (Nat.eqb_spec k a) as [->|N].
    - rewrite (rsum_ext_in _ (fun _ => 0)), rsum_zero; [ring|].
      intros j Hj. apply in_seq in Hj. destruct (Nat.eqb_spec a j); [lia|ring].
    - rewrite IH by lia. ring. }
  apply (G n 0%nat); lia.
Qed.
Ltac sum_up := unfold speed; simpl; repeat rewrite <- rsum_scale; repeat rewrite <- rsum_scale_l;
  rewrite <- ?rsum_plus; apply rsum_ext; intro; simpl.

Theorem diff_sound x : wf (env t) x -> bounded n x -> is_derive (fun u => eval (env u) x) t (speed x).
Proof.
  induction x; simpl; intros W B.
  - eapply is_derive_value; [apply (is_derive_const (V := R_NormedModule))|].
    unfold speed; simpl. rewrite (rsum_ext _ (fun _ => 0)), rsum_zero by (intro; ring). reflexivity.
  - rewrite speed_arg by auto. apply path.
  - eapply is_derive_value; [apply (is_derive_plus (V := R_NormedModule)); [apply IHx1|apply IHx2]; tauto|].
    unfold plus; simpl. sum_up. ring.
  - eapply is_derive_value; [apply is_derive_times; [apply IHx1|apply IHx2]; tauto|]. sum_up. ring.
  - eapply is_derive_value; [apply (is_derive_opp (V := R_NormedModule)); apply IHx; tauto|].
    unfold opp; simpl. transitivity (-1 * speed x); [ring|]. sum_up. ring.
  - destruct W as [W N]. eapply is_derive_value; [apply is_derive_inv; [apply IHx; tauto|exact N]|].
    transitivity (- / eval (env t) x ^ 2 * speed x); [field; exact N|].
    sum_up. field. exact N.
  - destruct W as [W N]. eapply is_derive_value; [apply is_derive_sqrt; [apply IHx; tauto|exact N]|].
    transitivity (/ (2 * sqrt (eval (env t) x)) * speed x); [unfold Rdiv; ring|]. sum_up. ring.
  - eapply is_derive_value; [apply (is_derive_chain sin); [apply IHx; tauto|apply is_derive_sin]|].
    sum_up. rewrite cos_sin. rewrite Rplus_comm. ring.
  - destruct W as [W1 [W2 N]]. eapply is_derive_value.
    + apply is_derive_atan2; [apply IHx1; tauto|apply IHx2; tauto|exact N].
    + set (q := / (eval (env t) x1 * eval (env t) x1 + eval (env t) x2 * eval (env t) x2)).
      transitivity (q * eval (env t) x2 * speed x1 + - q * eval (env t) x1 * speed x2); [unfold q, Rdiv; ring|].
      sum_up. fold q. ring.
  - eapply is_derive_value.
    + apply (is_derive_chain exp2); [apply IHx; tauto|]. apply is_derive_exp2.
    + sum_up. ring.
  - destruct W as [W N]. pose proof ln2_pos. eapply is_derive_value.
    + apply (is_derive_chain log2); [apply IHx; tauto|]. apply is_derive_log2; exact N.
    + sum_up. field. split; lra.
  - destruct W as [W1 [W2 N]].
    assert (D2 := IHx2 W2 (proj2 B)). assert (D1 := IHx1 W1 (proj1 B)).
    apply (is_derive_ext_loc (fun u => eval (env u) x1 / eval (env u) x2)).
    + assert (C : continuous (fun u => eval (env u) x2) t) by (apply (ex_derive_continuous (K := R_AbsRing) (V := R_NormedModule)); eexists; exact D2).
      assert (E : locally t (fun u => eval (env u) x2 <> 0)).
      { refine (C (fun v => v <> 0) _). exact (open_neq 0 _ N). }
      revert E. apply filter_imp. intros u U. unfold ratio.
      destruct (Req_EM_T (eval (env u) x2) 0); [contradiction|auto].
    + eapply is_derive_value; [apply is_derive_div; [exact D1|exact D2|exact N]|].
      set (q := / eval (env t) x2).
      transitivity (q * speed x1 + - (eval (env t) x1 * q * q) * speed x2); [unfold q; field; auto|].
      sum_up. unfold ratio, Rdiv. destruct (Req_EM_T (eval (env t) x2) 0); [contradiction|]. fold q. ring.
  - destruct W as [W1 [W2 N]].
    assert (D2 := IHx2 W2 (proj2 B)). assert (D1 := IHx1 W1 (proj1 B)).
    unfold less in *. destruct (Rlt_dec (eval (env t) x1) (eval (env t) x2)) as [L|L].
    + apply (is_derive_ext_loc (fun u => eval (env u) x2)).
      * generalize (less_near _ _ t _ _ D1 D2 L). apply filter_imp. intros u U. symmetry. apply Rmax_right. lra.
      * eapply is_derive_value; [exact D2|]. unfold speed; simpl. unfold less.
        destruct (Rlt_dec (eval (env t) x1) (eval (env t) x2)); [reflexivity|contradiction].
    + apply (is_derive_ext_loc (fun u => eval (env u) x1)).
      * generalize (less_near _ _ t _ _ D2 D1 ltac:(simpl in *; lra)). apply filter_imp. intros u U. symmetry. apply Rmax_left. lra.
      * eapply is_derive_value; [exact D1|]. unfold speed; simpl. unfold less.
        destruct (Rlt_dec (eval (env t) x1) (eval (env t) x2)); [contradiction|reflexivity].
  - destruct W as [W1 [W2 N]].
    assert (D2 := IHx2 W2 (proj2 B)). assert (D1 := IHx1 W1 (proj1 B)).
    destruct (Rlt_dec (eval (env t) x1) (eval (env t) x2)) as [L|L].
    + apply (is_derive_ext_loc (fun u => eval (env u) x1)).
      * generalize (less_near _ _ t _ _ D1 D2 L). apply filter_imp. intros u U. symmetry. apply Rmin_left. lra.
      * eapply is_derive_value; [exact D1|]. unfold speed; simpl. unfold less.
        destruct (Rlt_dec (eval (env t) x1) (eval (env t) x2)); [reflexivity|contradiction].
    + apply (is_derive_ext_loc (fun u => eval (env u) x2)).
      * generalize (less_near _ _ t _ _ D2 D1 ltac:(simpl in *; lra)). apply filter_imp. intros u U. symmetry. apply Rmin_right. lra.
      * eapply is_derive_value; [exact D2|]. unfold speed; simpl. unfold less.
        destruct (Rlt_dec (eval (env t) x1) (eval (env t) x2)); [contradiction|reflexivity].
  - destruct c; [apply IHx1|apply IHx2]; tauto.
Qed.
End Chain.
