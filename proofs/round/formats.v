(* The tree bound for binary32, bfloat16 and binary16: rounded additions have no underflow error. *)
From Coq Require Import Reals Lra ZArith Lia.
From Flocq Require Import Core Plus_error Relative.
From Tang Require Import round.tree.
Open Scope R_scope.

Section Format.
Context (emin prec : Z).
Hypothesis prec_pos : (0 < prec)%Z.
Local Instance prec_gt_0 : Prec_gt_0 prec := prec_pos.
Definition F (x : R) : Prop := generic_format radix2 (FLT_exp emin prec) x.
Definition rnd (x : R) : R := round radix2 (FLT_exp emin prec) ZnearestE x.
Definition unit : R := bpow radix2 (- prec).
Lemma unit_pos : 0 <= unit.
Proof. apply bpow_ge_0. Qed.
Lemma rnd_in x : F (rnd x).
Proof. apply generic_format_round; typeclasses eauto. Qed.
Lemma rnd_sum x y : F x -> F y -> Rabs (rnd (x + y) - (x + y)) <= unit * Rabs (x + y).
Proof.
  intros X Y. destruct (FLT_plus_error_N_ex radix2 emin prec (fun n => negb (Z.even n)) x y X Y) as [eps [B E]].
  replace (rnd (x + y)) with ((x + y) * (1 + eps)) by (symmetry; exact E).
  replace ((x + y) * (1 + eps) - (x + y)) with (eps * (x + y)) by ring.
  rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos|].
  eapply Rle_trans; [exact B|]. unfold unit, u_ro.
  replace (/ 2 * bpow radix2 (- prec + 1)) with (bpow radix2 (- prec)) by (rewrite bpow_plus; simpl (bpow radix2 1); lra).
  pose proof (bpow_gt_0 radix2 (- prec)).
  apply Rmult_le_reg_r with (1 + bpow radix2 (- prec)); [lra|]. field_simplify; nra.
Qed.
Theorem format_sum_error t : leaves_in F t ->
  Rabs (rounded rnd t - exact t) <= ((1 + unit) ^ depth t - 1) * weight t.
Proof. apply (tree_sum_error F rnd unit unit_pos rnd_in rnd_sum). Qed.
End Format.

(* Exponents are unbounded above: the bound holds for sums that do not overflow. *)
Definition binary32_error := format_sum_error (-149) 24 eq_refl.
Definition bfloat16_error := format_sum_error (-133) 8 eq_refl.
Definition binary16_error := format_sum_error (-24) 11 eq_refl.
Theorem binary32_sum_error t : leaves_in (F (-149) 24) t ->
  Rabs (rounded (rnd (-149) 24) t - exact t) <= ((1 + / 16777216) ^ depth t - 1) * weight t.
Proof. intros L. pose proof (binary32_error t L) as E. unfold unit in E. simpl in E. exact E. Qed.
Theorem bfloat16_sum_error t : leaves_in (F (-133) 8) t ->
  Rabs (rounded (rnd (-133) 8) t - exact t) <= ((1 + / 256) ^ depth t - 1) * weight t.
Proof. intros L. pose proof (bfloat16_error t L) as E. unfold unit in E. simpl in E. exact E. Qed.
Theorem binary16_sum_error t : leaves_in (F (-24) 11) t ->
  Rabs (rounded (rnd (-24) 11) t - exact t) <= ((1 + / 2048) ^ depth t - 1) * weight t.
Proof. intros L. pose proof (binary16_error t L) as E. unfold unit in E. simpl in E. exact E. Qed.
