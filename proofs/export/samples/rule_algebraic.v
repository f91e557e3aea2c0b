From Tang Require Import export.prove_rule.
Definition zero_mul : rule := Rule algebraic [real] [] (mul (lit 0 0) (v 0)) (lit 0 0).
Theorem zero_mul_ok : rule_ok zero_mul. Proof. prove_rule. Qed.
Definition ninf_add : rule := Rule algebraic [real] [] (add ninf (v 0)) ninf.
Theorem ninf_add_ok : rule_ok ninf_add. Proof. prove_rule. Qed.
Definition ninf_mul_positive : rule := Rule algebraic [real] [(less_ (lit 0 0) (v 0))] (mul ninf (v 0)) ninf.
Theorem ninf_mul_positive_ok : rule_ok ninf_mul_positive. Proof. prove_rule. Qed.
Definition ninf_mul_negative : rule := Rule algebraic [real] [(less_ (v 0) (lit 0 0))] (mul ninf (v 0)) inf.
Theorem ninf_mul_negative_ok : rule_ok ninf_mul_negative. Proof. prove_rule. Qed.
Definition exp2_ninf : rule := Rule exact [] [] (exp2_ ninf) (lit 0 0).
Theorem exp2_ninf_ok : rule_ok exp2_ninf. Proof. prove_rule. Qed.
Definition exp2_mul : rule := Rule algebraic [real; real] [] (mul (exp2_ (v 0)) (exp2_ (v 1))) (exp2_ (add (v 0) (v 1))).
Theorem exp2_mul_ok : rule_ok exp2_mul. Proof. prove_rule. Qed.
Definition recip_self : rule := Rule algebraic [real] [] (mul (v 0) (recip (v 0))) (lit 1 0).
Theorem recip_self_ok : rule_ok recip_self. Proof. prove_rule. Qed.
Definition log2_exp2 : rule := Rule algebraic [real] [] (log2_ (exp2_ (v 0))) (v 0).
Theorem log2_exp2_ok : rule_ok log2_exp2. Proof. prove_rule. Qed.
Definition mul_assoc : rule := Rule algebraic [real; real; real] [] (mul (v 0) (mul (v 1) (v 2))) (mul (mul (v 0) (v 1)) (v 2)).
Theorem mul_assoc_ok : rule_ok mul_assoc. Proof. prove_rule. Qed.
Definition distribute : rule := Rule algebraic [finite; real; real] [] (mul (v 0) (add (v 1) (v 2))) (add (mul (v 0) (v 1)) (mul (v 0) (v 2))).
Theorem distribute_ok : rule_ok distribute. Proof. prove_rule. Qed.
Definition ratio_zero : rule := Rule exact [real] [] (ratio_ (v 0) (lit 0 0)) (lit 0 0).
Theorem ratio_zero_ok : rule_ok ratio_zero. Proof. prove_rule. Qed.
Definition recip_recip : rule := Rule algebraic [real] [] (recip (recip (v 0))) (v 0).
Theorem recip_recip_ok : rule_ok recip_recip. Proof. prove_rule. Qed.
Definition sub_self : rule := Rule algebraic [real] [] (add (v 0) (neg (v 0))) (lit 0 0).
Theorem sub_self_ok : rule_ok sub_self. Proof. prove_rule. Qed.
