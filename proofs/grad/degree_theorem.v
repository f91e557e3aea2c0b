(* A graph whose roots have degree 0 has a loss that does not depend on the stabilizing max: its gradient is 0. *)
From Coq Require Import Reals Lra Lia List ZArith QArith Qreals Bool Arith.
From Coquelicot Require Import Coquelicot.
From Tang Require Import grad.scalar grad.calculus sums.rsum grad.degree grad.degree_forms grad.degree_sound.
Import ListNotations.
Open Scope R_scope.

Local Opaque Qred.

Section Sound.
Context (free : nat -> nat -> point -> R) (cond : nat -> nat -> point -> bool) (dom : nat -> point -> list point).
Context (c : list Z -> R).
Notation val := (value free cond).
Notation moved := (moved c).
Notation tracked := (tracked c).

Ltac views := repeat match goal with
  | H : same _ _ _ _ = true |- _ => first [rewrite (same_sound c _ _ _ _ _ H) in * | clear H]
  | H : view_eqb _ _ = true |- _ => first [rewrite (view_eqb_sound _ _ _ H) in * | clear H]
  end.
Theorem body_sound table vals vals' n p : tracked table vals vals' -> forall b d,
  logs_ok free cond n vals p b -> degree_of table b = Some d -> moved d p (val n vals p b) (val n vals' p b).
Proof.
  intros T. induction b; intros d L E; simpl in L, E; cbn [value].
  - inversion E. reflexivity.
  - inversion E. reflexivity.
  - pose proof (fun d => T node d (at_view p w)) as N. unfold tracked in N.
    destruct (table node) as [[|q v|q v]|]; inversion E; subst; specialize (N _ eq_refl); simpl in *; auto;
      now rewrite at_view_subst.
  - destruct L as [L1 L2].
    destruct (degree_of table b1) as [[|q v|q v]|], (degree_of table b2) as [[|q' v'|q' v']|]; try discriminate;
      specialize (IHb1 _ L1 eq_refl); specialize (IHb2 _ L2 eq_refl); simpl in IHb1, IHb2; rewrite IHb1, IHb2.
    + inversion E. reflexivity.
    + inversion E. simpl. ring.
    + destruct (same q q' v v') eqn:S; inversion E. simpl. rewrite (same_sound c _ _ _ _ p S). ring.
    + inversion E. simpl. ring.
    + destruct (view_eqb v v') eqn:S; inversion E. apply moved_shift.
      rewrite Q2R_plus, (view_eqb_sound _ _ p S). ring.
  - destruct L as [L1 L2].
    destruct (degree_of table b1) as [[|q v|q v]|] eqn:E1, (degree_of table b2) as [[|q' v'|q' v']|] eqn:E2; try discriminate;
      specialize (IHb1 _ L1 eq_refl); specialize (IHb2 _ L2 eq_refl); simpl in IHb1, IHb2.
    + inversion E. simpl. now rewrite IHb1, IHb2.
    + inversion E. simpl. rewrite IHb1, IHb2. ring.
    + destruct b1; try discriminate. inversion E. simpl in *. apply moved_shift. rewrite IHb2, Q2R_mult. ring.
    + inversion E. simpl. rewrite IHb1, IHb2. ring.
    + destruct (view_eqb v v') eqn:S; inversion E. apply moved_scale.
      rewrite IHb1, IHb2, Q2R_plus, (view_eqb_sound _ _ p S), Rmult_plus_distr_r, exp2_add. ring.
    + destruct b2; try discriminate. inversion E. simpl in *. apply moved_shift. rewrite IHb1, Q2R_mult. ring.
  - destruct (degree_of table b) as [[|q v|q v]|]; inversion E; specialize (IHb _ L eq_refl); simpl in *; rewrite IHb.
    + reflexivity.
    + ring.
    + rewrite Q2R_opp. ring.
  - destruct (degree_of table b) as [[|q v|q v]|]; inversion E; specialize (IHb _ L eq_refl); simpl in *; rewrite IHb.
    + reflexivity.
    + rewrite Q2R_opp, Ropp_mult_distr_l_reverse, exp2_opp. apply Rinv_mult.
  - destruct L as [L1 L2].
    destruct (degree_of table b1) as [[|q v|q v]|], (degree_of table b2) as [[|q' v'|q' v']|]; try discriminate;
      specialize (IHb1 _ L1 eq_refl); specialize (IHb2 _ L2 eq_refl); simpl in IHb1, IHb2; rewrite IHb1, IHb2.
    + inversion E. reflexivity.
    + inversion E. simpl. rewrite Q2R_opp.
      rewrite <- (Rmult_1_r (val n vals p b1)) at 1. rewrite <- exp2_zero, ratio_scale. f_equal. f_equal. ring.
    + inversion E. simpl. rewrite <- (Rmult_1_r (val n vals p b2)) at 1. rewrite <- exp2_zero, ratio_scale.
      f_equal. f_equal. ring.
    + destruct (view_eqb v v') eqn:S; inversion E. apply moved_scale.
      rewrite ratio_scale, Q2R_minus, (view_eqb_sound _ _ p S). f_equal. f_equal. ring.
  - destruct (degree_of table b) as [[|q v|q v]|]; inversion E; specialize (IHb _ L eq_refl); simpl in *; rewrite IHb.
    + reflexivity.
    + apply exp2_add.
  - destruct L as [L P].
    destruct (degree_of table b) as [[|q v|q v]|]; inversion E; specialize (IHb _ L eq_refl); simpl in *; rewrite IHb.
    + reflexivity.
    + now apply log2_scale.
  - destruct L as [L1 L2].
    destruct (degree_of table b1) as [[|q v|q v]|], (degree_of table b2) as [[|q' v'|q' v']|]; try discriminate;
      specialize (IHb1 _ L1 eq_refl); specialize (IHb2 _ L2 eq_refl); simpl in IHb1, IHb2; rewrite IHb1, IHb2.
    + inversion E. reflexivity.
    + destruct (same q q' v v') eqn:S; inversion E. simpl. rewrite (same_sound c _ _ _ _ p S).
      apply Rmax_scale, exp2_gt.
    + destruct (same q q' v v') eqn:S; inversion E. simpl. rewrite (same_sound c _ _ _ _ p S). apply Rmax_shift.
  - destruct L as [L1 L2].
    destruct (degree_of table b1) as [[|q v|q v]|], (degree_of table b2) as [[|q' v'|q' v']|]; try discriminate;
      specialize (IHb1 _ L1 eq_refl); specialize (IHb2 _ L2 eq_refl); simpl in IHb1, IHb2; rewrite IHb1, IHb2.
    + inversion E. reflexivity.
    + destruct (same q q' v v') eqn:S; inversion E. simpl. rewrite (same_sound c _ _ _ _ p S).
      destruct (cond n k p); reflexivity.
    + destruct (same q q' v v') eqn:S; inversion E. simpl. rewrite (same_sound c _ _ _ _ p S).
      destruct (cond n k p); reflexivity.
Qed.

Lemma rsum_moved k (f g : point -> R) ps : (forall p, In p ps -> g p = f p * k) ->
  rsum (fun x => x) (map g ps) = rsum (fun x => x) (map f ps) * k.
Proof. induction ps as [|p ps IH]; simpl; intros H; [ring|]. rewrite H, IH by auto. ring. Qed.
Lemma maximum_scale k (f g : point -> R) ps : 0 < k -> (forall p, In p ps -> g p = f p * k) ->
  maximum (map g ps) = maximum (map f ps) * k.
Proof.
  intros K H. destruct ps as [|p ps]; simpl; [ring|]. rewrite (H p) by (left; auto).
  induction ps as [|q ps IH]; simpl; auto. rewrite IH by (intros r [R|R]; apply H; [left|right; right]; auto).
  rewrite (H q) by (right; left; auto). now apply Rmax_scale.
Qed.
Lemma maximum_shift k (f g : point -> R) ps : ps <> [] -> (forall p, In p ps -> g p = f p + k) ->
  maximum (map g ps) = maximum (map f ps) + k.
Proof.
  intros N H. destruct ps as [|p ps]; [congruence|]. simpl. rewrite (H p) by (left; auto).
  clear N. induction ps as [|q ps IH]; simpl; auto. rewrite IH by (intros r [R|R]; apply H; [left|right; right]; auto).
  rewrite (H q) by (right; left; auto). apply Rmax_shift.
Qed.
Lemma visited_row n nd xs p v : In p (visited dom n nd xs) -> (how nd = Map \/ view_below (points nd) v = true) ->
  at_view p v = at_view (of_coords xs) v.
Proof.
  unfold visited. intros H D. destruct (how nd) eqn:W.
  - destruct H as [<-|[]]. reflexivity.
  - destruct D as [D|D]; [discriminate|]. apply in_map_iff in H as [q [<- _]]. apply (view_below_sound (points nd)); auto.
    intros a A. unfold extend. destruct (Nat.ltb_spec a (points nd)); auto; lia.
  - destruct D as [D|D]; [discriminate|]. apply in_map_iff in H as [q [<- _]]. apply (view_below_sound (points nd)); auto.
    intros a A. unfold extend. destruct (Nat.ltb_spec a (points nd)); auto; lia.
Qed.
Lemma node_sound table vals vals' n nd d xs : tracked table vals vals' ->
  (forall p, In p (visited dom n nd xs) -> logs_ok free cond n vals p (lift nd)) ->
  (how nd = Maximum -> visited dom n nd xs <> []) ->
  node_degree table nd = Some d ->
  moved d (of_coords xs) (fold_value free cond dom n nd vals xs) (fold_value free cond dom n nd vals' xs).
Proof.
  intros T L N E. unfold node_degree in E.
  destruct (degree_of table (lift nd)) as [e|] eqn:D; [|destruct (how nd); discriminate].
  assert (B : forall p, In p (visited dom n nd xs) -> moved e p (val n vals p (lift nd)) (val n vals' p (lift nd))).
  { intros p Hp. eapply body_sound; eauto. }
  unfold fold_value. set (ps := visited dom n nd xs) in *.
  destruct e as [|q v|q v]; simpl in B.
  - assert (d = Inv) by (destruct (how nd); congruence). subst d. simpl.
    replace (map (fun p => val n vals' p (lift nd)) ps) with (map (fun p => val n vals p (lift nd)) ps).
    + destruct (how nd); reflexivity.
    + apply map_ext_in. intros p Hp. symmetry. now apply B.
  - assert (S : d = Scale q v /\ (how nd = Map \/ view_below (points nd) v = true)).
    { destruct (how nd); try (destruct (view_below (points nd) v) eqn:V); inversion E; auto. }
    destruct S as [-> V]. simpl.
    assert (B' : forall p, In p ps -> val n vals' p (lift nd) = val n vals p (lift nd) * exp2 (Q2R q * c (at_view (of_coords xs) v))).
    { intros p Hp. rewrite (B p Hp). do 4 f_equal. eapply visited_row; eauto. }
    destruct (how nd); [apply rsum_moved; auto|apply rsum_moved; auto|apply maximum_scale; auto using exp2_gt].
  - destruct (how nd) eqn:W; [| |].
    + inversion E; subst d. simpl. unfold ps, visited in *. rewrite W in *. simpl. rewrite (B (of_coords xs)) by (left; auto). ring.
    + discriminate.
    + destruct (view_below (points nd) v) eqn:V; inversion E; subst d. simpl. apply maximum_shift; auto.
      intros p Hp. rewrite (B p Hp). do 3 f_equal. eapply visited_row; eauto.
Qed.
Theorem degrees_sound nodes : forall n table vals vals', tracked table vals vals' ->
  run_ok free cond dom n nodes vals ->
  tracked (degrees n nodes table) (run free cond dom n nodes vals) (run free cond dom n nodes vals').
Proof.
  induction nodes as [|nd r IH]; intros n table vals vals' T K; simpl; auto.
  destruct K as [L [N K]]. apply IH; auto. intros m d xs E. unfold put, set in *.
  destruct (Nat.eqb_spec m n) as [->|M]; [|now apply T].
  eapply node_sound; eauto.
Qed.
End Sound.

Section Loss.
Context (free : nat -> nat -> point -> R) (cond : nat -> nat -> point -> bool) (dom : nat -> point -> list point).
Context (P : nat) (nodes : list node) (m : list Z -> R).     (* the value of the max, row by row *)
Definition initial (m : list Z -> R) : values := fun k xs => match k with O => m (at_view (of_coords xs) (identity_view P)) | _ => 0 end.
Definition root (r : nat) (xs : list Z) (m : list Z -> R) : R := run free cond dom 1 nodes (initial m) r xs.

(* Whatever is added to the max, in any row, the roots do not change. *)
Theorem max_is_stabilizing roots : max_eliminated P nodes roots = true ->
  run_ok free cond dom 1 nodes (initial m) ->
  forall c r xs, In r roots -> root r xs (fun row => m row + c row) = root r xs m.
Proof.
  intros H K c r xs R. unfold max_eliminated in H. rewrite forallb_forall in H. specialize (H r R).
  assert (T : tracked c (start P) (initial m) (initial (fun row => m row + c row))).
  { intros k d ys E. unfold start in E. inversion E; subst d. destruct k; simpl; auto.
    unfold Q2R; simpl. replace (1 * / 1) with 1 by field. ring. }
  pose proof (degrees_sound free cond dom c nodes 1 _ _ _ T K) as S.
  destruct (degrees 1 nodes (start P) r) as [[| |]|] eqn:E; try discriminate.
  exact (S r Inv xs E).
Qed.
(* So the gradient through the max is zero: in the direction of any one row, and of any combination of rows. *)
Theorem zero_gradient_of_max roots : max_eliminated P nodes roots = true ->
  run_ok free cond dom 1 nodes (initial m) ->
  forall direction r xs, In r roots -> is_derive (fun t => root r xs (fun row => m row + t * direction row)) 0 0.
Proof.
  intros H K direction r xs R. apply (is_derive_ext (fun _ => root r xs m)).
  - intro t. symmetry. now apply (max_is_stabilizing roots H K (fun row => t * direction row)).
  - apply (is_derive_const (V := R_NormedModule)).
Qed.
End Loss.

(* A shift of all rows at once is not enough: sum_i e^{s_i - m_i} over rows i against the same sum has degree 0
   under a uniform shift, and still depends on each row. The row test refuses it. *)
Section Rows.
Let weights := Node 1 Map (Exp2 (Add (Free 0) (Neg (Read 0 [Form [(0%nat, 1%Z)] 0])))).
Let over_rows := Node 0 Sum (Read 1 [Form [(0%nat, 1%Z)] 0]).
Let share := Node 1 Map (Mul (Read 1 [Form [(0%nat, 1%Z)] 0]) (Recip (Read 2 []))).
Theorem fold_over_rows_refused : max_eliminated 1 [weights; over_rows; share] [3%nat] = false.
Proof. reflexivity. Qed.
End Rows.
