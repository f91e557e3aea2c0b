(* The printed top-k, for every k: its combine is the merge of sorted lists (monoids/topk_network), NaN and ties included. *)
From Coq Require Import Reals Lra Lia ZArith List Bool Arith.
From Tang Require Import grad.scalar fold.monoid monoids.topk monoids.topk_network.
From Tang Require Import export.xr export.term export.monoid export.solve.
Import ListNotations.
Open Scope R_scope.

(* Entries: a number (NaN included) and its index. The order of the language: NaN above +inf, ties to the smaller index. *)
Inductive num := Real (x : R) | Top | Bottom | NotNumber.
Definition emb (a : num) : xr := match a with Real x => Fin x | Top => Pinf | Bottom => Minf | NotNumber => Nan end.
Notation entry := (num * R)%type.
Definition wins (largest : bool) (p q : entry) : bool :=
  let x := emb (fst p) in let y := emb (fst q) in let tie := xless (Fin (snd p)) (Fin (snd q)) || xequal (Fin (snd p)) (Fin (snd q)) in
  if xisnan x then negb (xisnan y) || tie else negb (xisnan y) && ((if largest then xless y x else xless x y) || (xequal x y && tie)).
Ltac entries_cases := unfold wins, emb, xless, xequal, xisnan; cbn [fst snd]; split_all; cbn; auto; try discriminate; try (exfalso; lra).
Lemma wins_total g p q : wins g p q = false -> wins g q p = true.
Proof. destruct g, p as [[x| | |] i], q as [[y| | |] j]; entries_cases. Qed.
Lemma wins_trans g p q r : wins g p q = true -> wins g q r = true -> wins g p r = true.
Proof. destruct g, p as [[x| | |] i], q as [[y| | |] j], r as [[z| | |] k]; entries_cases. Qed.
Lemma wins_antisym g p q : wins g p q = true -> wins g q p = true -> p = q.
Proof.
  destruct g, p as [[x| | |] i], q as [[y| | |] j]; entries_cases; intros _ _;
    try (assert (i = j) by lra; subst); try (assert (x = y) by lra; subst); reflexivity.
Qed.

Section Network.
Context (largest : bool).
(* The terms, as src/ir/monoids.cpp traces them. *)
Definition wins_term (x i y j : term) : term :=
  select (is_nan x) (or_ (not_ (is_nan y)) (or_ (less_ i j) (equal_ i j)))
                    (and_ (not_ (is_nan y)) (or_ (if largest then less_ y x else less_ x y) (and_ (equal_ x y) (or_ (less_ i j) (equal_ i j))))).
Notation pair_ := (term * term)%type.
Definition keeps (o x : pair_) : term := wins_term (fst o) (snd o) (fst x) (snd x).
Fixpoint sink_term (x : pair_) (out : list pair_) : list pair_ :=
  match out with
  | [] => []
  | o :: r => (select (keeps o x) (fst o) (fst x), select (keeps o x) (snd o) (snd x))
              :: sink_term (select (keeps o x) (fst x) (fst o), select (keeps o x) (snd x) (snd o)) r
  end.
Fixpoint network_term (j : nat) (out bs : list pair_) : list pair_ :=
  match bs with [] => out | b :: bs => network_term (S j) (firstn j out ++ sink_term b (skipn j out)) bs end.
Definition operands (k side : nat) : list pair_ := map (fun r => (v (2 * r + side), v (2 * (k + r) + side))) (seq 0 k).
Definition topk_combine (k : nat) : list term :=
  let net := network_term 0 (operands k 0) (operands k 1) in map fst net ++ map snd net.
Definition best_row (k : nat) : row :=
  Row (repeat real k ++ repeat place k) (repeat (if largest then ninf else inf) k ++ repeat (lit INT64_MAX 0) k) (topk_combine k) true.

Definition flat (l : list entry) : list xr := map (fun p => emb (fst p)) l ++ map (fun p => Fin (snd p)) l.
Definition bot : entry := (if largest then Bottom else Top, IZR INT64_MAX).

Lemma skipn_next {A} n : forall (l : list A) p r, skipn n l = p :: r -> skipn (S n) l = r.
Proof. induction n as [|n IH]; intros [|x l] p r E; simpl in *; try discriminate; [now inversion E|eauto]. Qed.
Lemma forall2_firstn {A B} (P : A -> B -> Prop) n : forall l m, Forall2 P l m -> Forall2 P (firstn n l) (firstn n m).
Proof. induction n; intros l m F; [constructor|]. inversion F; subst; constructor; auto. Qed.
Lemma forall2_skipn {A B} (P : A -> B -> Prop) n : forall l m, Forall2 P l m -> Forall2 P (skipn n l) (skipn n m).
Proof. induction n; intros l m F; auto. inversion F; subst; [constructor|]. simpl; auto. Qed.
Lemma flat_value l n p : nth_error l n = Some p -> nth_error (flat l) n = Some (emb (fst p)).
Proof.
  intros E. unfold flat. rewrite nth_error_app1; [now apply map_nth_error with (f := fun p => emb (fst p))|].
  rewrite map_length. apply (proj1 (nth_error_Some l n)). rewrite E. discriminate.
Qed.
Lemma flat_index l n p : nth_error l n = Some p -> nth_error (flat l) (length l + n) = Some (Fin (snd p)).
Proof.
  intros E. unfold flat. rewrite nth_error_app2 by (rewrite map_length; lia). rewrite map_length.
  replace (length l + n - length l)%nat with n by lia. now apply map_nth_error with (f := fun p => Fin (snd p)).
Qed.
Lemma even_twice n s : (s <= 1)%nat -> Nat.even (2 * n + s) = Nat.eqb s 0 /\ Nat.div2 (2 * n + s) = n.
Proof.
  intros S. destruct s as [|[|s]]; [| |lia].
  - rewrite Nat.add_0_r. split; [apply Nat.even_mul|apply Nat.div2_double].
  - rewrite Nat.add_1_r. split; [rewrite Nat.even_succ, Nat.odd_mul; reflexivity|apply Nat.div2_succ_double].
Qed.

Section Meaning.
Context (a b : list entry).
Notation ev t := (eval (operand (flat a) (flat b)) none_var none_read t).
Definition means (t : pair_) (p : entry) : Prop := ev (fst t) = Some (emb (fst p)) /\ ev (snd t) = Some (Fin (snd p)).
Lemma wins_means o x p q : means o p -> means x q -> ev (keeps o x) = Some (Tf (wins largest p q)).
Proof.
  intros [O1 O2] [X1 X2]. unfold keeps, wins_term. destruct largest; cbn [eval lift1 lift2]; rewrite O1, O2, X1, X2;
    unfold lift1, lift2, truth2, xbool, wins, xtrue; destruct (xisnan (emb (fst p))); reflexivity.
Qed.
Lemma sink_means outs : forall ps x q, Forall2 means outs ps -> means x q ->
  Forall2 means (sink_term x outs) (sink (wins largest) q ps).
Proof.
  induction outs as [|o outs IH]; intros ps x q F X; inversion F; subst; [constructor|].
  pose proof (wins_means o x y q H1 X) as W. destruct H1 as [O1 O2]. destruct X as [X1 X2].
  cbn [sink_term sink]. destruct (wins largest y q); constructor.
  - split; cbn [fst snd eval]; rewrite W; cbn [xtrue]; assumption.
  - apply IH; auto. split; cbn [fst snd eval]; rewrite W; cbn [xtrue]; assumption.
  - split; cbn [fst snd eval]; rewrite W; cbn [xtrue]; assumption.
  - apply IH; auto. split; cbn [fst snd eval]; rewrite W; cbn [xtrue]; assumption.
Qed.
Lemma network_means ts : forall j outs ps qs, Forall2 means outs ps -> Forall2 means ts qs ->
  Forall2 means (network_term j outs ts) (network (wins largest) j ps qs).
Proof.
  induction ts as [|t ts IH]; intros j outs ps qs F G; inversion G; subst; simpl; auto.
  apply IH; auto. apply Forall2_app; [now apply forall2_firstn|]. apply sink_means; auto. now apply forall2_skipn.
Qed.
Context (k : nat).
Hypothesis la : length a = k.
Hypothesis lb : length b = k.
Lemma operands_mean side l : (side <= 1)%nat -> l = (if Nat.eqb side 0 then a else b) -> length l = k ->
  Forall2 means (operands k side) l.
Proof.
  intros Q E L. unfold operands. rewrite <- L.
  assert (G : forall m n, firstn m (skipn n l) = firstn m (skipn n l) -> (n + m <= length l)%nat ->
    Forall2 means (map (fun r => (v (2 * r + side), v (2 * (length l + r) + side))) (seq n m)) (firstn m (skipn n l))).
  { induction m as [|m IH]; intros n _ B; [constructor|].
    destruct (skipn n l) as [|p r] eqn:K. { pose proof (skipn_length n l) as Z. rewrite K in Z. simpl in Z. lia. }
    assert (N : nth_error l n = Some p).
    { rewrite <- (firstn_skipn n l), nth_error_app2 by (rewrite firstn_length; lia).
      rewrite firstn_length, Nat.min_l by lia. rewrite K. now rewrite Nat.sub_diag. }
    simpl seq. rewrite firstn_cons. cbn [map]. constructor.
    - destruct (even_twice n side Q) as [E1 D1]. destruct (even_twice (length l + n) side Q) as [E2 D2].
      unfold means. cbn [fst snd eval]. unfold operand. rewrite E1, D1, E2, D2.
      pose proof (flat_value l n p N) as V. pose proof (flat_index l n p N) as I. rewrite E in V, I.
      rewrite <- E in I at 2. destruct (Nat.eqb side 0); auto.
    - replace r with (skipn (S n) l); [apply IH; auto; lia|].
      exact (skipn_next _ _ _ _ K). }
  specialize (G (length l) 0%nat eq_refl). simpl skipn in G. rewrite firstn_all in G. apply G. lia.
Qed.
Lemma flat_of ts ps : Forall2 means ts ps -> map (fun t => get (ev t)) (map fst ts ++ map snd ts) = flat ps.
Proof.
  intros F.
  lazymatch goal with |- ?l = _ => change (l = map (fun p => emb (fst p)) ps ++ map (fun p => Fin (snd p)) ps) end.
  rewrite map_app, !map_map. f_equal.
  - induction F as [|t p ts ps [M _] F IH]; cbn [map]; auto. cbv beta. rewrite M, IH. reflexivity.
  - induction F as [|t p ts ps [_ M] F IH]; cbn [map]; auto. cbv beta. rewrite M, IH. reflexivity.
Qed.
Theorem best_join : join (best_row k) (flat a) (flat b) = flat (network (wins largest) 0 a b).
Proof.
  unfold join, best_row, topk_combine. cbn [combine]. apply flat_of. apply network_means.
  - apply operands_mean; auto.
  - apply operands_mean; auto.
Qed.
End Meaning.

(* The printed monoid is the padded top-k (bottom-k when [largest] is false): its unit, and its combine on every pair of states that occur. *)
Definition best (k : nat) : monoid (list entry) :=
  padded_topk (wins largest) (wins_total largest) (wins_trans largest) (wins_antisym largest) bot k.
Theorem best_row_is_best k a b : ok (best k) a -> ok (best k) b ->
  unit_of (best_row k) = flat (e (best k)) /\ join (best_row k) (flat a) (flat b) = flat (op (best k) a b).
Proof.
  intros A B. pose proof A as [_ [LA _]]. pose proof B as [_ [LB _]]. split.
  - unfold unit_of, best_row, flat. cbn [identity e best padded_topk]. unfold bot. rewrite map_app.
    f_equal; clear - k; destruct largest; induction k as [|n IH]; cbn [repeat map]; try reflexivity; rewrite IH; reflexivity.
  - rewrite (best_join a b k) by auto. f_equal. symmetry. now apply padded_topk_network.
Qed.
(* A lift: one entry in front, the rest empty. *)
Theorem best_lift_ok k p : (0 < k)%nat -> snd p <= IZR INT64_MAX -> ok (best k) (p :: repeat bot (k - 1)).
Proof.
  intros K P. assert (W : wins largest p bot = true).
  { unfold bot. destruct largest, p as [[x| | |] i]; simpl in P; entries_cases. }
  repeat split.
  - constructor; [apply bots_sorted; auto using wins_total|]. apply Forall_forall. intros x X. apply repeat_spec in X. now subst.
  - simpl. rewrite repeat_length. lia.
  - constructor; auto. apply bots_below. auto using wins_total.
Qed.
End Network.
(* Rows of the table: top-k, and the arg-extremes as the case of one place. *)
Definition topk_row (k : nat) : row := best_row true k.
Definition argmax_row : row := best_row true 1.
Definition argmin_row : row := best_row false 1.
Theorem topk_row_is_topk k a b : ok (best true k) a -> ok (best true k) b ->
  join (topk_row k) (flat a) (flat b) = flat (op (best true k) a b).
Proof. intros A B. now apply best_row_is_best. Qed.
