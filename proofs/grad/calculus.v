(* Derivatives of finite sums, and of a loss through one tensor entry. *)
From Coq Require Import Reals Lra List.
From Coquelicot Require Import Coquelicot.
From Tang Require Import sums.rsum.
Import ListNotations.
Open Scope R_scope.

Lemma is_derive_rsum {I} (f : I -> R -> R) (d : I -> R) x xs :
  (forall i, In i xs -> is_derive (f i) x (d i)) ->
  is_derive (fun t => rsum (fun i => f i t) xs) x (rsum d xs).
Proof.
  induction xs as [|i xs IH]; simpl; intros H.
  - apply (is_derive_const (V := R_NormedModule)).
  - apply (is_derive_plus (V := R_NormedModule)); auto.
Qed.
Lemma is_derive_value (f : R -> R) (x a b : R) : is_derive f x a -> a = b -> is_derive f x b.
Proof. intros H <-; exact H. Qed.
Lemma is_derive_times (f g : R -> R) (x a b : R) : is_derive f x a -> is_derive g x b ->
  is_derive (fun t => f t * g t) x (a * g x + f x * b).
Proof. intros F G. apply (is_derive_mult f g x a b F G). intros; apply Rmult_comm. Qed.
Lemma is_derive_chain (f g : R -> R) (x a b : R) : is_derive g x a -> is_derive f (g x) b -> is_derive (fun t => f (g t)) x (a * b).
Proof. intros G F. apply (is_derive_comp f g x b a F G). Qed.
