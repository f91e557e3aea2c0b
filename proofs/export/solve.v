(* The tactics that decide printed terms: split into kinds and orders, evaluate, then compare over the reals. *)
From Coq Require Import Reals Lra Lia ZArith List Bool.
From Tang Require Import grad.scalar export.xr export.term.
Open Scope R_scope.

Lemma exp2_plus a b : exp2 (a + b) = exp2 a * exp2 b.
Proof. unfold exp2. now rewrite Rmult_plus_distr_r, exp_plus. Qed.
Lemma exp2_pos a : 0 < exp2 a.
Proof. apply exp_pos. Qed.
Lemma exp2_neg a : exp2 (- a) = / exp2 a.
Proof. unfold exp2. rewrite Ropp_mult_distr_l_reverse. apply exp_Ropp. Qed.
Lemma exp2_minus a b : exp2 (a - b) = exp2 a * / exp2 b.
Proof. unfold Rminus. now rewrite exp2_plus, exp2_neg. Qed.
Lemma exp2_0 : exp2 0 = 1.
Proof. unfold exp2. rewrite Rmult_0_l. apply exp_0. Qed.
Lemma exp2_log2 a : 0 < a -> exp2 (log2 a) = a.
Proof. intros A. unfold exp2, log2. pose proof ln2_pos. replace (ln a / ln 2 * ln 2) with (ln a) by (field; lra). now apply exp_ln. Qed.
Lemma log2_exp2 a : log2 (exp2 a) = a.
Proof. unfold exp2, log2. rewrite ln_exp. pose proof ln2_pos. field. lra. Qed.
Lemma log2_mult a b : 0 < a -> 0 < b -> log2 (a * b) = log2 a + log2 b.
Proof. intros A B. unfold log2. rewrite ln_mult by auto. pose proof ln2_pos. field. lra. Qed.
Lemma log2_1 : log2 1 = 0.
Proof. unfold log2. rewrite ln_1. pose proof ln2_pos. field. lra. Qed.
Lemma power2_pos e : 0 < power2 e.
Proof.
  unfold power2. destruct (Z.ltb_spec e 0).
  - apply Rinv_0_lt_compat, IZR_lt. apply Z.pow_pos_nonneg; lia.
  - apply IZR_lt. apply Z.pow_pos_nonneg; lia.
Qed.
Lemma mult_by_0 a : a * 0 = 0. Proof. ring. Qed.
Lemma by_0 a : 0 * a = 0. Proof. ring. Qed.

(* Fresh facts about the atoms in sight: exponentials and powers of two are positive. *)
Ltac positives :=
  repeat match goal with
  | |- context [exp2 ?a] => let t := fresh "t" in let H := fresh "P" in
      pose proof (exp2_pos a) as H; set (t := exp2 a) in *; clearbody t
  | _ : context [exp2 ?a] |- _ => let t := fresh "t" in let H := fresh "P" in
      pose proof (exp2_pos a) as H; set (t := exp2 a) in *; clearbody t
  end;
  repeat match goal with
  | |- context [power2 ?a] => let t := fresh "t" in let H := fresh "P" in
      pose proof (power2_pos a) as H; set (t := power2 a) in *; clearbody t
  | _ : context [power2 ?a] |- _ => let t := fresh "t" in let H := fresh "P" in
      pose proof (power2_pos a) as H; set (t := power2 a) in *; clearbody t
  end.
(* exp2 of a linear form becomes a product of atoms. *)
Ltac expand :=
  repeat first
  [ rewrite exp2_plus | rewrite exp2_minus | rewrite exp2_neg | rewrite exp2_0
  | rewrite Rmult_0_l | rewrite Rmult_0_r | rewrite Rmult_1_l | rewrite Rmult_1_r
  | rewrite Rplus_0_l | rewrite Rplus_0_r | rewrite Ropp_0
  | match goal with
    | |- context [exp2 ((?a + ?b) * ?c)] => rewrite (Rmult_plus_distr_r a b c)
    | |- context [exp2 (?c * (?a + ?b))] => rewrite (Rmult_plus_distr_l c a b)
    | |- context [exp2 ((?a - ?b) * ?c)] => replace ((a - b) * c) with (a * c - b * c) by ring
    | |- context [exp2 (?c * (?a - ?b))] => replace (c * (a - b)) with (c * a - c * b) by ring
    | |- context [exp2 (- ?a * ?c)] => rewrite (Ropp_mult_distr_l_reverse a c)
    | |- context [exp2 (?c * - ?a)] => rewrite (Ropp_mult_distr_r_reverse c a)
    | |- context [exp2 (IZR (Zneg ?p) * ?a)] => replace (IZR (Zneg p) * a) with (- (IZR (Zpos p) * a)) by ring
    end ].
Ltac zeros :=
  repeat match goal with
  | H : ~ 0 < ?x, K : ~ ?x < 0 |- _ => is_var x; assert (x = 0) by lra; subst x; clear H K
  | H : ~ ?x < ?y, K : ~ ?y < ?x |- _ => is_var x; is_var y; assert (x = y) by lra; subst x; clear H K
  | H : ~ ?x < ?y, K : ~ ?y < ?z, L : ~ ?z < ?x |- _ =>
      is_var x; is_var y; is_var z; assert (x = y) by lra; assert (y = z) by lra; subst x; subst y
  | H : ?x + ?y = 0 |- _ => assert (x = 0) by lra; assert (y = 0) by lra; clear H
  | H : ?x = 0 |- _ => is_var x; subst x
  | H : ?x = ?y |- _ => is_var x; is_var y; subst x
  end.
Ltac nonzero := repeat split; try assumption; try lra; try (apply Rgt_not_eq; repeat apply Rmult_lt_0_compat; lra).
(* Ring first is costly on quotients, and field is needless without them. *)
Ltac algebra := lazymatch goal with |- context [Rinv _] => solve [field; nonzero] | _ => solve [ring] end.
Ltac numerals := repeat match goal with |- context [power2 ?e] =>
  let b := eval vm_compute in (Z.ltb e 0) in
  lazymatch b with
  | true => let n := eval vm_compute in (2 ^ (- e))%Z in change (power2 e) with (/ IZR n)
  | false => let n := eval vm_compute in (2 ^ e)%Z in change (power2 e) with (IZR n)
  end end.
Ltac real_equal :=
  first
  [ reflexivity
  | lazymatch goal with
    | |- context [exp2 _] => first [solve [expand; positives; algebra] | solve [zeros; expand; positives; algebra]]
    | _ => first [algebra | lra | solve [positives; algebra] | solve [zeros; first [algebra | lra]]]
    end
  | solve [numerals; (lra || field)] ].
Ltac close :=
  try reflexivity;
  repeat match goal with |- @cons _ _ _ = @cons _ _ _ => f_equal end;
  repeat match goal with |- Some _ = Some _ => f_equal end;
  repeat match goal with |- Fin _ = Fin _ => f_equal end;
  try real_equal; try (exfalso; lra); try lra.
(* Between stages: what an identity element leaves behind is removed, so that terms stay small. *)
Ltac tidy := repeat first
  [ rewrite Rplus_opp_r | rewrite Rmult_0_l | rewrite Rmult_0_r | rewrite Rmult_1_l | rewrite Rmult_1_r
  | rewrite Rplus_0_l | rewrite Rplus_0_r | rewrite exp2_0 | rewrite Ropp_0 | rewrite Rinv_r by lra ].

(* Innermost comparison first, so that every hypothesis is about atoms; zero tests first, they close branches. *)
Ltac innermost a b :=
  lazymatch constr:(a + b) with context [Rlt_dec] => fail | context [Req_EM_T] => fail | _ => idtac end.
Ltac split_dec :=
  match goal with
  | |- context [Req_EM_T ?a ?b] => innermost a b;
      let E := fresh "E" in destruct (Req_EM_T a b) as [E|E]; [try (exfalso; lra) | try (exfalso; apply E; lra)]
  | |- context [Rlt_dec ?a ?b] => innermost a b; destruct (Rlt_dec a b);
      try (exfalso; lra);
      try (lazymatch constr:(a + b) with context [Rmult] => exfalso; nra end)
  end.

(* Evaluation of closed terms over constructors; the operations of R, exp2 and 2^e stay opaque. *)
Ltac value_of t :=
  eval cbv -[Rplus Rmult Ropp Rinv Rminus Rdiv Rlt_dec Req_EM_T exp2 log2 sqrt sin atan2 power2 IZR Int_part] in t.
Ltac evaluate t := let u := value_of t in change t with u.
(* Signs that comparisons may ask for. *)
Ltac know := repeat match goal with
  | |- context [exp2 ?a] => lazymatch goal with _ : 0 < exp2 a |- _ => fail | _ => pose proof (exp2_pos a) end
  | |- context [power2 ?e] => lazymatch goal with _ : 0 < power2 e |- _ => fail | _ => pose proof (power2_pos e) end
  end.
Ltac split_all := know; repeat (split_dec; cbv iota).
