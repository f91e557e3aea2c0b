(* Rows of the max as views: substitution, equality and independence of fold axes, decided on affine forms. *)
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From Tang Require Import grad.degree.
Import ListNotations.
Open Scope Z_scope.

Definition coef (f : form) (a : nat) : Z :=
  fold_right (fun t s => (if Nat.eqb (fst t) a then snd t else 0) + s) 0 (coeffs f).
Definition axes_of (f : form) : list nat := map fst (coeffs f).
Definition form_eqb (f g : form) : bool :=
  Z.eqb (offset f) (offset g) && forallb (fun a => Z.eqb (coef f a) (coef g a)) (axes_of f ++ axes_of g).
Fixpoint view_eqb (v w : view) : bool :=
  match v, w with [], [] => true | f :: v, g :: w => form_eqb f g && view_eqb v w | _, _ => false end.
(* No axis from P on has a coefficient. *)
Definition form_below (P : nat) (f : form) : bool :=
  forallb (fun a => (a <? P)%nat || Z.eqb (coef f a) 0) (axes_of f).
Definition view_below (P : nat) (v : view) : bool := forallb (form_below P) v.

Fixpoint total (c : nat -> Z) (p : point) (n : nat) : Z :=
  match n with O => 0 | S n => total c p n + c n * p n end.
Lemma total_single a k p n : total (fun b => if Nat.eqb a b then k else 0) p n = if (a <? n)%nat then k * p a else 0.
Proof.
  induction n as [|n IH]; cbn [total]; [destruct (Nat.ltb_spec a 0); [lia|reflexivity]|]. rewrite IH.
  destruct (Nat.ltb_spec a n), (Nat.ltb_spec a (S n)), (Nat.eqb_spec a n); try lia; subst; lia.
Qed.
Lemma total_add c d p n : total (fun a => c a + d a) p n = total c p n + total d p n.
Proof. induction n as [|n IH]; cbn [total]; [lia|]. rewrite IH. lia. Qed.
Lemma total_ext c d p n : (forall a, (a < n)%nat -> c a = d a) -> total c p n = total d p n.
Proof. induction n as [|n IH]; cbn [total]; intros H; auto. rewrite IH by (intros; apply H; lia). rewrite H; auto. Qed.
Lemma total_zero p n : total (fun _ => 0) p n = 0.
Proof. induction n as [|n IH]; cbn [total]; lia. Qed.
Lemma at_form_total p f n : (forall a, In a (axes_of f) -> (a < n)%nat) -> at_form p f = total (coef f) p n + offset f.
Proof.
  destruct f as [cs o]. unfold at_form, coef, axes_of. cbn [coeffs offset].
  induction cs as [|[a k] cs IH]; cbn [fold_right map fst snd]; intros H.
  - rewrite total_zero. lia.
  - rewrite IH by (intros b B; apply H; right; auto).
    rewrite (total_add (fun b => if Nat.eqb a b then k else 0)), total_single.
    assert (A : (a < n)%nat) by (apply H; left; auto). destruct (Nat.ltb_spec a n); lia.
Qed.
Definition bound (l : list nat) : nat := S (list_max l).
Lemma below_bound l a : In a l -> (a < bound l)%nat.
Proof.
  intros H. unfold bound. assert (L : (list_max l <= list_max l)%nat) by auto.
  apply list_max_le in L. rewrite Forall_forall in L. specialize (L a H). lia.
Qed.
Lemma coef_absent f a : ~ In a (axes_of f) -> coef f a = 0.
Proof.
  destruct f as [cs o]. unfold coef, axes_of. cbn [coeffs].
  induction cs as [|[b k] cs IH]; cbn [fold_right map fst snd]; intros H; auto.
  rewrite IH by (intro; apply H; right; auto). destruct (Nat.eqb_spec b a); [exfalso; apply H; left; auto|lia].
Qed.
Lemma form_eqb_sound f g p : form_eqb f g = true -> at_form p f = at_form p g.
Proof.
  intros H. apply andb_prop in H as [O H]. apply Z.eqb_eq in O. rewrite forallb_forall in H.
  set (n := bound (axes_of f ++ axes_of g)).
  rewrite (at_form_total p f n), (at_form_total p g n); try (intros; apply below_bound, in_or_app; auto).
  rewrite O. f_equal. apply total_ext. intros a _.
  destruct (in_dec Nat.eq_dec a (axes_of f ++ axes_of g)) as [I|I]; [now apply Z.eqb_eq, H|].
  rewrite !coef_absent; auto; intro K; apply I, in_or_app; auto.
Qed.
Lemma view_eqb_sound v w p : view_eqb v w = true -> at_view p v = at_view p w.
Proof.
  revert w. induction v as [|f v IH]; intros [|g w] H; simpl in *; try discriminate; auto.
  apply andb_prop in H as [F H]. now rewrite (form_eqb_sound f g p F), (IH w H).
Qed.
Lemma form_below_sound P f p q : form_below P f = true -> (forall a, (a < P)%nat -> p a = q a) -> at_form p f = at_form q f.
Proof.
  intros H E. unfold form_below in H. rewrite forallb_forall in H. set (n := bound (axes_of f)).
  rewrite (at_form_total p f n), (at_form_total q f n) by (intros; apply below_bound; auto). f_equal.
  generalize n as m. induction m as [|m IH]; cbn [total]; auto. rewrite IH. f_equal.
  destruct (in_dec Nat.eq_dec m (axes_of f)) as [I|I].
  - specialize (H m I). apply orb_prop in H as [H|H].
    + apply Nat.ltb_lt in H. now rewrite E.
    + apply Z.eqb_eq in H. rewrite H. lia.
  - rewrite coef_absent by auto. lia.
Qed.
Lemma view_below_sound P v p q : view_below P v = true -> (forall a, (a < P)%nat -> p a = q a) -> at_view p v = at_view q v.
Proof.
  intros H E. induction v as [|f v IH]; simpl in *; auto. apply andb_prop in H as [F H].
  now rewrite (form_below_sound P f p q F E), IH.
Qed.

(* The row of a read: the node's row with its axes replaced by the read's forms. *)
Definition scale_form (k : Z) (f : form) : form := Form (map (fun t => (fst t, k * snd t)) (coeffs f)) (k * offset f).
Definition add_form (f g : form) : form := Form (coeffs f ++ coeffs g) (offset f + offset g).
Definition subst_form (w : view) (f : form) : form :=
  fold_right (fun t s => add_form (scale_form (snd t) (nth (fst t) w (Form [] 0))) s) (Form [] (offset f)) (coeffs f).
Definition subst_view (w : view) (v : view) : view := map (subst_form w) v.
Lemma at_form_add p f g : at_form p (add_form f g) = at_form p f + at_form p g.
Proof.
  destruct f as [c o], g as [d q]. unfold at_form, add_form; cbn [coeffs offset].
  induction c as [|[a k] c IH]; cbn [app fold_right fst snd].
  - induction d as [|[b k] d IH]; cbn [fold_right fst snd]; [lia|]. rewrite IH. lia.
  - rewrite IH. lia.
Qed.
Lemma at_form_scale p k f : at_form p (scale_form k f) = k * at_form p f.
Proof.
  destruct f as [c o]. unfold at_form, scale_form; cbn [coeffs offset].
  induction c as [|[a j] c IH]; cbn [map fold_right fst snd]; [lia|]. rewrite IH. lia.
Qed.
Lemma at_form_subst p w f : at_form p (subst_form w f) = at_form (of_coords (at_view p w)) f.
Proof.
  destruct f as [c o]. unfold subst_form; cbn [coeffs offset]. unfold at_form at 2; cbn [coeffs offset].
  induction c as [|[a k] c IH]; cbn [fold_right fst snd]; [reflexivity|].
  rewrite at_form_add, at_form_scale, IH. f_equal. f_equal.
  unfold of_coords, at_view. symmetry. exact (map_nth (at_form p) w (Form [] 0) a).
Qed.
Lemma at_view_subst p w v : at_view p (subst_view w v) = at_view (of_coords (at_view p w)) v.
Proof.
  unfold at_view at 1 2, subst_view. rewrite map_map. apply map_ext. intro f. apply at_form_subst.
Qed.
