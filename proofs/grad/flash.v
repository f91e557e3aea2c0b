(* Flash backward: dS_ij = P_ij (dP_ij - D_i), D_i = sum_c dO_ic O_ic, as a derivative of the loss. *)
From Coq Require Import Reals Lra List.
From Coquelicot Require Import Coquelicot.
From Tang Require Import sums.rsum grad.calculus.
Import ListNotations.
Open Scope R_scope.

Section Flash.
Context {J C : Type} (eq_dec : forall a b : J, {a = b} + {a <> b}) (js : list J) (cs : list C).
Hypothesis once : NoDup js.
Context (s : J -> R) (v : J -> C -> R) (dO : C -> R).
Definition put (f : J -> R) (j : J) (x : R) (k : J) : R := if eq_dec k j then x else f k.
Definition total (s : J -> R) : R := rsum (fun j => exp (s j)) js.
Definition P (s : J -> R) (j : J) : R := exp (s j) / total s.
Definition O (s : J -> R) (c : C) : R := rsum (fun j => P s j * v j c) js.
(* The loss enters through its cotangent dO: d loss = sum_c dO_c dO_c. *)
Definition loss (s : J -> R) : R := rsum (fun c => dO c * O s c) cs.
Definition dP (j : J) : R := rsum (fun c => dO c * v j c) cs.
Definition D : R := rsum (fun c => dO c * O s c) cs.

Lemma loss_as_ratio z : loss z = rsum (fun j => exp (z j) * dP j) js / total z.
Proof.
  unfold loss, O, dP, Rdiv. rewrite <- rsum_scale.
  rewrite (rsum_ext _ (fun c => rsum (fun j => dO c * (P z j * v j c)) js)) by (intro; symmetry; apply rsum_scale_l).
  rewrite rsum_swap. apply rsum_ext. intro j. rewrite <- rsum_scale_l, <- rsum_scale. apply rsum_ext.
  intro c. unfold P, Rdiv. ring.
Qed.
Lemma pick_sum (f : J -> R) j ks : NoDup ks -> In j ks -> rsum (fun k => if eq_dec k j then f k else 0) ks = f j.
Proof.
  induction 1 as [|k ks N U IH]; intros H; [destruct H|]. simpl. destruct H as [->|H].
  - destruct (eq_dec j j); [|congruence].
    rewrite (rsum_ext_in _ (fun _ => 0)), rsum_zero; [ring|].
    intros x X. destruct (eq_dec x j); [subst; contradiction|auto].
  - rewrite IH by auto. destruct (eq_dec k j); [subst; contradiction|ring].
Qed.
Lemma exp_put j k : is_derive (fun x => exp (put s j x k)) (s j) (if eq_dec k j then exp (s k) else 0).
Proof.
  unfold put. destruct (eq_dec k j) as [->|N]; [apply is_derive_exp|].
  apply (is_derive_const (V := R_NormedModule)).
Qed.
Lemma put_same j k : put s j (s j) k = s k.
Proof. unfold put. destruct (eq_dec k j); congruence. Qed.
Theorem flash_backward j : In j js -> is_derive (fun x => loss (put s j x)) (s j) (P s j * (dP j - D)).
Proof.
  intros H.
  apply (is_derive_ext (fun x => rsum (fun k => exp (put s j x k) * dP k) js / total (put s j x))).
  { intro x. symmetry. apply loss_as_ratio. }
  assert (T : 0 < total s).
  { apply rsum_pos; [intros; apply exp_pos|]. intros E. now rewrite E in H. }
  assert (T0 : total (put s j (s j)) = total s) by (apply rsum_ext; intro; now rewrite put_same).
  assert (W0 : rsum (fun k => exp (put s j (s j) k) * dP k) js = rsum (fun k => exp (s k) * dP k) js)
    by (apply rsum_ext; intro; now rewrite put_same).
  eapply is_derive_value.
  - apply (is_derive_div (fun x => rsum (fun k => exp (put s j x k) * dP k) js) (fun x => total (put s j x)) (s j)
      (exp (s j) * dP j) (exp (s j))).
    + eapply is_derive_value.
      * apply is_derive_rsum. intros k _. apply is_derive_times; [apply exp_put|].
        apply (is_derive_const (V := R_NormedModule)).
      * rewrite <- (pick_sum (fun k => exp (s k) * dP k) j js once H). apply rsum_ext.
        intro k. unfold zero; simpl. destruct (eq_dec k j); ring.
    + eapply is_derive_value; [apply is_derive_rsum; intros k _; apply exp_put|].
      apply (pick_sum (fun k => exp (s k)) j js once H).
    + rewrite T0. lra.
  - rewrite T0, W0. unfold P, D. fold (loss s). rewrite loss_as_ratio.
    match goal with |- @eq _ ?a ?b => change (@eq R a b) end. field. lra.
Qed.
End Flash.
