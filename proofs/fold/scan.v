(* Scans: any associative step has a two-level form (segment maps, ends, inside); segmented sums. *)
From Coq Require Import List Reals.
From Tang Require Import fold.monoid.
Import ListNotations.

(* A monoid of maps acting on states: act (f then g) = act g after act f. *)
Section Action.
Context {M S : Type} (m : monoid M) (act : M -> S -> S).
Hypothesis act_e : forall s, act (e m) s = s.
Hypothesis act_op : forall f g s, ok m f -> ok m g -> act (op m f g) s = act g (act f s).
Definition run (fs : list M) (s : S) : S := fold_left (fun s f => act f s) fs s.
Definition maps (fs : list M) := map (@Some M) fs.

(* A chunk of steps is one step: their composition. *)
Theorem chunk_composes fs s : (forall f, In f fs -> ok m f) -> run fs s = act (fold m (maps fs)) s.
Proof.
  revert s. induction fs as [|f fs IH]; intros s H; simpl.
  - symmetry. apply act_e.
  - assert (F : ok m f) by (apply H; left; auto).
    assert (G : all_ok m (maps fs)).
    { intros g Hg. apply in_map_iff in Hg as [g' [E Hg]]. inversion E; subst. apply H; right; auto. }
    rewrite fold_cons by auto. rewrite act_op by (auto; apply fold_ok; auto).
    apply IH. intros; apply H; right; auto.
Qed.
(* All states of a sequential scan, the start excluded. *)
Fixpoint scan (fs : list M) (s : S) : list S :=
  match fs with [] => [] | f :: r => act f s :: scan r (act f s) end.
Lemma scan_app a b s : scan (a ++ b) s = scan a s ++ scan b (run a s).
Proof. revert s. induction a as [|f a IH]; intros s; simpl; auto. now rewrite IH. Qed.
(* Strip mining: an outer loop over chunks around the loop over a chunk. Steps past the end keep the state. *)
Theorem strip_mine_sound chunks s : run (concat chunks) s = fold_left (fun s fs => run fs s) chunks s.
Proof.
  revert s. induction chunks as [|c cs IH]; intros s; simpl; auto.
  unfold run at 1. rewrite fold_left_app. apply IH.
Qed.
Theorem dead_steps_keep (live : M -> bool) fs s :
  fold_left (fun s f => if live f then act f s else s) fs s = run (filter live fs) s.
Proof. revert s. induction fs as [|f fs IH]; intros s; simpl; auto. destruct (live f); apply IH. Qed.
(* Starts of the segments, from the segment maps alone (the middle level of the scan). *)
Fixpoint starts (segs : list (list M)) (s : S) : list S :=
  match segs with [] => [] | g :: r => s :: starts r (act (fold m (maps g)) s) end.
Theorem two_level_scan segs s : (forall g f, In g segs -> In f g -> ok m f) ->
  scan (concat segs) s = concat (map (fun p => scan (fst p) (snd p)) (combine segs (starts segs s))).
Proof.
  revert s. induction segs as [|g r IH]; intros s H; simpl; auto.
  rewrite scan_app. f_equal. rewrite IH by (intros; eapply H; [right|]; eauto).
  rewrite <- chunk_composes; auto. intros; eapply H; [left|]; eauto.
Qed.
End Action.

(* The scalar affine step x -> a x + b. *)
Section Affine.
Open Scope R_scope.
Definition affine_then (f g : R * R) : R * R := (fst g * fst f, fst g * snd f + snd g).
Definition affine_act (f : R * R) (x : R) : R := fst f * x + snd f.
Definition affine_monoid : monoid (R * R).
Proof.
  refine {| ok _ := True; op := affine_then; e := (1, 0) |}; auto; unfold affine_then; simpl.
  - intros [a b] _; simpl. f_equal; ring.
  - intros [a b] _; simpl. f_equal; ring.
  - intros; f_equal; ring.
Defined.
Theorem affine_recurrence fs x : run affine_act fs x = affine_act (fold affine_monoid (maps fs)) x.
Proof.
  apply (chunk_composes affine_monoid affine_act).
  - intro; unfold affine_act; simpl; ring.
  - intros; unfold affine_act; simpl; ring.
  - intros; exact I.
Qed.

(* Segmented sums: (a segment starts here, value); not commutative. *)
Definition seg_op (a b : bool * R) : bool * R :=
  (orb (fst a) (fst b), if fst b then snd b else snd a + snd b).
Definition segmented_monoid : monoid (bool * R).
Proof.
  refine {| ok _ := True; op := seg_op; e := (false, 0) |}; auto; unfold seg_op; simpl.
  - intros [[|] x] _; simpl; f_equal; ring.
  - intros [[|] x] _; simpl; f_equal; ring.
  - intros [[|] x] [[|] y] [[|] z] _ _ _; simpl; f_equal; ring.
Defined.
(* Its fold is the sum since the last start. *)
Fixpoint since_start (xs : list (bool * R)) (acc : R) : R :=
  match xs with [] => acc | (s, x) :: r => since_start r (if s then x else acc + x) end.
Theorem segmented_sum xs : snd (fold segmented_monoid (maps xs)) = since_start xs 0.
Proof.
  unfold fold. simpl e. change 0 with (snd (false, 0)) at 2. generalize (false, 0) as s.
  induction xs as [|[b x] xs IH]; intros s; simpl; auto.
  rewrite IH. unfold seg_op; simpl. destruct b; reflexivity.
Qed.
End Affine.
