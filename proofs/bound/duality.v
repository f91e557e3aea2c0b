(* Weak duality of the traffic program, with extents and weights; box tilings. *)
From Coq Require Import Reals Lra List Arith Lia.
From Tang Require Import sums.rsum.
Import ListNotations.
Open Scope R_scope.

Section Duality.
(* Loops i with log-extents beta_i, arrays j with log-capacities mu_j; `reads j i`: array j depends on loop i. *)
Context {I J : Type} (loops : list I) (arrays : list J) (reads : J -> I -> bool).
Context (x beta t : I -> R) (s mu : J -> R).
Hypothesis x_pos : forall i, In i loops -> 0 <= x i.
Hypothesis s_pos : forall j, In j arrays -> 0 <= s j.
Hypothesis t_pos : forall i, In i loops -> 0 <= t i.
(* The tile fits: in every array, and in every loop. *)
Hypothesis fits : forall j, In j arrays -> rsum (fun i => if reads j i then x i else 0) loops <= mu j.
Hypothesis within : forall i, In i loops -> x i <= beta i.
(* The cover: every loop is paid for by arrays or by its own extent. *)
Hypothesis covers : forall i, In i loops -> 1 <= rsum (fun j => if reads j i then s j else 0) arrays + t i.

Theorem weak_duality : rsum x loops <= rsum (fun j => s j * mu j) arrays + rsum (fun i => t i * beta i) loops.
Proof.
  apply Rle_trans with (rsum (fun i => x i * rsum (fun j => if reads j i then s j else 0) arrays) loops
                        + rsum (fun i => x i * t i) loops).
  - rewrite <- rsum_plus. apply rsum_le. intros i Hi. pose proof (x_pos i Hi). pose proof (covers i Hi). nra.
  - apply Rplus_le_compat.
    + rewrite (rsum_ext (fun i => x i * _) (fun i => rsum (fun j => x i * (if reads j i then s j else 0)) arrays))
        by (intro; symmetry; apply rsum_scale_l).
      rewrite rsum_swap. apply rsum_le. intros j Hj.
      rewrite (rsum_ext _ (fun i => s j * (if reads j i then x i else 0))) by (intro i; destruct (reads j i); ring).
      rewrite rsum_scale_l. apply Rmult_le_compat_l; auto.
    + apply rsum_le. intros i Hi. rewrite Rmult_comm. apply Rmult_le_compat_l; auto.
Qed.
End Duality.

Section Ranks.
(* Views that mix loops: a row h for each subgroup, its rank, and the ranks of its images in arrays and loops. The tile is
   a product of x_h-long sides along the subgroups. *)
Context {H I J : Type} (rows : list H) (loops : list I) (arrays : list J).
Context (rank : H -> R) (in_array : J -> H -> R) (in_loop : I -> H -> R) (x : H -> R) (beta t : I -> R) (s mu : J -> R).
Hypothesis x_pos : forall h, In h rows -> 0 <= x h.
Hypothesis s_pos : forall j, In j arrays -> 0 <= s j.
Hypothesis t_pos : forall i, In i loops -> 0 <= t i.
Hypothesis fits : forall j, In j arrays -> rsum (fun h => in_array j h * x h) rows <= mu j.
Hypothesis within : forall i, In i loops -> rsum (fun h => in_loop i h * x h) rows <= beta i.
Hypothesis covers : forall h, In h rows ->
  rank h <= rsum (fun j => s j * in_array j h) arrays + rsum (fun i => t i * in_loop i h) loops.
Lemma priced {K} (ks : list K) (p cap : K -> R) (a : K -> H -> R) : (forall k, In k ks -> 0 <= p k) ->
  (forall k, In k ks -> rsum (fun h => a k h * x h) rows <= cap k) ->
  rsum (fun h => x h * rsum (fun k => p k * a k h) ks) rows <= rsum (fun k => p k * cap k) ks.
Proof.
  intros P C. rewrite (rsum_ext _ (fun h => rsum (fun k => p k * (a k h * x h)) ks)).
  - rewrite rsum_swap. apply rsum_le. intros k Hk. rewrite rsum_scale_l. apply Rmult_le_compat_l; auto.
  - intro h. rewrite <- rsum_scale_l. apply rsum_ext. intro. ring.
Qed.
Theorem weak_duality_ranks :
  rsum (fun h => rank h * x h) rows <= rsum (fun j => s j * mu j) arrays + rsum (fun i => t i * beta i) loops.
Proof.
  apply Rle_trans with (rsum (fun h => x h * rsum (fun j => s j * in_array j h) arrays) rows +
                        rsum (fun h => x h * rsum (fun i => t i * in_loop i h) loops) rows).
  - rewrite <- rsum_plus. apply rsum_le. intros h Hh. pose proof (x_pos h Hh). pose proof (covers h Hh). nra.
  - apply Rplus_le_compat; now apply priced.
Qed.
End Ranks.

(* Tilings of V points by boxes of at most B points need at least V/B boxes: counting, for any cover at all. *)
Theorem box_count {T} (eq_dec : forall a b : T, {a = b} + {a <> b}) (points : list T) (boxes : list (list T)) (B : nat) :
  NoDup points -> (forall p, In p points -> exists b, In b boxes /\ In p b) ->
  (forall b, In b boxes -> (length b <= B)%nat) -> (length points <= length boxes * B)%nat.
Proof.
  intros U C L. apply Nat.le_trans with (length (concat boxes)).
  - apply NoDup_incl_length; auto. intros p Hp. destruct (C p Hp) as [b [Hb Hp']]. apply in_concat. eauto.
  - clear C U. induction boxes as [|b bs IH]; simpl; auto. rewrite app_length.
    pose proof (L b (or_introl eq_refl)). specialize (IH (fun c Hc => L c (or_intror Hc))). lia.
Qed.
