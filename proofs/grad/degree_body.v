(* The degree of a body: how its value moves when a row of the max does. *)
From Coq Require Import Reals Lra Lia List ZArith QArith Qreals Bool Arith.
From Coquelicot Require Import Coquelicot.
From Tang Require Import grad.scalar grad.calculus sums.rsum grad.degree grad.degree_forms grad.degree_sound.
Import ListNotations.
Open Scope R_scope.

Local Opaque Qred.

Section Sound.
Context (free : nat -> nat -> point -> option R) (op : nat -> R -> R -> R) (c : list Z -> R).
Notation val := (value free op).
Notation logs := (logs_ok free op).
Notation moved := (moved c).
Notation tracked := (tracked c).

Lemma zero_value n vals p b : zero b = true -> val n vals p b = Some 0.
Proof.
  destruct b; try discriminate. simpl. intros H. apply Qeq_bool_eq in H. rewrite (Qeq_eqR _ _ H). unfold Q2R; simpl.
  f_equal. ring.
Qed.
Lemma alike_values n vals p a b x y d u u' w w' : alike a b x y = Some d ->
  val n vals p a = Some u -> val n vals p b = Some w -> moves c x p u u' -> moves c y p w w' ->
  moves c d p u u' /\ moves c d p w w'.
Proof.
  intros A U W M N. apply (alike_sound c a b x y d p u u' w w' A M N); intros Z.
  - rewrite (zero_value n vals p a Z) in U. congruence.
  - rewrite (zero_value n vals p b Z) in W. congruence.
Qed.
(* The branch that is taken. *)
Lemma alike_left n vals p a b x y d u u' : alike a b x y = Some d -> val n vals p a = Some u -> moves c x p u u' ->
  moves c d p u u'.
Proof.
  intros A U M. destruct x as [|q v|q v], y as [|q' v'|q' v']; simpl in A; try discriminate; try (inversion A; subst; exact M).
  - destruct (zero a) eqn:Z; inversion A; subst. rewrite (zero_value n vals p a Z) in U. inversion U; subst.
    simpl in *. rewrite M. ring.
  - destruct (zero b); inversion A; subst. exact M.
  - destruct (same q q' v v'); inversion A; subst. exact M.
  - destruct (same q q' v v'); inversion A; subst. exact M.
Qed.
Lemma alike_right n vals p a b x y d u u' : alike a b x y = Some d -> val n vals p b = Some u -> moves c y p u u' ->
  moves c d p u u'.
Proof.
  intros A U M. destruct x as [|q v|q v], y as [|q' v'|q' v']; simpl in A; try discriminate; try (inversion A; subst; exact M).
  - destruct (zero a); inversion A; subst. exact M.
  - destruct (zero b) eqn:Z; inversion A; subst. rewrite (zero_value n vals p b Z) in U. inversion U; subst.
    simpl in *. rewrite M. ring.
  - destruct (same q q' v v') eqn:S; inversion A; subst. simpl in *. now rewrite M, (same_sound c _ _ _ _ p S).
  - destruct (same q q' v v') eqn:S; inversion A; subst. simpl in *. now rewrite M, (same_sound c _ _ _ _ p S).
Qed.
Ltac operands table b1 b2 L1 L2 IHb1 IHb2 E :=
  destruct (degree_of table b1) as [x|] eqn:D1; [|discriminate E];
  destruct (degree_of table b2) as [y|] eqn:D2; [|now destruct x];
  specialize (IHb1 _ L1 eq_refl); specialize (IHb2 _ L2 eq_refl).
Ltac operand table b L IHb E :=
  destruct (degree_of table b) as [x|] eqn:D; [|discriminate E]; specialize (IHb _ L eq_refl).
(* Both values, of names u u' and w w', or nothing left to show. *)
Ltac pair n p b1 b2 vals vals' :=
  destruct (val n vals p b1) as [u|] eqn:U, (val n vals' p b1) as [u'|] eqn:U'; simpl in *; try contradiction; auto;
  destruct (val n vals p b2) as [w|] eqn:W, (val n vals' p b2) as [w'|] eqn:W'; simpl in *; try contradiction; auto.
Ltac single n p b vals vals' :=
  destruct (val n vals p b) as [u|] eqn:U, (val n vals' p b) as [u'|] eqn:U'; simpl in *; try contradiction; auto.
Theorem body_sound table vals vals' n p : tracked table vals vals' -> forall b d,
  logs n vals p b -> degree_of table b = Some d -> moved d p (val n vals p b) (val n vals' p b).
Proof.
  intros T. induction b; intros d L E; simpl in L, E; cbn [value].
  - inversion E. destruct (free n k p); simpl; auto.
  - inversion E. reflexivity.
  - pose proof (fun d => T node d (at_view p w)) as N. unfold degree_sound.tracked in N.
    destruct (table node) as [[|q v|q v]|]; inversion E; subst; specialize (N _ eq_refl);
      destruct (vals node (at_view p w)), (vals' node (at_view p w)); simpl in *; auto; now rewrite at_view_subst.
  - destruct L as [L1 L2]. operands table b1 b2 L1 L2 IHb1 IHb2 E. pair n p b1 b2 vals vals'.
    assert (A : alike b1 b2 x y = Some d -> moves c d p (u + w) (u' + w') \/ exists q v, d = Shift q v).
    { intros A. destruct (alike_values n vals p b1 b2 x y d u u' w w' A U W IHb1 IHb2) as [M N].
      destruct d as [|q v|q v]; simpl in M, N; [left|left|right; eauto]; rewrite M, N; simpl; ring. }
    destruct x as [|q v|q v], y as [|q' v'|q' v']; simpl in IHb1, IHb2;
      try discriminate E;
      try (destruct (A E) as [M|[q2 [v2 ->]]]; [exact M|simpl in E; repeat match type of E with
        context [if ?b then _ else _] => destruct b end; discriminate]).
    + inversion E; subst d. simpl. rewrite IHb1, IHb2. ring.
    + inversion E; subst d. simpl. rewrite IHb1, IHb2. ring.
    + destruct (view_eqb v v') eqn:S; inversion E. apply moved_shift.
      rewrite IHb1, IHb2, Q2R_plus, (view_eqb_sound _ _ p S). ring.
  - destruct L as [L1 L2]. operands table b1 b2 L1 L2 IHb1 IHb2 E. pair n p b1 b2 vals vals'.
    destruct x as [|q v|q v], y as [|q' v'|q' v']; try discriminate; simpl in IHb1, IHb2.
    + inversion E. simpl. now rewrite IHb1, IHb2.
    + inversion E. simpl. rewrite IHb1, IHb2. ring.
    + destruct b1; try discriminate. inversion E. simpl in U, U'. inversion U; inversion U'; subst u u'. apply moved_shift.
      rewrite IHb2, Q2R_mult. ring.
    + inversion E. simpl. rewrite IHb1, IHb2. ring.
    + destruct (view_eqb v v') eqn:S; inversion E. apply moved_scale.
      rewrite IHb1, IHb2, Q2R_plus, (view_eqb_sound _ _ p S), Rmult_plus_distr_r, exp2_add. ring.
    + destruct b2; try discriminate. inversion E. simpl in W, W'. inversion W; inversion W'; subst w w'. apply moved_shift.
      rewrite IHb1, Q2R_mult. ring.
  - operand table b L IHb E. single n p b vals vals'.
    destruct x as [|q v|q v]; inversion E; simpl in *; rewrite IHb; [reflexivity|ring|rewrite Q2R_opp; ring].
  - operand table b L IHb E. single n p b vals vals'.
    destruct x as [|q v|q v]; inversion E; simpl in *; rewrite IHb; [reflexivity|].
    rewrite Q2R_opp, Ropp_mult_distr_l_reverse, exp2_opp. apply Rinv_mult.
  - destruct L as [L1 L2]. operands table b1 b2 L1 L2 IHb1 IHb2 E. pair n p b1 b2 vals vals'.
    destruct x as [|q v|q v], y as [|q' v'|q' v']; try discriminate; simpl in IHb1, IHb2; rewrite IHb1, IHb2.
    + inversion E. reflexivity.
    + inversion E. simpl. rewrite Q2R_opp.
      rewrite <- (Rmult_1_r u) at 1. rewrite <- exp2_zero, ratio_scale. f_equal. f_equal. ring.
    + inversion E. simpl. rewrite <- (Rmult_1_r w) at 1. rewrite <- exp2_zero, ratio_scale. f_equal. f_equal. ring.
    + destruct (view_eqb v v') eqn:S; inversion E. apply moved_scale.
      rewrite ratio_scale, Q2R_minus, (view_eqb_sound _ _ p S). f_equal. f_equal. ring.
  - operand table b L IHb E. single n p b vals vals'.
    destruct x as [|q v|q v]; inversion E; simpl in *; rewrite IHb; [reflexivity|apply exp2_add].
  - destruct L as [L P]. operand table b L IHb E. single n p b vals vals'.
    destruct x as [|q v|q v]; inversion E; simpl in *; rewrite IHb; [reflexivity|now apply log2_scale].
  - operand table b L IHb E. single n p b vals vals'.
    destruct x as [|q v|q v]; inversion E; simpl in *; rewrite IHb; [reflexivity|].
    assert (H : Q2R (1 # 2) = / 2) by (unfold Q2R; simpl; lra).
    rewrite Q2R_mult, H, <- sqrt_scale. do 3 f_equal. field.
  - destruct L as [L1 L2]. operands table b1 b2 L1 L2 IHb1 IHb2 E. pair n p b1 b2 vals vals'.
    destruct (alike_values n vals p b1 b2 x y d u u' w w' E U W IHb1 IHb2) as [M N].
    destruct d; simpl in *; rewrite M, N; auto; [apply Rmax_scale, exp2_gt|apply Rmax_shift].
  - destruct L as [L1 L2]. operands table b1 b2 L1 L2 IHb1 IHb2 E. pair n p b1 b2 vals vals'.
    destruct (alike_values n vals p b1 b2 x y d u u' w w' E U W IHb1 IHb2) as [M N].
    destruct d; simpl in *; rewrite M, N; auto; [apply Rmin_scale, exp2_gt|apply Rmin_shift].
  - destruct L as [L1 L2]. operands table b1 b2 L1 L2 IHb1 IHb2 E.
    destruct (alike b1 b2 x y) as [e|] eqn:A; inversion E; subst d. pair n p b1 b2 vals vals'.
    destruct (alike_values n vals p b1 b2 x y e u u' w w' A U W IHb1 IHb2) as [M N]. unfold truth.
    destruct e; simpl in *; rewrite M, N; auto.
    + pose proof (exp2_gt (Q2R d * c (at_view p row))).
      destruct (Rlt_dec u w), (Rlt_dec (u * _) (w * _)); auto; exfalso; nra.
    + destruct (Rlt_dec u w), (Rlt_dec (u + _) (w + _)); auto; exfalso; lra.
  - destruct L as [L1 L2]. operands table b1 b2 L1 L2 IHb1 IHb2 E.
    destruct (alike b1 b2 x y) as [e|] eqn:A; inversion E; subst d. pair n p b1 b2 vals vals'.
    destruct (alike_values n vals p b1 b2 x y e u u' w w' A U W IHb1 IHb2) as [M N]. unfold truth.
    destruct e; simpl in *; rewrite M, N; auto.
    + pose proof (exp2_gt (Q2R d * c (at_view p row))).
      destruct (Req_EM_T u w), (Req_EM_T (u * _) (w * _)); auto; exfalso; [congruence|].
      apply n0. apply (Rmult_eq_reg_r (exp2 (Q2R d * c (at_view p row)))); lra.
    + destruct (Req_EM_T u w), (Req_EM_T (u + _) (w + _)); auto; exfalso; lra.
  - operand table b L IHb E. inversion E. single n p b vals vals'.
  - operand table b L IHb E. destruct x; inversion E. single n p b vals vals'. now rewrite IHb.
  - destruct L as [L1 L2]. operands table b1 b2 L1 L2 IHb1 IHb2 E. destruct x, y; inversion E.
    pair n p b1 b2 vals vals'. now rewrite IHb1, IHb2.
  - destruct L as [L1 L2]. destruct (degree_of table b1) as [[| |]|] eqn:D1; try discriminate E.
    specialize (IHb1 _ L1 eq_refl).
    destruct (known b1) as [[|]|] eqn:K.
    + destruct b1; try discriminate K; simpl in *; [|now destruct b1].
      single n p b1 vals vals'. destruct (Req_EM_T 1 0); [lra|]. now apply IHb2.
    + destruct b1; try discriminate K; simpl in *. destruct b1; try discriminate K; simpl in *.
      single n p b1 vals vals'. destruct (Req_EM_T (1 - 1) 0); [|lra]. now apply IHb3.
    + destruct (degree_of table b2) as [x|] eqn:D2; [|discriminate]. destruct (degree_of table b3) as [y|] eqn:D3; [|now destruct x].
      destruct (val n vals p b1) as [s|], (val n vals' p b1) as [s'|]; simpl in *; try contradiction; auto. subst s'.
      destruct (Req_EM_T s 0).
      * specialize (IHb3 _ L2 eq_refl). single n p b3 vals vals'.
        now apply (alike_right n vals p b2 b3 x y d u u' E U).
      * specialize (IHb2 _ L2 eq_refl). single n p b2 vals vals'.
        now apply (alike_left n vals p b2 b3 x y d u u' E U).
  - destruct L as [L1 L2]. destruct (degree_of table b1) as [[| |]|] eqn:D1; try discriminate E.
    specialize (IHb1 _ L1 eq_refl). single n p b1 vals vals'. subst u'. destruct (Req_EM_T u 0); simpl; auto.
  - destruct L as [L1 L2]. destruct (degree_of table b1) as [x|] eqn:D1; [|discriminate E].
    destruct (degree_of table b2) as [y|] eqn:D2; [|now destruct x]. specialize (IHb1 _ L1 eq_refl).
    single n p b1 vals vals'.
    + now apply (alike_left n vals p b1 b2 x y d u u' E U).
    + clear U U'. specialize (IHb2 _ L2 eq_refl). single n p b2 vals vals'. now apply (alike_right n vals p b1 b2 x y d u u' E U).
Qed.
End Sound.
