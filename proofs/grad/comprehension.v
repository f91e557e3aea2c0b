(* Gradient of a sum comprehension: renaming coordinates for pick views, gating by an equality for any view. *)
From Coq Require Import Reals Lra Lia List Bool.
From Coquelicot Require Import Coquelicot.
From Tang Require Import sums.rsum grad.calculus grad.scalar grad.chain.
Import ListNotations.
Open Scope R_scope.

Section Gradient.
(* y[p i] += body(reads at i) for i in the iteration space; read k < n sees tensor `tensor k` at `view k i`. *)
Context {I J Y : Type} (eqJ : forall a b : J, {a = b} + {a <> b}) (eqY : forall a b : Y, {a = b} + {a <> b}).
Context (n : nat) (body : sexpr) (is : list I) (p : I -> Y) (view : nat -> I -> J).
(* Reads of the differentiated tensor; the others are data of the iteration point. *)
Context (mine : nat -> bool) (other : nat -> I -> R).
Hypothesis body_bounded : bounded n body.
Definition put (a : J -> R) (j : J) (x : R) (k : J) : R := if eqJ k j then x else a k.
Definition args (a : J -> R) (i : I) (k : nat) : R := if mine k then a (view k i) else other k i.
Definition y (a : J -> R) (q : Y) : R :=
  rsum (fun i => if eqY (p i) q then eval (args a i) body else 0) is.
(* The loss through its cotangent w = dL/dy, over the points of y. *)
Definition loss (ys : list Y) (w : Y -> R) (a : J -> R) : R := rsum (fun q => w q * y a q) ys.
Definition partial (a : J -> R) (i : I) (k : nat) : R := eval (args a i) (diff (args a i) k body).

Lemma loss_by_points ys w a : NoDup ys -> (forall i, In i is -> In (p i) ys) ->
  loss ys w a = rsum (fun i => w (p i) * eval (args a i) body) is.
Proof.
  intros U H. unfold loss, y.
  rewrite (rsum_ext _ (fun q => rsum (fun i => if eqY (p i) q then w q * eval (args a i) body else 0) is)).
  2:{ intro q. rewrite <- rsum_scale_l. apply rsum_ext. intro i. destruct (eqY (p i) q); ring. }
  rewrite rsum_swap. apply rsum_ext_in. intros i Hi. specialize (H i Hi). clear Hi.
  induction U as [|q qs N U IH]; [destruct H|]. simpl. destruct H as [->|H].
  - destruct (eqY (p i) (p i)); [|congruence]. rewrite (rsum_ext_in _ (fun _ => 0)), rsum_zero; [ring|].
    intros q Q. destruct (eqY (p i) q); [subst; contradiction|auto].
  - rewrite IH by auto. destruct (eqY (p i) q); [subst; contradiction|ring].
Qed.

(* Any view: every read is gated by "its coordinate is j"; a gather is the same law with data in the view. *)
Theorem gradient_of_sum ys w a j : NoDup ys -> (forall i, In i is -> In (p i) ys) ->
  (forall i, In i is -> wf (args a i) body) ->
  is_derive (fun x => loss ys w (put a j x)) (a j)
    (rsum (fun k => rsum (fun i =>
       if mine k && (if eqJ (view k i) j then true else false) then w (p i) * partial a i k else 0) is) (seq 0 n)).
Proof.
  intros U H W.
  apply (is_derive_ext (fun x => rsum (fun i => w (p i) * eval (args (put a j x) i) body) is)).
  { intro x. symmetry. now apply loss_by_points. }
  rewrite rsum_swap. apply is_derive_rsum. intros i Hi.
  assert (E : forall k, args (put a j (a j)) i k = args a i k).
  { intro k. unfold args, put. destruct (mine k); auto. destruct (eqJ (view k i) j) as [->|]; auto. }
  set (f := fun k x => args (put a j x) i k).
  set (d := fun k => if mine k && (if eqJ (view k i) j then true else false) then 1 else 0).
  assert (P : forall k, is_derive (f k) (a j) (d k)).
  { intro k. unfold f, d, args, put. destruct (mine k); simpl.
    - destruct (eqJ (view k i) j); [apply (is_derive_id (K := R_AbsRing))|apply (is_derive_const (V := R_NormedModule))].
    - apply (is_derive_const (V := R_NormedModule)). }
  assert (X : chain.env f (a j) = args a i).
  { apply FunctionalExtensionality.functional_extensionality. intro k. apply E. }
  pose proof (diff_sound n f d (a j) P body) as S. rewrite X in S. specialize (S (W i Hi) body_bounded).
  eapply is_derive_value.
  - apply (is_derive_scal (fun x => eval (args (put a j x) i) body) (a j) (w (p i))). exact S.
  - unfold speed. rewrite X. change (w (p i) * rsum (fun k => partial a i k * d k) (seq 0 n) =
      rsum (fun k => if mine k && (if eqJ (view k i) j then true else false) then w (p i) * partial a i k else 0) (seq 0 n)).
    rewrite <- rsum_scale_l. apply rsum_ext. intro k. unfold d.
    destruct (mine k && (if eqJ (view k i) j then true else false)); ring.
Qed.
(* Pick views: i splits as (j, r), the picked coordinates become the points and the rest stays folded. *)
Theorem gradient_pick {R'} (pair : J -> R' -> I) (rs : list R') (js : list J) k (f : I -> R) j :
  NoDup js -> In j js -> (forall j' r, view k (pair j' r) = j') ->
  rsum (fun i => if eqJ (view k i) j then f i else 0) (flat_map (fun j' => map (pair j') rs) js) =
  rsum (fun r => f (pair j r)) rs.
Proof.
  intros U H V. induction U as [|j' js' N U IH]; [destruct H|]. simpl. rewrite rsum_app, rsum_map.
  destruct H as [->|H].
  - rewrite (rsum_ext _ (fun r => f (pair j r))) by (intro r; rewrite V; destruct (eqJ j j); congruence).
    assert (Z : rsum (fun i => if eqJ (view k i) j then f i else 0) (flat_map (fun j' => map (pair j') rs) js') = 0).
    { rewrite (rsum_ext_in _ (fun _ => 0)), rsum_zero; auto. intros i Hi. apply in_flat_map in Hi as [q [Q Hi]].
      apply in_map_iff in Hi as [r [<- _]]. rewrite V. destruct (eqJ q j); [subst; contradiction|auto]. }
    rewrite Z. ring.
  - rewrite IH by auto. rewrite (rsum_ext _ (fun _ => 0)), rsum_zero; [ring|].
    intro r. rewrite V. destruct (eqJ j' j); [subst; contradiction|auto].
Qed.
End Gradient.

(* Max gates its term to the (unique) arg-max: the derivative of the fold is that of the winning term. *)
Definition max_of (f : nat -> R) (n : nat) : R := fold_right (fun i m => Rmax (f i) m) (f 0%nat) (seq 1 n).
Lemma max_of_at f n i : (i <= n)%nat -> (forall k, (k <= n)%nat -> f k <= f i) -> max_of f n = f i.
Proof.
  intros I H. unfold max_of. apply Rle_antisym.
  - assert (G : forall l, (forall k, In k l -> f k <= f i) -> fold_right (fun k m => Rmax (f k) m) (f 0%nat) l <= f i).
    { induction l as [|k l IH]; simpl; intros K; [apply H; lia|]. apply Rmax_lub; auto. }
    apply G. intros k K. apply in_seq in K. apply H. lia.
  - destruct i as [|i].
    + induction (seq 1 n); simpl; [lra|]. eapply Rle_trans; [exact IHl|]. apply Rmax_r.
    + assert (G : In (S i) (seq 1 n)) by (apply in_seq; lia).
      induction (seq 1 n) as [|k l IH]; simpl; [destruct G|]. destruct G as [->|G]; [apply Rmax_l|].
      eapply Rle_trans; [apply IH; auto|]. apply Rmax_r.
Qed.
Theorem gradient_of_max (f : nat -> R -> R) (d : nat -> R) n t i : (i <= n)%nat ->
  (forall k, (k <= n)%nat -> is_derive (f k) t (d k)) ->
  (forall k, (k <= n)%nat -> k <> i -> f k t < f i t) ->
  is_derive (fun u => max_of (fun k => f k u) n) t (d i).
Proof.
  intros I D L. apply (is_derive_ext_loc (f i)); [|auto].
  assert (G : locally t (fun u => forall k, (k <= n)%nat -> f k u <= f i u)).
  { assert (G : forall m, (m <= S n)%nat -> locally t (fun u => forall k, (k < m)%nat -> f k u <= f i u)).
    { induction m as [|m IH]; intros M.
      - apply filter_forall. intros u k K. lia.
      - specialize (IH ltac:(lia)).
        assert (A : locally t (fun u => f m u <= f i u)).
        { destruct (Nat.eq_dec m i) as [->|N]; [apply filter_forall; intro; lra|].
          generalize (less_near _ _ t _ _ (D m ltac:(lia)) (D i I) (L m ltac:(lia) N)). apply filter_imp. intros; lra. }
        generalize (filter_and _ _ IH A). apply filter_imp. intros u [P Q] k K.
        destruct (Nat.eq_dec k m) as [->|]; auto. apply P. lia. }
    generalize (G (S n) ltac:(lia)). apply filter_imp. intros u P k K. apply P. lia. }
  revert G. apply filter_imp. intros u P. symmetry. apply (max_of_at (fun k => f k u) n i); auto.
Qed.
