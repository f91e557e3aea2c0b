(* The entropy of a finite set of points as a relation sees it, times the number of points; and its submodularity. *)
From Coq Require Import Reals Lra List Arith Lia Bool.
From Tang Require Import sums.rsum.
Import ListNotations.
Open Scope R_scope.

Lemma ln_le_minus_1 x : 0 < x -> ln x <= x - 1.
Proof.
  intros P. pose proof (exp_ineq1_le (ln x)) as H. rewrite exp_ln in H by auto. lra.
Qed.

Lemma rsum_cons {I} (f : I -> R) i l : rsum f (i :: l) = f i + rsum f l.
Proof. reflexivity. Qed.

(* An equivalence: equal points are seen alike. *)
Definition equivalence {P} (same : P -> P -> bool) : Prop :=
  (forall p, same p p = true) /\ (forall p q r, same p q = true -> same p r = same q r).
Lemma symmetric {P} (same : P -> P -> bool) p q : equivalence same -> same p q = true -> same q p = true.
Proof. intros [R T] S. rewrite <- (T p q p S). apply R. Qed.

Section Entropy.
Context {P : Type} (E : list P).
Definition indicator (b : bool) : R := if b then 1 else 0.
Definition count (f : P -> bool) : R := rsum (fun q => indicator (f q)) E.
Definition total : R := rsum (fun _ => 1) E.
(* Sum over the points of ln (all points / points that look alike). *)
Definition entropy (same : P -> P -> bool) : R := rsum (fun p => ln total - ln (count (same p))) E.

Lemma indicator_pos b : 0 <= indicator b.
Proof. destruct b; simpl; lra. Qed.
Lemma count_pos f : 0 <= count f.
Proof. apply rsum_nonneg. intros. apply indicator_pos. Qed.
Lemma count_member f p : In p E -> f p = true -> 1 <= count f.
Proof.
  intros I F. unfold count. induction E as [|q l IH]; [destruct I|]. cbn [rsum fold_right] in *.
  assert (N : 0 <= rsum (fun q => indicator (f q)) l) by (apply rsum_nonneg; intros; apply indicator_pos).
  destruct I as [->|I]; [rewrite F; simpl; fold (rsum (fun q => indicator (f q)) l); lra|].
  specialize (IH I). fold (rsum (fun q => indicator (f q)) l) in *. pose proof (indicator_pos (f q)). lra.
Qed.
Lemma count_le f g : (forall p, f p = true -> g p = true) -> count f <= count g.
Proof.
  intros H. apply rsum_le. intros p _. specialize (H p). destruct (f p), (g p); simpl; try lra.
Qed.
Lemma count_ext f g : (forall p, f p = g p) -> count f = count g.
Proof. intros H. apply rsum_ext. intro. now rewrite H. Qed.
Lemma total_is : total = INR (length E).
Proof. unfold total. induction E as [|p l IH]; [reflexivity|]. cbn [length]. rewrite S_INR, <- IH. simpl. lra. Qed.

(* What everything looks like to a relation that tells nothing, and to one that tells less. *)
Lemma entropy_blind same : (forall p q, same p q = true) -> entropy same = 0.
Proof.
  intros B. unfold entropy. rewrite (rsum_ext _ (fun _ => 0)); [apply rsum_zero|]. intro p.
  replace (count (same p)) with total; [lra|]. apply rsum_ext. intro q. now rewrite B.
Qed.
Lemma entropy_le r s : equivalence r -> equivalence s -> (forall p q, s p q = true -> r p q = true) ->
  entropy r <= entropy s.
Proof.
  intros R S H. apply rsum_le. intros p I. assert (Cs : 1 <= count (s p)) by (apply (count_member _ p I), S).
  assert (L : count (s p) <= count (r p)) by (apply count_le; auto).
  assert (ln (count (s p)) <= ln (count (r p))); [|lra].
  destruct (Rle_lt_or_eq_dec _ _ L) as [Lt|Eq]; [left; apply ln_increasing; lra|rewrite Eq; lra].
Qed.

Section Submodular.
Context (one two neither : P -> P -> bool).
Hypothesis E1 : equivalence one.
Hypothesis E2 : equivalence two.
Hypothesis E0 : equivalence neither.
Hypothesis one_tells : forall p q, one p q = true -> neither p q = true.
Hypothesis two_tells : forall p q, two p q = true -> neither p q = true.
Definition both p q := one p q && two p q.
Lemma both_equivalence : equivalence both.
Proof.
  destruct E1 as [R1 T1], E2 as [R2 T2]. split; intros; unfold both in *.
  - now rewrite R1, R2.
  - apply andb_prop in H as [A B]. now rewrite (T1 _ _ _ A), (T2 _ _ _ B).
Qed.
(* For two points a, b: the points that `one` sees as a and `two` as b, each with its share. *)
Let share p := / (count (both p) * count (neither p)).
Lemma pair_share a b : In a E ->
  rsum (fun p => indicator (one p a) * indicator (two p b) * share p) E <=
  indicator (neither a b) * / count (neither a).
Proof.
  intros A. assert (Na : 1 <= count (neither a)) by (apply (count_member _ a A), E0).
  assert (Ia : 0 < / count (neither a)) by (apply Rinv_0_lt_compat; lra).
  destruct (existsb (fun p => one p a && two p b) E) eqn:X.
  - apply existsb_exists in X as [c [C X]]. apply andb_prop in X as [C1 C2].
    assert (Cb : 1 <= count (both c)) by (apply (count_member _ c C), both_equivalence).
    rewrite (rsum_ext_in _ (fun p => indicator (both c p) * / (count (both c) * count (neither a)))).
    + rewrite rsum_scale. fold (count (both c)).
      assert (N : neither a b = true).
      { rewrite <- (proj2 E0 c a b (one_tells _ _ C1)). now apply two_tells. }
      rewrite N. simpl. right. field. lra.
    + intros p _. unfold both at 1. destruct (one p a) eqn:P1; simpl.
      * destruct (two p b) eqn:P2; simpl.
        -- assert (S : both c p = true).
           { unfold both. rewrite (proj2 E1 c a p C1), (symmetric _ _ _ E1 P1).
             now rewrite (proj2 E2 c b p C2), (symmetric _ _ _ E2 P2). }
           unfold both in S. rewrite S. simpl. unfold share.
           rewrite (count_ext (both p) (both c)).
           2:{ intro q. symmetry. apply (proj2 both_equivalence). exact S. }
           rewrite (count_ext (neither p) (neither a)); [lra|]. intro q. apply (proj2 E0), one_tells, P1.
        -- assert (S : two c p = false).
           { destruct (two c p) eqn:T; auto. rewrite <- (proj2 E2 c p b T) in P2. congruence. }
           rewrite S, andb_false_r. simpl. lra.
      * assert (S : one c p = false).
        { destruct (one c p) eqn:T; auto. rewrite <- (proj2 E1 c p a T) in P1. congruence. }
        rewrite S. simpl. lra.
  - rewrite (rsum_ext_in _ (fun _ => 0)).
    + rewrite rsum_zero. apply Rmult_le_pos; [apply indicator_pos|lra].
    + intros p I. destruct (one p a) eqn:A1, (two p b) eqn:A2; simpl; try lra. exfalso.
      assert (existsb (fun p => one p a && two p b) E = true); [|congruence].
      apply existsb_exists. exists p. now rewrite A1, A2.
Qed.
Lemma shares_sum : rsum (fun p => count (one p) * count (two p) * share p) E <= total.
Proof.
  rewrite (rsum_ext _ (fun p => rsum (fun a => rsum (fun b => indicator (one p a) * indicator (two p b) * share p) E) E)).
  2:{ intro p. unfold count at 1 2. rewrite <- !rsum_scale. apply rsum_ext. intro a.
      rewrite <- rsum_scale_l, <- rsum_scale. reflexivity. }
  rewrite rsum_swap. apply rsum_le. intros a A. rewrite rsum_swap.
  apply Rle_trans with (rsum (fun b => indicator (neither a b) * / count (neither a)) E).
  - apply rsum_le. intros b _. now apply pair_share.
  - rewrite rsum_scale. fold (count (neither a)).
    assert (1 <= count (neither a)) by (apply (count_member _ a A), E0). right. field. lra.
Qed.
Theorem entropy_submodular : entropy both + entropy neither <= entropy one + entropy two.
Proof.
  assert (K : rsum (fun p => ln (count (one p)) + ln (count (two p)) - ln (count (both p)) - ln (count (neither p))) E <= 0).
  { apply Rle_trans with (rsum (fun p => count (one p) * count (two p) * share p - 1) E).
    - apply rsum_le. intros p I.
      assert (1 <= count (one p)) by (apply (count_member _ p I), E1).
      assert (1 <= count (two p)) by (apply (count_member _ p I), E2).
      assert (1 <= count (both p)) by (apply (count_member _ p I), both_equivalence).
      assert (1 <= count (neither p)) by (apply (count_member _ p I), E0).
      assert (S : 0 < share p) by (apply Rinv_0_lt_compat; nra).
      rewrite <- ln_mult by lra.
      replace (ln (count (one p) * count (two p)) - ln (count (both p)) - ln (count (neither p)))
        with (ln (count (one p) * count (two p) * share p)).
      + apply ln_le_minus_1. apply Rmult_lt_0_compat; nra.
      + unfold share. rewrite ln_mult by (try nra; auto). rewrite ln_Rinv by nra. rewrite (ln_mult (count (both p))) by lra. lra.
    - rewrite (rsum_minus (fun p => count (one p) * count (two p) * share p) (fun _ => 1)).
      fold total. pose proof shares_sum. lra. }
  unfold entropy. rewrite <- !rsum_plus.
  assert (D : rsum (fun p => ln total - ln (count (both p)) + (ln total - ln (count (neither p)))) E -
              rsum (fun p => ln total - ln (count (one p)) + (ln total - ln (count (two p)))) E =
              rsum (fun p => ln (count (one p)) + ln (count (two p)) - ln (count (both p)) - ln (count (neither p))) E).
  { rewrite <- rsum_minus. apply rsum_ext. intro. lra. }
  lra.
Qed.
End Submodular.

(* As many views as values: the entropy of a view is at most total * ln (number of values that it takes). *)
Theorem entropy_image {V} (dec : forall a b : V, {a = b} + {a <> b}) (g : P -> V) (values : list V) same : equivalence same ->
  (forall p q, g p = g q -> same p q = true) -> (forall p, In p E -> In (g p) values) -> E <> [] ->
  entropy same <= total * ln (INR (length values)).
Proof.
  intros S G C NE. set (k := INR (length values)).
  destruct E as [|p0 E'] eqn:EE; [congruence|]. rewrite <- EE in *. clear NE.
  assert (I0 : In p0 E) by (rewrite EE; left; reflexivity).
  assert (K : 1 <= k).
  { unfold k. pose proof (C p0 I0). destruct values; [contradiction|]. cbn [length]. rewrite S_INR. pose proof (pos_INR (length values)). lra. }
  assert (T : 1 <= total) by (apply (count_member (fun _ => true) p0 I0); reflexivity).
  (* Each value takes at most one unit of the shares 1 / (points that look alike). *)
  assert (U : rsum (fun p => / count (same p)) E <= k).
  { apply Rle_trans with (rsum (fun v => 1) values).
    2:{ unfold k. right. clear. induction values as [|v l IH]; [reflexivity|]. cbn [length]. rewrite S_INR, <- IH. simpl. lra. }
    apply Rle_trans with (rsum (fun p => rsum (fun v => (if dec (g p) v then 1 else 0) * / count (same p)) values) E).
    - apply rsum_le. intros p I. rewrite rsum_scale.
      assert (N : 1 <= count (same p)) by (apply (count_member _ p I), S).
      assert (Pn : 0 < / count (same p)) by (apply Rinv_0_lt_compat; lra).
      assert (M : 1 <= rsum (fun v => if dec (g p) v then 1 else 0) values); [|nra].
      generalize (C p I). clear. induction values as [|v l IH]; [contradiction|]. intros H.
      assert (0 <= rsum (fun v => if dec (g p) v then 1 else 0) l).
      { apply rsum_nonneg. intros x _. destruct (dec (g p) x); lra. }
      simpl. fold (rsum (fun v => if dec (g p) v then 1 else 0) l). destruct (dec (g p) v); [lra|].
      destruct H as [->|H]; [congruence|]. specialize (IH H). lra.
    - rewrite rsum_swap. apply rsum_le. intros v _.
      destruct (existsb (fun p => if dec (g p) v then true else false) E) eqn:X.
      + apply existsb_exists in X as [q [Q X]]. destruct (dec (g q) v) as [<-|]; [|discriminate].
        assert (N : 1 <= count (same q)) by (apply (count_member _ q Q), S).
        apply Rle_trans with (count (same q) * / count (same q)); [|right; field; lra].
        change (count (same q) * / count (same q)) with (rsum (fun p => indicator (same q p)) E * / count (same q)).
          rewrite <- rsum_scale. apply rsum_le. intros p _. destruct (dec (g p) (g q)) as [G'|].
        * rewrite (G q p) by auto. rewrite (count_ext (same p) (same q)); [simpl; lra|].
          intro r. apply (proj2 S). now apply G.
        * assert (0 < / count (same q)) by (apply Rinv_0_lt_compat; lra). pose proof (indicator_pos (same q p)). nra.
      + rewrite (rsum_ext_in _ (fun _ => 0)); [rewrite rsum_zero; lra|]. intros p I. destruct (dec (g p) v) as [G'|]; [|lra].
        exfalso. assert (existsb (fun p => if dec (g p) v then true else false) E = true); [|congruence].
        apply existsb_exists. exists p. destruct (dec (g p) v); auto. }
  unfold entropy.
  apply Rle_trans with (rsum (fun p => total * / k * / count (same p) - 1 + ln k) E).
  - apply rsum_le. intros p I. assert (N : 1 <= count (same p)) by (apply (count_member _ p I), S).
    assert (Pk : 0 < / k) by (apply Rinv_0_lt_compat; lra).
    assert (Pn : 0 < / count (same p)) by (apply Rinv_0_lt_compat; lra).
    pose proof (ln_le_minus_1 (total * / k * / count (same p))) as L.
    rewrite !ln_mult, !ln_Rinv in L by (try lra; apply Rmult_lt_0_compat; lra).
    assert (0 < total * / k * / count (same p)) by (repeat apply Rmult_lt_0_compat; lra). specialize (L H). lra.
  - rewrite (rsum_plus (fun p => total * / k * / count (same p) - 1) (fun _ => ln k)).
    rewrite (rsum_minus (fun p => total * / k * / count (same p)) (fun _ => 1)).
    rewrite rsum_scale_l. fold total.
    assert (Z : rsum (fun _ : P => ln k) E = total * ln k).
    { unfold total. rewrite <- rsum_scale. apply rsum_ext. intro. lra. }
    rewrite Z. assert (total * / k * rsum (fun p => / count (same p)) E <= total * / k * k).
    { apply Rmult_le_compat_l; auto. apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra. }
    replace (total * / k * k) with total in H by (field; lra). lra.
Qed.
(* A relation that tells all points apart. *)
Theorem entropy_sharp same : NoDup E -> (forall p q, In p E -> In q E -> same p q = true -> p = q) ->
  equivalence same -> total * ln total <= entropy same.
Proof.
  intros U A S. unfold entropy. apply Rle_trans with (rsum (fun _ => ln total) E).
  - unfold total at 1. rewrite <- rsum_scale. apply rsum_le. intros. lra.
  - apply rsum_le. intros p I. assert (N : 1 <= count (same p)) by (apply (count_member _ p I), S).
    assert (L : count (same p) <= 1).
    { unfold count. assert (Z : forall q, In q E -> same p q = true -> p = q) by auto. revert U Z. clear.
      induction E as [|q l IH]; intros U Z; simpl; [lra|]. inversion U; subst. fold (rsum (fun q => indicator (same p q)) l).
      destruct (same p q) eqn:Q.
      - rewrite (rsum_ext_in _ (fun _ => 0)); [rewrite rsum_zero; simpl; lra|]. intros r R.
        destruct (same p r) eqn:Y; auto. exfalso. apply H1. rewrite <- (Z q (or_introl eq_refl) Q).
        now rewrite (Z r (or_intror R) Y).
      - specialize (IH H2 (fun r R => Z r (or_intror R))). simpl. lra. }
    replace (count (same p)) with 1 by lra. rewrite ln_1. lra.
Qed.
End Entropy.
