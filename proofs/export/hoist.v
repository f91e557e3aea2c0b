(* Hoisting a factor out of a sum over the extended reals: finite, or the fold not empty. A divisor needs `ratio`. *)
From Coq Require Import Reals Lra List.
From Tang Require Import export.xr.
Import ListNotations.
Open Scope R_scope.

Definition xsum {I} (g : I -> xr) (is : list I) : xr := fold_right (fun i s => xadd (g i) s) (Fin 0) is.
Definition number (a : xr) : Prop := match a with Tf _ => False | _ => True end.
Lemma xadd_number a b : number a -> number b -> number (xadd a b).
Proof. destruct a, b; simpl; auto. Qed.
Lemma xsum_number {I} (g : I -> xr) is : (forall i, In i is -> number (g i)) -> number (xsum g is).
Proof. induction is; simpl; auto. intros H. apply xadd_number; auto. Qed.
Lemma nan_l a : xadd Nan a = Nan. Proof. destruct a; reflexivity. Qed.
Lemma nan_r a : xadd a Nan = Nan. Proof. destruct a; reflexivity. Qed.

Ltac cases := repeat match goal with |- context [Rlt_dec ?a ?b] => destruct (Rlt_dec a b) end.
(* One step: the head joins a sum that has already been hoisted. *)
Lemma hoist_step f g s : number g -> number s ->
  xadd (xmul f g) (xmul f s) <> Nan -> xadd (xmul f g) (xmul f s) = xmul f (xadd g s).
Proof.
  intros G S. destruct f as [f| | | |b], g as [g| | | |], s as [s| | | |]; simpl in *; try contradiction;
    unfold sign_inf; cases; simpl; intros N; try (exfalso; apply N; reflexivity);
    try reflexivity; try lra; try (f_equal; ring); exfalso; lra.
Qed.
Theorem hoist_invariant {I} (f : xr) (g : I -> xr) (is : list I) :
  (forall i, In i is -> number (g i)) -> is <> [] \/ (exists x, f = Fin x) ->
  refines (xsum (fun i => xmul f (g i)) is) (xmul f (xsum g is)).
Proof.
  intros G H. unfold refines.
  assert (D : forall a, a = Nan \/ a <> Nan) by (intros []; auto; right; discriminate).
  destruct (D (xsum (fun i => xmul f (g i)) is)) as [E|N]; auto. right.
  destruct is as [|i is].
  - destruct H as [H|[x ->]]; [congruence|]. simpl. f_equal. ring.
  - clear H. revert i G N. induction is as [|j is IH]; intros i G N.
    + simpl in *. assert (Gi : number (g i)) by (apply G; auto).
      destruct f as [f| | | |b], (g i) as [x| | | |]; simpl in *; try contradiction; unfold sign_inf in *;
        try (revert N; cases; simpl; intros N; try reflexivity; try congruence; try lra);
        try (f_equal; ring); try (exfalso; apply N; reflexivity).
      all: rewrite ?Rplus_0_r in *; try (exfalso; lra); try contradiction.
    + change (xsum (fun i => xmul f (g i)) (i :: j :: is)) with (xadd (xmul f (g i)) (xsum (fun i => xmul f (g i)) (j :: is))) in *.
      change (xsum g (i :: j :: is)) with (xadd (g i) (xsum g (j :: is))).
      assert (T : xsum (fun i => xmul f (g i)) (j :: is) = xmul f (xsum g (j :: is))).
      { apply IH; [intros; apply G; right; auto|]. intros E. rewrite E, nan_r in N. congruence. }
      rewrite T in *. apply hoist_step; auto; [apply G; left; auto|].
      apply xsum_number. intros; apply G; right; auto.
Qed.

(* Without one of the two conditions it is false: an infinite factor and an empty fold. *)
Theorem hoist_needs_a_condition : xsum (fun i : unit => xmul Pinf (Fin 1)) [] <> xmul Pinf (xsum (fun _ : unit => Fin 1) []).
Proof. simpl. unfold sign_inf. cases; try lra. discriminate. Qed.
(* `normalise` with ratio needs a live term above -inf: with all terms 0 ratio gives 0, the exponent -inf + inf. *)
Theorem normalise_needs_a_term :
  xratio (xexp2 Minf) (xexp2 Minf) = Fin 0 /\ xexp2 (xadd Minf (xneg (xlog2 (xexp2 Minf)))) = Nan.
Proof.
  simpl. destruct (Req_EM_T 0 0); [|congruence]. destruct (Rlt_dec 0 0); [lra|]. split; reflexivity.
Qed.
