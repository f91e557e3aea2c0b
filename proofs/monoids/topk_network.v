(* The merge network of top-k: entry j of b sinks into a from place j; it is the merge of sorted lists, for every k. *)
From Coq Require Import List Sorted Lia Arith Permutation.
From Tang Require Import fold.monoid monoids.topk.
Import ListNotations.

Arguments topk.merge : simpl never.

Section Network.
Context {T : Type} (le : T -> T -> bool).
Hypothesis total : forall x y, le x y = false -> le y x = true.
Hypothesis trans : forall x y z, le x y = true -> le y z = true -> le x z = true.
Hypothesis antisym : forall x y, le x y = true -> le y x = true -> x = y.
Notation merge := (merge le).
Notation sorted := (sorted le).
Lemma refl x : le x x = true.
Proof. destruct (le x x) eqn:E; auto. rewrite (total x x E) in E. discriminate. Qed.

(* One entry sinks through places that keep their length: what falls off the end is dropped. *)
Fixpoint sink (x : T) (out : list T) : list T :=
  match out with [] => [] | o :: r => if le o x then o :: sink x r else x :: sink o r end.
Lemma sink_first o r : sorted (o :: r) -> sink o r = firstn (length r) (o :: r).
Proof.
  revert o. induction r as [|p r IH]; intros o S; auto.
  apply StronglySorted_inv in S as [S F]. inversion F; subst. simpl length. rewrite firstn_cons. simpl.
  destruct (le p o) eqn:E.
  - assert (o = p) by auto. subst p. f_equal. now apply IH.
  - f_equal. now apply IH.
Qed.
Lemma sink_merge x r : sorted r -> sink x r = firstn (length r) (merge r [x]).
Proof.
  induction r as [|o r IH]; intros S; auto. simpl length. rewrite merge_cons.
  destruct (le o x) eqn:E; simpl sink; rewrite E, firstn_cons; f_equal.
  - apply IH. now apply StronglySorted_inv in S.
  - rewrite merge_nil_r. now apply sink_first.
Qed.
Lemma merge_prefix p r x : Forall (fun o => le o x = true) p -> merge (p ++ r) [x] = p ++ merge r [x].
Proof. induction p as [|o p IH]; simpl; intros F; auto. inversion F; subst. rewrite merge_cons, H1. f_equal. auto. Qed.
Lemma merge_last b x : Forall (fun o => le o x = true) b -> merge b [x] = b ++ [x].
Proof. intros F. rewrite <- (app_nil_r b) at 1. rewrite merge_prefix, merge_nil_l; auto. Qed.
(* The first |b| entries of a merge come before everything that b comes before. *)
Lemma first_below y n : forall a b, length a + length b <= n -> Forall (fun o => le o y = true) b -> sorted b ->
  Forall (fun o => le o y = true) (firstn (length b) (merge a b)).
Proof.
  induction n as [|n IH]; intros a b L F Q.
  - destruct b; simpl in *; [constructor|lia].
  - destruct b as [|z b]; [constructor|]. destruct a as [|x a].
    + rewrite merge_nil_l, firstn_all. exact F.
    + rewrite merge_cons. simpl length. simpl in L. inversion F; subst.
      destruct (le x z) eqn:E; rewrite firstn_cons; constructor; eauto.
      * assert (G : Forall (fun o => le o y = true) (firstn (length (z :: b)) (merge a (z :: b)))) by (apply IH; simpl; auto; lia).
        simpl length in G. rewrite <- (firstn_skipn (length b) (firstn (S (length b)) (merge a (z :: b)))) in G.
        rewrite firstn_firstn, Nat.min_l in G by lia. apply Forall_app in G. tauto.
      * apply IH; simpl; auto; try lia. now apply StronglySorted_inv in Q.
Qed.

Fixpoint network (j : nat) (out bs : list T) : list T :=
  match bs with [] => out | b :: bs => network (S j) (firstn j out ++ sink b (skipn j out)) bs end.
Lemma network_step k a done b : length a = k -> sorted a -> sorted (done ++ [b]) -> length done < k ->
  let out := firstn k (merge a done) in
  firstn (length done) out ++ sink b (skipn (length done) out) = firstn k (merge a (done ++ [b])).
Proof.
  intros A SA SB D. simpl. set (j := length done). set (out := firstn k (merge a done)).
  assert (F : Forall (fun o => le o b = true) done).
  { clear -SB. induction done as [|x d IH]; [constructor|]. apply StronglySorted_inv in SB as [S F]. constructor; auto.
    rewrite Forall_forall in F. apply F, in_or_app. right. left. auto. }
  assert (SD : sorted done).
  { pose proof (firstn_sorted le j (done ++ [b]) SB) as H. unfold j in H. rewrite firstn_app, firstn_all, Nat.sub_diag in H.
    simpl in H. now rewrite app_nil_r in H. }
  assert (SM : sorted (merge a done)) by (apply (merge_sorted le total trans); auto).
  assert (SO : sorted out) by (apply firstn_sorted; auto).
  assert (LM : length (merge a done) = k + j).
  { rewrite <- (Permutation_length (merge_perm le a done)), app_length. unfold j. lia. }
  assert (LO : length out = k) by (unfold out; rewrite firstn_length; lia).
  assert (P : Forall (fun o => le o b = true) (firstn j out)).
  { unfold out. rewrite firstn_firstn, Nat.min_l by (unfold j; lia). eapply first_below; eauto. }
  assert (SS : sorted (skipn j out)).
  { clear -SO. revert SO. generalize out as l. induction j as [|j IH]; intros l S; auto. destruct l as [|x l]; auto.
    apply StronglySorted_inv in S as [S _]. apply IH; auto. }
  rewrite sink_merge by auto. rewrite <- (merge_last done b F), (merge_assoc le total trans).
  change (firstn k (merge (merge a done) [b])) with (merge_k le k (merge a done) [b]).
  rewrite <- (merge_k_l le k (merge a done) [b]). fold out. unfold merge_k.
  rewrite <- (firstn_skipn j out) at 4. rewrite merge_prefix by auto.
  rewrite firstn_app, firstn_length, LO, Nat.min_l by (unfold j; lia).
  rewrite (firstn_all2 (n := k) (firstn j out)) by (rewrite firstn_length; lia).
  f_equal. f_equal. rewrite skipn_length, LO. reflexivity.
Qed.
Theorem network_is_merge k a b : length a = k -> length b <= k -> sorted a -> sorted b ->
  network 0 a b = firstn k (merge a b).
Proof.
  intros A B SA SB. assert (G : forall rest done, b = done ++ rest ->
    network (length done) (firstn k (merge a done)) rest = firstn k (merge a b)).
  { induction rest as [|x rest IH]; intros done E; simpl.
    - rewrite app_nil_r in E. now subst.
    - assert (S1 : sorted (done ++ [x])).
      { pose proof (firstn_sorted le (length done + 1) b SB) as H. rewrite E, firstn_app in H.
        rewrite firstn_all2 in H by lia. replace (length done + 1 - length done) with 1 in H by lia. exact H. }
      rewrite network_step; auto.
      + replace (S (length done)) with (length (done ++ [x])) by (rewrite app_length; simpl; lia).
        apply IH. rewrite <- app_assoc. exact E.
      + rewrite E, app_length in B. simpl in B. lia. }
  specialize (G b [] eq_refl). change (@length T []) with 0 in G.
  replace (firstn k (merge a [])) with a in G; [exact G|].
  now rewrite merge_nil_r, firstn_all2 by lia.
Qed.

(* The monoid the compiler keeps: k entries, padded with `bot`, which every entry comes before. *)
Context (bot : T) (k : nat).
Definition entries (l : list T) : Prop := sorted l /\ length l = k /\ Forall (fun x => le x bot = true) l.
Lemma merge_bots a n : Forall (fun x => le x bot = true) a -> merge a (repeat bot n) = a ++ repeat bot n.
Proof.
  induction a as [|x a IH]; intros F; [now rewrite merge_nil_l|]. inversion F; subst.
  destruct n as [|n]; [change (repeat bot 0) with (@nil T); now rewrite merge_nil_r, app_nil_r|]. change (repeat bot (S n)) with (bot :: repeat bot n) in *.
  rewrite merge_cons, H1. simpl. f_equal. apply IH; auto.
Qed.
Lemma bots_sorted n : sorted (repeat bot n).
Proof. induction n; simpl; constructor; auto. apply Forall_forall. intros x X. apply repeat_spec in X. subst. apply refl. Qed.
Lemma bots_below n : Forall (fun x => le x bot = true) (repeat bot n).
Proof. apply Forall_forall. intros x X. apply repeat_spec in X. subst. apply refl. Qed.
Definition padded_topk : monoid (list T).
Proof.
  refine {| ok := entries; op := merge_k le k; e := repeat bot k |}.
  - intros x [S [L F]]. unfold merge_k. rewrite (merge_comm le total antisym) by (auto using bots_sorted).
    rewrite merge_bots, firstn_app, L, Nat.sub_diag, firstn_all2 by (auto; lia). simpl. apply app_nil_r.
  - repeat split; [apply bots_sorted|apply repeat_length|apply bots_below].
  - intros x y [S [L F]] [S' [L' F']]. unfold merge_k. repeat split.
    + apply firstn_sorted, (merge_sorted le total trans); auto.
    + rewrite firstn_length, <- (Permutation_length (merge_perm le x y)), app_length. lia.
    + assert (G : Forall (fun z => le z bot = true) (merge x y))
        by (eapply Permutation_Forall; [apply merge_perm|]; apply Forall_app; auto).
      rewrite <- (firstn_skipn k (merge x y)) in G. apply Forall_app in G. tauto.
  - intros x [S [L F]]. unfold merge_k. rewrite merge_bots, firstn_app, L, Nat.sub_diag, firstn_all2 by (auto; lia).
    simpl. apply app_nil_r.
  - intros x y z _ _ _. change (merge_k le k x (firstn k (merge y z)) = merge_k le k (firstn k (merge x y)) z).
    rewrite merge_k_r, merge_k_l. unfold merge_k. now rewrite (merge_assoc le total trans).
Defined.
Theorem padded_topk_commutative : commutative padded_topk.
Proof. intros a b [A _] [B _]. simpl. unfold merge_k. now rewrite (merge_comm le total antisym). Qed.
Theorem padded_topk_network a b : entries a -> entries b -> op padded_topk a b = network 0 a b.
Proof. intros [A [L _]] [B [L' _]]. symmetry. apply network_is_merge; auto. lia. Qed.
End Network.
