(* Mixed radix: splitting and merging axes are views, and a mixed-radix output view is injective. *)
From Coq Require Import ZArith Lia List.
Import ListNotations.
Open Scope Z_scope.

(* Splitting a point axis: k = C (k / C) + k mod C, with one solution. *)
Theorem radix_split C k : 0 < C -> k = C * (k / C) + k mod C /\ 0 <= k mod C < C.
Proof. intros H. split; [apply Z_div_mod_eq_full|apply Z.mod_pos_bound; auto]. Qed.
Theorem radix_unique C a b a' b' : 0 <= b < C -> 0 <= b' < C -> C * a + b = C * a' + b' -> a = a' /\ b = b'.
Proof. intros B B' E. assert (a = a') by nia. subst. lia. Qed.
Theorem radix_merge C a b : 0 <= b < C -> (C * a + b) / C = a /\ (C * a + b) mod C = b.
Proof.
  intros B. assert (H : 0 < C) by lia. destruct (radix_split C (C * a + b) H) as [E M].
  destruct (radix_unique C a b _ _ B M E); auto.
Qed.

(* A coordinate over axes with extents: each coefficient is at least the span of the smaller ones. *)
Fixpoint coordinate (terms : list (Z * Z)) (p : list Z) : Z :=         (* (coefficient, extent), smallest first *)
  match terms, p with (k, _) :: ts, x :: p => k * x + coordinate ts p | _, _ => 0 end.
Fixpoint in_range (terms : list (Z * Z)) (p : list Z) : Prop :=
  match terms, p with
  | [], [] => True
  | (_, n) :: ts, x :: p => 0 <= x < n /\ in_range ts p
  | _, _ => False
  end.
(* [divided d ts]: every coefficient is a positive multiple of d, and grows by at least the extent below it. *)
Fixpoint mixed (d : Z) (terms : list (Z * Z)) : Prop :=
  match terms with [] => True | (k, n) :: ts => k = d /\ 0 < d /\ mixed (d * n) ts end.
Lemma coordinate_multiple ts : forall d p, mixed d ts -> exists q, coordinate ts p = d * q.
Proof.
  induction ts as [|[k n] ts IH]; intros d p M; [exists 0; destruct p; simpl; lia|].
  destruct M as [-> [D M]]. destruct p as [|x p]; [exists 0; simpl; lia|].
  destruct (IH (d * n) p M) as [q Q]. exists (x + n * q). simpl. rewrite Q. ring.
Qed.
Theorem reshape_sound ts : forall d p q, mixed d ts -> in_range ts p -> in_range ts q ->
  coordinate ts p = coordinate ts q -> p = q.
Proof.
  induction ts as [|[k n] ts IH]; intros d [|x p] [|y q] M P Q E; simpl in P, Q; try tauto.
  destruct M as [-> [D M]]. destruct P as [X P], Q as [Y Q]. simpl in E.
  destruct (coordinate_multiple ts (d * n) p M) as [u U]. destruct (coordinate_multiple ts (d * n) q M) as [w W].
  assert (C : n * u + x = n * w + y) by (rewrite U, W in E; nia).
  destruct (radix_unique n u x w y X Y C) as [-> ->]. f_equal. apply (IH (d * n)); auto. lia.
Qed.
