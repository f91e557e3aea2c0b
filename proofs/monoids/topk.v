(* Top-k as a monoid, generic in k and in the total order (value, then index): merge two sorted lists, keep k. *)
From Coq Require Import List Permutation Sorted Lia Arith.
From Tang Require Import fold.monoid.
Import ListNotations.

Section TopK.
Context {T : Type} (le : T -> T -> bool).                   (* "comes before or is equal" *)
Hypothesis total : forall x y, le x y = false -> le y x = true.
Hypothesis trans : forall x y z, le x y = true -> le y z = true -> le x z = true.
Hypothesis antisym : forall x y, le x y = true -> le y x = true -> x = y.

Fixpoint merge (a b : list T) : list T :=
  let fix go (b : list T) : list T :=
    match a, b with
    | [], _ => b
    | x :: a', [] => a
    | x :: a', y :: b' => if le x y then x :: merge a' b else y :: go b'
    end in go b.
Lemma merge_nil_r a : merge a [] = a.
Proof. destruct a; reflexivity. Qed.
Lemma merge_nil_l b : merge [] b = b.
Proof. destruct b; reflexivity. Qed.
Lemma merge_cons x a y b : merge (x :: a) (y :: b) = if le x y then x :: merge a (y :: b) else y :: merge (x :: a) b.
Proof. reflexivity. Qed.

Arguments merge : simpl never.

(* Truncation commutes with merging: only the first k of each list can matter. *)
Lemma merge_firstn k : forall p q a b, k <= p -> k <= q ->
  firstn k (merge (firstn p a) (firstn q b)) = firstn k (merge a b).
Proof.
  induction k as [|k IH]; intros p q a b P Q; auto.
  destruct p as [|p], q as [|q]; try lia.
  destruct a as [|x a].
  - simpl firstn at 2. rewrite !merge_nil_l, firstn_firstn. f_equal. lia.
  - destruct b as [|y b].
    + simpl firstn at 3. rewrite !merge_nil_r, firstn_firstn. f_equal. lia.
    + rewrite !firstn_cons, !merge_cons. destruct (le x y); rewrite !firstn_cons; f_equal.
      * apply (IH p (S q) a (y :: b)); lia.
      * apply (IH (S p) q (x :: a) b); lia.
Qed.

(* Merging is associative for any total order, sorted lists or not. *)
Lemma merge_assoc_n n : forall a b c, length a + length b + length c <= n ->
  merge a (merge b c) = merge (merge a b) c.
Proof.
  induction n as [|n IH]; intros a b c L.
  - destruct a, b, c; simpl in L; try lia. reflexivity.
  - destruct a as [|x a]; [now rewrite !merge_nil_l|].
    destruct b as [|y b]; [now rewrite merge_nil_r, merge_nil_l|].
    destruct c as [|z c]; [now rewrite !merge_nil_r|].
    simpl in L. rewrite (merge_cons y b z c), (merge_cons x a y b).
    destruct (le y z) eqn:YZ; destruct (le x y) eqn:XY; rewrite !merge_cons.
    + rewrite XY, (trans x y z XY YZ). f_equal.
      rewrite <- IH by (simpl; lia). now rewrite merge_cons, YZ.
    + rewrite XY, YZ. f_equal. apply IH; simpl; lia.
    + destruct (le x z) eqn:XZ; f_equal.
      * rewrite <- IH by (simpl; lia). now rewrite merge_cons, YZ.
      * rewrite IH by (simpl; lia). now rewrite merge_cons, XY.
    + rewrite YZ. destruct (le x z) eqn:XZ.
      * rewrite (trans y x z (total x y XY) XZ) in YZ. discriminate.
      * f_equal. rewrite IH by (simpl; lia). now rewrite merge_cons, XY.
Qed.
Lemma merge_assoc a b c : merge a (merge b c) = merge (merge a b) c.
Proof. eapply merge_assoc_n; reflexivity. Qed.

(* Commutative on sorted lists. *)
Definition sorted := StronglySorted (fun x y => le x y = true).
Lemma merge_head x b a : Forall (fun y => le x y = true) a -> merge (x :: b) a = x :: merge b a.
Proof.
  intros H. destruct a as [|y a]; [now rewrite !merge_nil_r|].
  inversion H; subst. now rewrite merge_cons, H2.
Qed.
Lemma merge_comm_n n : forall a b, length a + length b <= n -> sorted a -> sorted b -> merge a b = merge b a.
Proof.
  induction n as [|n IH]; intros a b L A B.
  - destruct a, b; simpl in L; try lia. reflexivity.
  - destruct a as [|x a]; [now rewrite merge_nil_l, merge_nil_r|].
    destruct b as [|y b]; [now rewrite merge_nil_l, merge_nil_r|].
    simpl in L. pose proof A as A0. pose proof B as B0.
    apply StronglySorted_inv in A as [A FA]. apply StronglySorted_inv in B as [B FB].
    rewrite !merge_cons. destruct (le x y) eqn:XY; destruct (le y x) eqn:YX.
    + assert (x = y) by auto. subst y. f_equal.
      rewrite IH by (simpl; auto; lia). rewrite merge_head by auto.
      rewrite (IH b (x :: a)) by (simpl; auto; lia). rewrite merge_head by auto.
      f_equal. apply IH; auto; lia.
    + f_equal. apply IH; simpl; auto; lia.
    + f_equal. apply IH; simpl; auto; lia.
    + apply total in XY. congruence.
Qed.
Lemma merge_comm a b : sorted a -> sorted b -> merge a b = merge b a.
Proof. eapply merge_comm_n; reflexivity. Qed.
Lemma merge_perm_n n : forall a b, length a + length b <= n -> Permutation (a ++ b) (merge a b).
Proof.
  induction n as [|n IH]; intros a b L.
  - destruct a, b; simpl in L; try lia. constructor.
  - destruct a as [|x a]; [now rewrite merge_nil_l|].
    destruct b as [|y b]; [now rewrite merge_nil_r, app_nil_r|].
    simpl in L. rewrite merge_cons. destruct (le x y).
    + simpl. constructor. apply IH; simpl; lia.
    + apply Permutation_sym, Permutation_cons_app, Permutation_sym. apply IH; simpl; lia.
Qed.
Lemma merge_perm a b : Permutation (a ++ b) (merge a b).
Proof. eapply merge_perm_n; reflexivity. Qed.
Lemma merge_sorted_n n : forall a b, length a + length b <= n -> sorted a -> sorted b -> sorted (merge a b).
Proof.
  induction n as [|n IH]; intros a b L A B.
  - destruct a, b; simpl in L; try lia. constructor.
  - destruct a as [|x a]; [now rewrite merge_nil_l|].
    destruct b as [|y b]; [now rewrite merge_nil_r|].
    simpl in L. pose proof A as A0. pose proof B as B0.
    apply StronglySorted_inv in A as [A FA]. apply StronglySorted_inv in B as [B FB].
    assert (up : forall u w l, le u w = true -> Forall (fun z => le w z = true) l -> Forall (fun z => le u z = true) l).
    { intros u w l U F. eapply Forall_impl; [|exact F]. intros z Z. eauto. }
    rewrite merge_cons. destruct (le x y) eqn:XY.
    + constructor; [apply IH; simpl; auto; lia|].
      eapply Permutation_Forall; [apply merge_perm|]. apply Forall_app; split; auto. constructor; eauto.
    + apply total in XY. constructor; [apply IH; simpl; auto; lia|].
      eapply Permutation_Forall; [apply merge_perm|]. apply Forall_app; split; auto. constructor; eauto.
Qed.
Lemma merge_sorted a b : sorted a -> sorted b -> sorted (merge a b).
Proof. eapply merge_sorted_n; reflexivity. Qed.
Lemma firstn_sorted n a : sorted a -> sorted (firstn n a).
Proof.
  revert n. induction a as [|x a IH]; intros [|n] H; try constructor.
  - apply StronglySorted_inv in H as [H F]. apply IH; auto.
  - apply StronglySorted_inv in H as [H F]. rewrite <- (firstn_skipn n a) in F. apply Forall_app in F. tauto.
Qed.

(* The monoid: sorted lists of at most k entries. *)
Context (k : nat).
Definition merge_k (a b : list T) := firstn k (merge a b).
Lemma merge_k_l a b : merge_k (firstn k a) b = merge_k a b.
Proof.
  unfold merge_k. rewrite <- (merge_firstn k k (max k (length b)) a b) by lia.
  f_equal. f_equal. rewrite firstn_all2; auto. lia.
Qed.
Lemma merge_k_r a b : merge_k a (firstn k b) = merge_k a b.
Proof.
  unfold merge_k. rewrite <- (merge_firstn k (max k (length a)) k a b) by lia.
  f_equal. f_equal. rewrite firstn_all2; auto. lia.
Qed.
Definition topk_monoid : monoid (list T).
Proof.
  refine {| ok a := sorted a /\ length a <= k; op := merge_k; e := [] |}.
  - intros x [_ L]. unfold merge_k. rewrite merge_nil_l. now apply firstn_all2.
  - split; [constructor|simpl; lia].
  - intros x y [X _] [Y _]. split; [apply firstn_sorted, merge_sorted; auto|].
    unfold merge_k. rewrite firstn_length. lia.
  - intros x [_ L]. unfold merge_k. rewrite merge_nil_r. now apply firstn_all2.
  - intros x y z _ _ _. change (merge_k x (firstn k (merge y z)) = merge_k (firstn k (merge x y)) z).
    rewrite merge_k_r, merge_k_l. unfold merge_k. now rewrite merge_assoc.
Defined.
Theorem topk_commutative : commutative topk_monoid.
Proof. intros a b [A _] [B _]. simpl. unfold merge_k. now rewrite merge_comm. Qed.

(* Its fold over single entries is the first k of the sorted list, in any order of arrival. *)
Definition sort (xs : list T) : list T := fold_right (fun x s => merge [x] s) [] xs.
Lemma sort_sorted xs : sorted (sort xs).
Proof. induction xs; simpl; [constructor|]. apply merge_sorted; auto. repeat constructor. Qed.
Lemma sort_perm xs : Permutation xs (sort xs).
Proof. induction xs; simpl; auto. rewrite <- merge_perm. simpl. now constructor. Qed.
Theorem topk_is_sort xs : 0 < k -> fold topk_monoid (map (fun x => Some [x]) xs) = firstn k (sort xs).
Proof.
  intros K. induction xs as [|x xs IH]; [simpl; now rewrite firstn_nil|].
  simpl map. rewrite fold_cons.
  - rewrite IH. simpl. rewrite merge_k_r. reflexivity.
  - split; [repeat constructor|simpl; lia].
  - intros y Hy. apply in_map_iff in Hy as [z [E _]]. inversion E. split; [repeat constructor|simpl; lia].
Qed.
Theorem topk_concat xs ys : firstn k (sort (xs ++ ys)) = merge_k (firstn k (sort xs)) (firstn k (sort ys)).
Proof.
  rewrite merge_k_l, merge_k_r. unfold merge_k. f_equal.
  induction xs as [|x xs IH]; simpl; [now rewrite merge_nil_l|]. now rewrite IH, merge_assoc.
Qed.
End TopK.
