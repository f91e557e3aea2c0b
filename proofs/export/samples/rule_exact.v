From Tang Require Import export.prove_rule.
Definition add_comm : rule := Rule exact [real; real] [] (add (v 0) (v 1)) (add (v 1) (v 0)).
Theorem add_comm_ok : rule_ok add_comm. Proof. prove_rule. Qed.
Definition mul_comm : rule := Rule exact [real; real] [] (mul (v 0) (v 1)) (mul (v 1) (v 0)).
Theorem mul_comm_ok : rule_ok mul_comm. Proof. prove_rule. Qed.
Definition mul_one : rule := Rule exact [real] [] (mul (lit 1 0) (v 0)) (v 0).
Theorem mul_one_ok : rule_ok mul_one. Proof. prove_rule. Qed.
Definition add_zero : rule := Rule exact [real] [] (add (lit 0 0) (v 0)) (v 0).
Theorem add_zero_ok : rule_ok add_zero. Proof. prove_rule. Qed.
Definition neg_neg : rule := Rule exact [real] [] (neg (neg (v 0))) (v 0).
Theorem neg_neg_ok : rule_ok neg_neg. Proof. prove_rule. Qed.
Definition max_identity : rule := Rule exact [real] [] (max_ ninf (v 0)) (v 0).
Theorem max_identity_ok : rule_ok max_identity. Proof. prove_rule. Qed.
Definition min_identity : rule := Rule exact [real] [] (min_ inf (v 0)) (v 0).
Theorem min_identity_ok : rule_ok min_identity. Proof. prove_rule. Qed.
Definition max_idem : rule := Rule exact [real] [] (max_ (v 0) (v 0)) (v 0).
Theorem max_idem_ok : rule_ok max_idem. Proof. prove_rule. Qed.
Definition less_irrefl : rule := Rule exact [real] [] (less_ (v 0) (v 0)) no.
Theorem less_irrefl_ok : rule_ok less_irrefl. Proof. prove_rule. Qed.
Definition not_not : rule := Rule exact [boolean] [] (not_ (not_ (v 0))) (v 0).
Theorem not_not_ok : rule_ok not_not. Proof. prove_rule. Qed.
Definition and_true : rule := Rule exact [boolean] [] (and_ yes (v 0)) (v 0).
Theorem and_true_ok : rule_ok and_true. Proof. prove_rule. Qed.
Definition or_false : rule := Rule exact [boolean] [] (or_ no (v 0)) (v 0).
Theorem or_false_ok : rule_ok or_false. Proof. prove_rule. Qed.
Definition select_not : rule := Rule exact [boolean; partial; partial] [] (select (not_ (v 0)) (v 1) (v 2)) (select (v 0) (v 2) (v 1)).
Theorem select_not_ok : rule_ok select_not. Proof. prove_rule. Qed.
Definition select_same : rule := Rule exact [boolean; partial] [] (select (v 0) (v 1) (v 1)) (v 1).
Theorem select_same_ok : rule_ok select_same. Proof. prove_rule. Qed.
Definition only_true : rule := Rule exact [partial] [] (only_ yes (v 0)) (v 0).
Theorem only_true_ok : rule_ok only_true. Proof. prove_rule. Qed.
Definition only_only : rule := Rule exact [boolean; boolean; partial] [] (only_ (v 0) (only_ (v 1) (v 2))) (only_ (and_ (v 0) (v 1)) (v 2)).
Theorem only_only_ok : rule_ok only_only. Proof. prove_rule. Qed.
Definition or_else_only : rule := Rule exact [boolean; real; real] [] (or_else_ (only_ (v 0) (v 1)) (v 2)) (select (v 0) (v 1) (v 2)).
Theorem or_else_only_ok : rule_ok or_else_only. Proof. prove_rule. Qed.
Definition index_equal_self : rule := Rule exact [index] [] (equal_ (v 0) (v 0)) yes.
Theorem index_equal_self_ok : rule_ok index_equal_self. Proof. prove_rule. Qed.
Definition fold_half : rule := Rule exact [] [] (add (lit 1 (-1)) (lit 1 (-1))) (lit 1 0).
Theorem fold_half_ok : rule_ok fold_half. Proof. prove_rule. Qed.
