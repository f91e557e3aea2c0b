(* Domains of a fold: absence is a tighter domain, dead tiles are skipped, disjoint pieces are visited in turn. *)
From Coq Require Import List Permutation Bool.
From Tang Require Import fold.partial fold.monoid fold.split.
Import ListNotations.

Section Pieces.
Context {I V : Type} (m : monoid V) (term : I -> option V).
Hypothesis term_ok : forall i x, term i = Some x -> ok m x.
(* The terms a loop over [dom] visits: points outside the domain are absent. *)
Definition over (dom : I -> bool) (l : list I) := map (fun i => only (dom i) (term i)) l.
(* The same loop with bounds: only the points of the domain are visited. *)
Definition bounded (dom : I -> bool) (l : list I) := map term (filter dom l).

Lemma fold_from_bounded dom l : forall s, fold_from m s (over dom l) = fold_from m s (bounded dom l).
Proof.
  induction l as [|i l IH]; intros s; simpl; auto.
  unfold bounded in *; simpl. destruct (dom i); simpl; apply IH.
Qed.
Theorem domain_is_bound dom l : fold m (over dom l) = fold m (bounded dom l).
Proof. apply fold_from_bounded. Qed.

Lemma over_ok dom l : all_ok m (over dom l).
Proof.
  intros x Hx. apply in_map_iff in Hx as [i [Hi _]]. destruct (dom i); simpl in Hi; eauto. discriminate.
Qed.
Lemma fold_absent l : (forall t, In t l -> t = None) -> fold m l = e m.
Proof.
  unfold fold. generalize (e m) as s. induction l as [|t l IH]; simpl; intros s H; auto.
  rewrite (H t) by auto. simpl. apply IH; auto.
Qed.
(* A tile all of whose points are masked may be skipped, wherever it stands. *)
Theorem skip_masked_tile dom before tile after :
  (forall i, In i tile -> dom i = false) ->
  fold m (over dom (before ++ tile ++ after)) = fold m (over dom (before ++ after)).
Proof.
  intros H. unfold over. rewrite !map_app.
  assert (D : fold m (map (fun i => only (dom i) (term i)) tile) = e m).
  { apply fold_absent. intros t Ht. apply in_map_iff in Ht as [i [<- Hi]]. now rewrite H. }
  pose proof (over_ok dom before) as A. pose proof (over_ok dom tile) as B. pose proof (over_ok dom after) as C.
  unfold over in *.
  rewrite !fold_app, D; auto; try (apply all_ok_app; auto).
  f_equal. apply inj_ok, fold_ok; auto.
Qed.
(* A full tile needs no test. *)
Theorem full_tile_untested dom tile :
  (forall i, In i tile -> dom i = true) -> over dom tile = map term tile.
Proof. intros H. apply map_ext_in. intros i Hi. now rewrite H. Qed.

(* Disjoint pieces of a union may be visited piece by piece, for a commutative monoid. *)
Theorem disjoint_pieces p q l : commutative m ->
  (forall i, In i l -> p i && q i = false) ->
  fold m (over (fun i => p i || q i) l) = op m (fold m (over p l)) (fold m (over q l)).
Proof.
  intros C D. rewrite !domain_is_bound.
  assert (M : forall l, all_ok m (map term l)).
  { intros l' x Hx. apply in_map_iff in Hx as [i [Hi _]]. eauto. }
  unfold bounded. rewrite <- fold_app, <- map_app; auto.
  apply fold_permuted; auto. apply Permutation_map.
  now apply filter_disjoint.
Qed.
End Pieces.

(* Absence in the body moves to the domain: of a fold, and of a map (whose points then simply do not exist). *)
Theorem absence_to_domain {I V} (m : monoid V) (dom p : I -> bool) (e : I -> option V) l :
  fold m (over (fun i => only (p i) (e i)) dom l) = fold m (over e (fun i => dom i && p i) l).
Proof. unfold over. f_equal. apply map_ext. intro i. destruct (dom i), (p i); reflexivity. Qed.
Theorem absence_to_domain_map {I V} (dom p : I -> bool) (e : I -> option V) i :
  only (dom i) (only (p i) (e i)) = only (dom i && p i) (e i).
Proof. apply only_only. Qed.
