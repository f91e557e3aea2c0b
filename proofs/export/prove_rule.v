(* Scalar simplification rules as printed terms: exact (equal everywhere) or algebraic (equal unless the left is NaN). *)
From Coq Require Export Reals Lra ZArith List Bool.
From Tang Require Export grad.scalar export.xr export.term export.solve.
Export ListNotations.
Open Scope R_scope.

Inductive law := exact | algebraic.
Record rule := Rule {
  strength : law;
  vars : list kind;              (* what v 0, v 1, .. range over *)
  premises : list term;          (* boolean terms known to hold: what the rule's side condition establishes *)
  left_side : term;
  right_side : term
}.
Definition value (env : list (option xr)) (t : term) : option xr :=
  eval (fun n => match nth_error env n with Some x => x | None => None end) (fun _ => None) (fun _ _ => None) t.
Definition agrees (l : law) (a b : option xr) : Prop :=
  match l with exact => a = b | algebraic => a = Some Nan \/ a = b end.
Fixpoint for_vars (ks : list kind) (P : list (option xr) -> Prop) : Prop :=
  match ks with [] => P [] | k :: ks => forall x, in_kind k x -> for_vars ks (fun env => P (x :: env)) end.
Fixpoint given (ps : list (option xr)) (Q : Prop) : Prop :=
  match ps with [] => Q | p :: ps => p = Some (Tf true) -> given ps Q end.
Definition rule_ok (r : rule) : Prop :=
  for_vars (vars r) (fun env => given (map (value env) (premises r))
    (agrees (strength r) (value env (left_side r)) (value env (right_side r)))).

(* An exact rule may be used anywhere, also below a comparison; it is algebraic as well. *)
Theorem exact_is_algebraic a b : agrees exact a b -> agrees algebraic a b.
Proof. simpl; auto. Qed.

Ltac intro_var :=
  let x := fresh "x" in let K := fresh "K" in
  intros x K; destruct x as [[?x| | | |?b]|]; cbn [in_kind] in K; try contradiction; cbv [INT64_MAX] in K;
  try match goal with b : bool |- _ => destruct b end.
(* Branches where a premise fails or the left side is NaN close at once. *)
Ltac hyps := repeat match goal with
  | H : Some _ = Some _ |- _ => injection H as H
  | H : Tf _ = Tf _ |- _ => try discriminate H; clear H
  | H : Some _ = None |- _ => discriminate H | H : None = Some _ |- _ => discriminate H
  end.
Ltac split_premise :=
  match goal with
  | H : context [Req_EM_T ?a ?b] |- _ => innermost a b; destruct (Req_EM_T a b); cbv iota in H; try discriminate H
  | H : context [Rlt_dec ?a ?b] |- _ => innermost a b; destruct (Rlt_dec a b); cbv iota in H; try discriminate H
  end.
Ltac reduce_all :=
  match goal with |- ?g => let u := value_of g in change u end.
Ltac logs := repeat first
  [ rewrite log2_exp2 | rewrite exp2_log2 by lra | rewrite log2_1
  | rewrite log2_mult by (first [assumption | lra | apply exp2_pos]) ].
Lemma exp2_double a : exp2 (2 * a) = exp2 a * exp2 a.
Proof. replace (2 * a) with (a + a) by ring. apply exp2_plus. Qed.
Lemma Int_part_whole n : Int_part (IZR n) = n.
Proof.
  unfold Int_part. rewrite <- (tech_up (IZR n) (n + 1)); [ring| |]; rewrite plus_IZR; lra.
Qed.
(* What the common tactics leave: powers written out, whole numbers, quotients of literals. *)
Ltac numbers := rewrite ?exp2_double, ?Int_part_whole; numerals; first [ reflexivity | lra | solve [field; nonzero] | solve [positives; field; nonzero] ].
Ltac peel := repeat match goal with |- Some _ = Some _ => f_equal | |- Fin _ = Fin _ => f_equal end.
Ltac close_rule := first
  [ reflexivity
  | left; reflexivity
  | right; first [ reflexivity | solve [tidy; peel; (real_equal || (logs; real_equal) || (f_equal; real_equal) || numbers)] ]
  | solve [tidy; peel; (real_equal || (logs; real_equal) || (f_equal; real_equal) || numbers)]
  | exfalso; first [ lra
      | match goal with H : ~ 0 < / ?x |- _ => apply H, Rinv_0_lt_compat; lra end
      | match goal with H : ?x <> ?y |- _ => apply H; lra end | solve [zeros; lra] | nra ] ].
Ltac prove_rule := first
  [ solve [ match goal with |- rule_ok ?r => unfold rule_ok, r end; cbn [vars strength premises left_side right_side];
      repeat (cbn [for_vars]; intro_var); cbn [for_vars given map]; cbv beta; reduce_all;
      intros; hyps; repeat (split_premise; hyps); split_all; close_rule ]
  | fail 1 "tang: not proved: rule" ].
