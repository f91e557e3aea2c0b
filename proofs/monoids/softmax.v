(* Online softmax as a commutative monoid with identity; None is the state whose max is -inf. *)
From Coq Require Import Reals Lra List FunctionalExtensionality.
From Tang Require Import fold.monoid sums.rsum.
Import ListNotations.
Open Scope R_scope.

Section OnlineSoftmax.
Context {C : Type}.                                        (* value columns of the weighted sum *)
Definition st : Type := option (R * R * (C -> R)).         (* running max, sum, weighted sums *)
Definition cmb (a b : st) : st :=
  match a, b with
  | None, x => x | x, None => x
  | Some (m1, l1, o1), Some (m2, l2, o2) =>
    let M := Rmax m1 m2 in
    Some (M, l1 * exp (m1 - M) + l2 * exp (m2 - M), fun c => o1 c * exp (m1 - M) + o2 c * exp (m2 - M))
  end.
Lemma exp_chain a b c : exp (a - b) * exp (b - c) = exp (a - c).
Proof. rewrite <- exp_plus. f_equal. ring. Qed.
Theorem online_softmax_comm a b : cmb a b = cmb b a.
Proof.
  destruct a as [[[m1 l1] o1]|], b as [[[m2 l2] o2]|]; simpl; auto.
  rewrite (Rmax_comm m2 m1). f_equal. f_equal; [f_equal; ring|].
  extensionality c; ring.
Qed.
Theorem online_softmax_assoc a b c : cmb a (cmb b c) = cmb (cmb a b) c.
Proof.
  destruct a as [[[m1 l1] o1]|], b as [[[m2 l2] o2]|], c as [[[m3 l3] o3]|]; simpl; auto.
  rewrite <- Rmax_assoc. set (M := Rmax m1 (Rmax m2 m3)). set (P := Rmax m1 m2). set (Q := Rmax m2 m3).
  f_equal. f_equal; [f_equal|extensionality c];
    rewrite !Rmult_plus_distr_r, !Rmult_assoc, !exp_chain; ring.
Qed.
Definition online_softmax_monoid : monoid st.
Proof.
  refine {| ok _ := True; op := cmb; e := None |}; auto.
  - destruct x as [[[m l] o]|]; auto.
  - intros; apply online_softmax_assoc.
Defined.
Theorem online_softmax_commutative : commutative online_softmax_monoid.
Proof. intros a b _ _. apply online_softmax_comm. Qed.

(* A live score s with its row of values v; a masked score is None. *)
Definition leaf (s : R) (v : C -> R) : st := Some (s, 1, v).
Definition terms (xs : list (R * (C -> R))) := map (fun p => Some (leaf (fst p) (snd p))) xs.
Lemma terms_cons x xs : fold online_softmax_monoid (terms (x :: xs)) =
  cmb (leaf (fst x) (snd x)) (fold online_softmax_monoid (terms xs)).
Proof.
  change (terms (x :: xs)) with ([Some (leaf (fst x) (snd x))] ++ terms xs).
  rewrite fold_app by (intros ? _; exact I). reflexivity.
Qed.
(* The state of a row after any number of scores: the two-pass statistics, relative to the running max. *)
Definition two_pass (xs : list (R * (C -> R))) (s : st) : Prop := match s with
  | None => xs = []
  | Some (m, l, o) =>
    l = rsum (fun p => exp (fst p - m)) xs /\
    (forall c, o c = rsum (fun p => snd p c * exp (fst p - m)) xs) /\
    (forall p, In p xs -> fst p <= m) /\ (exists p, In p xs /\ fst p = m)
  end.
Theorem online_softmax_state xs : two_pass xs (fold online_softmax_monoid (terms xs)).
Proof.
  induction xs as [|[s v] xs IH]; [reflexivity|]. rewrite terms_cons. simpl fst. simpl snd.
  destruct (fold online_softmax_monoid (terms xs)) as [[[m l] o]|]; simpl in *.
  - destruct IH as [L [O [U [p0 [P0 E0]]]]]. set (M := Rmax s m).
    split; [|split; [|split]].
    + rewrite L, <- rsum_scale.
      rewrite (rsum_ext (fun p => exp (fst p - m) * exp (m - M)) (fun p => exp (fst p - M)))
        by (intro p; apply exp_chain). ring.
    + intro c. rewrite O, <- rsum_scale.
      rewrite (rsum_ext (fun p => snd p c * exp (fst p - m) * exp (m - M)) (fun p => snd p c * exp (fst p - M)))
        by (intro p; rewrite Rmult_assoc, exp_chain; reflexivity). ring.
    + intros p [<-|Hp]; simpl; [apply Rmax_l|]. apply Rle_trans with m; auto. apply Rmax_r.
    + destruct (Rle_dec s m) as [K|K].
      * exists p0. split; auto. rewrite E0. symmetry. now apply Rmax_right.
      * exists (s, v). split; auto. simpl. symmetry. apply Rmax_left. lra.
  - subst xs. simpl. replace (s - s) with 0 by ring. rewrite exp_0.
    split; [ring|]. split; [intro; ring|]. split.
    + intros p [<-|[]]; simpl; lra.
    + exists (s, v). auto.
Qed.
Theorem online_softmax_max xs m l o : fold online_softmax_monoid (terms xs) = Some (m, l, o) ->
  (forall p, In p xs -> fst p <= m) /\ (exists p, In p xs /\ fst p = m).
Proof. intros H. pose proof (online_softmax_state xs) as S. rewrite H in S. apply S. Qed.

Lemma rsum_exp_pos (k : R) (xs : list (R * (C -> R))) : xs <> [] -> 0 < rsum (fun p => exp (fst p - k)) xs.
Proof. intros H. apply rsum_pos; auto. intros; apply exp_pos. Qed.
Theorem online_softmax_positive xs m l o : fold online_softmax_monoid (terms xs) = Some (m, l, o) -> 0 < l.
Proof.
  intros H. pose proof (online_softmax_state xs) as S. rewrite H in S. destruct S as [-> _].
  apply rsum_exp_pos. intros ->. discriminate.
Qed.
(* The finished ratio is softmax with no max at all. *)
Theorem online_softmax_two_pass xs m l o c : fold online_softmax_monoid (terms xs) = Some (m, l, o) ->
  o c / l = rsum (fun p => snd p c * exp (fst p)) xs / rsum (fun p => exp (fst p)) xs.
Proof.
  intros H. pose proof (online_softmax_positive _ _ _ _ H) as P.
  pose proof (online_softmax_state xs) as S. rewrite H in S. destruct S as [L [O _]].
  rewrite (rsum_ext (fun p => snd p c * exp (fst p)) (fun p => snd p c * exp (fst p - m) * exp m)), rsum_scale
    by (intro p; rewrite Rmult_assoc, <- exp_plus; do 2 f_equal; ring).
  rewrite (rsum_ext (fun p => exp (fst p)) (fun p => exp (fst p - m) * exp m)), rsum_scale
    by (intro p; rewrite <- exp_plus; f_equal; ring).
  rewrite <- O, <- L. pose proof (exp_pos m). field. split; lra.
Qed.
Theorem logsumexp xs m l o : fold online_softmax_monoid (terms xs) = Some (m, l, o) ->
  m + ln l = ln (rsum (fun p => exp (fst p)) xs).
Proof.
  intros H. pose proof (online_softmax_positive _ _ _ _ H) as P.
  pose proof (online_softmax_state xs) as S. rewrite H in S. destruct S as [L _].
  rewrite (rsum_ext (fun p => exp (fst p)) (fun p => exp (fst p - m) * exp m)), rsum_scale
    by (intro p; rewrite <- exp_plus; f_equal; ring).
  rewrite <- L, ln_mult, ln_exp; auto using exp_pos. ring.
Qed.
(* A row with no live key is the identity; its output under `ratio` is 0. *)
Theorem online_softmax_empty : fold online_softmax_monoid (terms []) = None.
Proof. reflexivity. Qed.
End OnlineSoftmax.

(* Shift invariance: softmax of shifted scores. *)
Section Shift.
Context {I : Type} (xs : list I) (s : I -> R).
Definition softmax (s : I -> R) (i : I) : R := exp (s i) / rsum (fun j => exp (s j)) xs.
Theorem softmax_shift c i : xs <> [] -> softmax (fun j => s j + c) i = softmax s i.
Proof.
  intros H. unfold softmax.
  rewrite (rsum_ext (fun j => exp (s j + c)) (fun j => exp (s j) * exp c)), rsum_scale, exp_plus
    by (intro; apply exp_plus).
  pose proof (exp_pos c). pose proof (rsum_pos (fun j => exp (s j)) xs (fun j _ => exp_pos _) H).
  field. lra.
Qed.
End Shift.
