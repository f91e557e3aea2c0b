(* Split and tiled reductions: blocks of B with a ragged tail, and any partition by a key. *)
From Coq Require Import List Permutation Lia Arith Bool.
From Tang Require Import fold.partial fold.monoid.
Import ListNotations.

(* Indices a tiled loop visits: i = t*B + r, with the test i < n at each point. *)
Definition tile_index (B t : nat) : list nat := map (fun r => t * B + r) (seq 0 B).
Lemma map_add_seq s B : forall k, map (fun r => s + r) (seq k B) = seq (s + k) B.
Proof. induction B as [|B IH]; intros k; simpl; auto. f_equal. rewrite IH. f_equal. lia. Qed.
Lemma tile_index_seq B t : tile_index B t = seq (t * B) B.
Proof. unfold tile_index. rewrite map_add_seq. f_equal. lia. Qed.
Lemma tiles_cover B T : concat (map (tile_index B) (seq 0 T)) = seq 0 (T * B).
Proof.
  induction T as [|T IH]; auto.
  rewrite seq_S, map_app, concat_app, IH. simpl. rewrite app_nil_r, tile_index_seq.
  replace (B + T * B) with (T * B + B) by lia. rewrite seq_app. reflexivity.
Qed.

Lemma filter_disjoint {I} (p q : I -> bool) l : (forall i, In i l -> p i && q i = false) ->
  Permutation (filter (fun i => p i || q i) l) (filter p l ++ filter q l).
Proof.
  induction l as [|i l IH]; simpl; intros D; auto.
  assert (Hi := D i (or_introl eq_refl)). assert (IH' := IH (fun j H => D j (or_intror H))).
  destruct (p i), (q i); simpl in *; try discriminate; auto.
  now apply Permutation_cons_app.
Qed.

Section Tiled.
Context {V : Type} (m : monoid V) (term : nat -> option V).
Hypothesis term_ok : forall i x, term i = Some x -> ok m x.
Definition guarded n i := only (i <? n) (term i).

Lemma map_ok l : all_ok m (map term l).
Proof. intros x Hx. apply in_map_iff in Hx as [i [Hi _]]. eauto. Qed.
Lemma guarded_ok n l : all_ok m (map (guarded n) l).
Proof.
  intros x Hx. apply in_map_iff in Hx as [i [Hi _]]. unfold guarded in Hi.
  destruct (i <? n); simpl in Hi; eauto; discriminate.
Qed.
Lemma fold_from_absent s l : (forall t, In t l -> t = None) -> fold_from m s l = s.
Proof.
  induction l as [|t l IH]; simpl; intros H; auto.
  rewrite (H t) by auto. simpl. apply IH; auto.
Qed.
Lemma fold_guarded n k : n <= k -> fold m (map (guarded n) (seq 0 k)) = fold m (map term (seq 0 n)).
Proof.
  intros L. replace k with (n + (k - n)) by lia. rewrite seq_app, map_app.
  rewrite (map_ext_in (guarded n) term (seq 0 n)).
  - unfold fold, fold_from. rewrite fold_left_app. apply fold_from_absent.
    intros t Ht. apply in_map_iff in Ht as [i [<- Hi]]. apply in_seq in Hi.
    unfold guarded. replace (i <? n) with false; auto. symmetry. apply Nat.ltb_ge. lia.
  - intros i Hi. apply in_seq in Hi. unfold guarded.
    replace (i <? n) with true; auto. symmetry. apply Nat.ltb_lt. lia.
Qed.

(* n terms = ceil(n/B) tiles of B guarded terms, each folded on its own, then joined. *)
Theorem split_ragged n B T : n <= T * B ->
  fold m (map term (seq 0 n)) =
  fold m (map (fun t => Some (fold m (map (guarded n) (tile_index B t)))) (seq 0 T)).
Proof.
  intros L. rewrite <- (fold_guarded n (T * B)) by auto. rewrite <- tiles_cover.
  rewrite concat_map, !map_map.
  rewrite split_fold, map_map; auto.
  intros b Hb. apply in_map_iff in Hb as [t [<- _]]. apply guarded_ok.
Qed.
Definition ceildiv n B := (n + B - 1) / B.
Lemma ceildiv_covers n B : 0 < B -> n <= ceildiv n B * B.
Proof.
  intros H. unfold ceildiv.
  pose proof (Nat.div_mod (n + B - 1) B ltac:(lia)). pose proof (Nat.mod_upper_bound (n + B - 1) B ltac:(lia)). nia.
Qed.
Theorem split_tiled n B : 0 < B ->
  fold m (map term (seq 0 n)) =
  fold m (map (fun t => Some (fold m (map (guarded n) (tile_index B t)))) (seq 0 (ceildiv n B))).
Proof. intros. apply split_ragged, ceildiv_covers; auto. Qed.
End Tiled.

(* A partition by an arbitrary key (lanes, splits, stream-K): commutative monoids only. *)
Section Keys.
Context {I V : Type} (m : monoid V) (term : I -> option V) (key : I -> nat).
Hypothesis term_ok : forall i x, term i = Some x -> ok m x.
Definition part (l : list I) (k : nat) := filter (fun i => key i =? k) l.
Lemma parts_perm l K : Permutation (filter (fun i => key i <? K) l) (concat (map (part l) (seq 0 K))).
Proof.
  induction K as [|K IH].
  - simpl. replace (filter _ l) with (@nil I); auto. induction l; simpl; auto.
  - rewrite seq_S, map_app, concat_app. simpl. rewrite app_nil_r.
    rewrite <- IH. unfold part. rewrite <- filter_disjoint.
    + rewrite (filter_ext _ (fun i => (key i <? K) || (key i =? K))); auto.
      intros i. destruct (Nat.ltb_spec (key i) (S K)), (Nat.ltb_spec (key i) K), (Nat.eqb_spec (key i) K); auto; lia.
    + intros i _. destruct (Nat.ltb_spec (key i) K), (Nat.eqb_spec (key i) K); auto; lia.
Qed.
Lemma filter_all K (l : list I) : (forall i, In i l -> key i < K) -> filter (fun i => key i <? K) l = l.
Proof.
  induction l as [|i l IH]; simpl; intros H; auto.
  destruct (Nat.ltb_spec (key i) K); [f_equal; auto|]. specialize (H i (or_introl eq_refl)). lia.
Qed.
Theorem split_by_key K l : commutative m -> (forall i, In i l -> key i < K) ->
  fold m (map term l) =
  fold m (map (fun k => Some (fold m (map term (part l k)))) (seq 0 K)).
Proof.
  intros C H.
  assert (M : forall l, all_ok m (map term l)).
  { intros l' x Hx. apply in_map_iff in Hx as [i [Hi _]]. eauto. }
  pose proof (parts_perm l K) as P. rewrite (filter_all K l H) in P.
  rewrite (fold_permuted m _ _ C (Permutation_map term P)) by apply M.
  rewrite concat_map, map_map, split_fold, map_map; auto.
  intros b Hb. apply in_map_iff in Hb as [t [<- _]]. apply M.
Qed.
End Keys.
