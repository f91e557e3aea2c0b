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

Lemma weighted j : In j js ->
  rsum (fun k => (if eq_dec k j then 1 else 0) * exp (s k) * dP k) js = exp (s j) * dP j.
Proof.
  intros H. induction once as [|k ks N U IH] using NoDup_ind; [destruct H|].
  simpl. destruct H as [->|H].
  - destruct (eq_dec j j); [|congruence].
    rewrite (rsum_ext_in _ (fun _ => 0)), rsum_zero; [ring|].
    intros x X. destruct (eq_dec x j); [subst; contradiction|ring].
  - rewrite IH by auto. destruct (eq_dec k j); [subst; contradiction|ring].
Qed.
End Flash.
