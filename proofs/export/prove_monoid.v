(* `prove_monoid` closes `monoid_ok row`, or fails with "tang: not proved" and the law that failed. *)
From Coq Require Export Reals Lra ZArith List Bool.
From Tang Require Export grad.scalar export.xr export.term export.monoid export.solve.
Export ListNotations.
Open Scope R_scope.

(* Introduces one component, as one goal a case of its kind. *)
Ltac intro_component :=
  let x := fresh "x" in let K := fresh "K" in
  intros x K; destruct x; cbn [in_kind proper] in K; try contradiction; cbv [INT64_MAX] in K;
  try match goal with b : bool |- _ => destruct b end;
  (* a count is 0 or positive: with that known no later comparison is open *)
  try match type of K with 0 <= ?x =>
        let P := fresh "P" in destruct (Rle_lt_or_eq_dec 0 x K) as [P|P]; [|symmetry in P; subst x]; clear K end.
Ltac states r :=
  cbv [law_closed law_faithful law_unit law_injects law_right law_inside law_assoc law_comm];
  let ks := eval cbv in (components r) in change (components r) with ks;
  repeat (cbn [for_state for_proper]; intro_component); cbn [for_state for_proper]; cbv beta.
(* Values are named between stages: the goal stays a DAG, and a comparison is between names. *)
Ltac name_values := repeat match goal with
  | |- context [Fin ?E] =>
      lazymatch E with IZR _ => fail | _ => assert_fails (is_var E); let z := fresh "z" in remember E as z end
  end.
(* Innermost join first: its operands are constructors, so one evaluation and a few orders settle it. *)
Ltac join_innermost r :=
  match goal with
  | |- context [unit_of r] => evaluate (unit_of r)
  | |- context [inject r ?a] =>
      lazymatch a with context [join] => fail | context [inject] => fail | _ => evaluate (inject r a) end
  | |- context [join r ?a ?b] =>
      lazymatch constr:((a, b)) with context [join] => fail | context [inject] => fail | _ => evaluate (join r a b) end
  end; tidy; split_all; tidy; name_values.
Ltac law r := states r; repeat (join_innermost r); subst; cbn [state_ok in_kind]; cbv [INT64_MAX]; repeat split; close.
Ltac prove_monoid :=
  match goal with |- monoid_ok ?r => constructor;
    [ first [solve [law r] | fail 2 "tang: not proved: closed"]
    | first [solve [law r] | fail 2 "tang: not proved: faithful"]
    | first [solve [law r] | fail 2 "tang: not proved: unit"]
    | first [solve [law r] | fail 2 "tang: not proved: injects"]
    | first [solve [law r] | fail 2 "tang: not proved: right identity"]
    | first [solve [law r] | fail 2 "tang: not proved: inside"]
    | first [solve [law r] | fail 2 "tang: not proved: associative"]
    | first [solve [let H := fresh in intro H; discriminate H] | solve [intros _; law r]
            | fail 2 "tang: not proved: commutative"] ]
  end.
