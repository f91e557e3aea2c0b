(* Finite sums of reals over a list of fold points, and the identities every sum rule rests on. *)
From Coq Require Import Reals Lra List Permutation.
Import ListNotations.
Open Scope R_scope.

Definition rsum {I} (f : I -> R) (xs : list I) : R := fold_right (fun x s => f x + s) 0 xs.
Section Rsum.
Context {I : Type}.
Implicit Types (f g : I -> R) (xs ys : list I).
Lemma rsum_scale f k xs : rsum (fun x => f x * k) xs = rsum f xs * k.
Proof. induction xs; simpl; [ring|]. rewrite IHxs; ring. Qed.
Lemma rsum_scale_l f k xs : rsum (fun x => k * f x) xs = k * rsum f xs.
Proof. induction xs; simpl; [ring|]. rewrite IHxs; ring. Qed.
Lemma rsum_ext_in f g xs : (forall x, In x xs -> f x = g x) -> rsum f xs = rsum g xs.
Proof. induction xs; simpl; intros H; auto. rewrite H by auto. f_equal. apply IHxs. auto. Qed.
Lemma rsum_ext f g xs : (forall x, f x = g x) -> rsum f xs = rsum g xs.
Proof. intros H; apply rsum_ext_in; auto. Qed.
Lemma rsum_app f xs ys : rsum f (xs ++ ys) = rsum f xs + rsum f ys.
Proof. induction xs; simpl; [ring|]. rewrite IHxs; ring. Qed.
Lemma rsum_plus f g xs : rsum (fun x => f x + g x) xs = rsum f xs + rsum g xs.
Proof. induction xs; simpl; [ring|]. rewrite IHxs; ring. Qed.
Lemma rsum_minus f g xs : rsum (fun x => f x - g x) xs = rsum f xs - rsum g xs.
Proof. induction xs; simpl; [ring|]. rewrite IHxs; ring. Qed.
Lemma rsum_zero xs : rsum (fun _ : I => 0) xs = 0.
Proof. induction xs; simpl; auto. rewrite IHxs; ring. Qed.
Lemma rsum_map {J} (h : J -> I) f l : rsum f (map h l) = rsum (fun x => f (h x)) l.
Proof. induction l; simpl; auto. now rewrite IHl. Qed.
Lemma rsum_filter (p : I -> bool) f xs : rsum f (filter p xs) = rsum (fun x => if p x then f x else 0) xs.
Proof. induction xs; simpl; auto. destruct (p a); simpl; rewrite IHxs; ring. Qed.
Lemma rsum_perm f xs ys : Permutation xs ys -> rsum f xs = rsum f ys.
Proof. intros P; induction P; simpl; auto; try lra. Qed.
Lemma rsum_nonneg f xs : (forall x, In x xs -> 0 <= f x) -> 0 <= rsum f xs.
Proof.
  induction xs; simpl; intros H; [lra|]. pose proof (H a (or_introl eq_refl)).
  pose proof (IHxs (fun x Hx => H x (or_intror Hx))). lra.
Qed.
Lemma rsum_le f g xs : (forall x, In x xs -> f x <= g x) -> rsum f xs <= rsum g xs.
Proof.
  induction xs; simpl; intros H; [lra|]. pose proof (H a (or_introl eq_refl)).
  pose proof (IHxs (fun x Hx => H x (or_intror Hx))). lra.
Qed.
Lemma rsum_pos f xs : (forall x, In x xs -> 0 < f x) -> xs <> [] -> 0 < rsum f xs.
Proof.
  destruct xs as [|x xs]; [congruence|]. intros P _. simpl.
  pose proof (P x (or_introl eq_refl)).
  pose proof (rsum_nonneg f xs (fun y Hy => Rlt_le _ _ (P y (or_intror Hy)))). lra.
Qed.
Lemma rsum_pos_in f xs x : (forall y, In y xs -> 0 < f y) -> In x xs -> f x <= rsum f xs.
Proof.
  induction xs as [|y ys IH]; simpl; intros P [].
  - subst y. pose proof (rsum_nonneg f ys (fun z Hz => Rlt_le _ _ (P z (or_intror Hz)))). lra.
  - pose proof (P y (or_introl eq_refl)). pose proof (IH (fun z Hz => P z (or_intror Hz)) H). lra.
Qed.
End Rsum.
(* Folds of sums may be swapped. *)
Theorem rsum_swap {I J} (f : I -> J -> R) xs ys :
  rsum (fun i => rsum (f i) ys) xs = rsum (fun j => rsum (fun i => f i j) xs) ys.
Proof.
  induction xs as [|x xs IH]; simpl; [now rewrite rsum_zero|]. rewrite IH, <- rsum_plus. reflexivity.
Qed.
