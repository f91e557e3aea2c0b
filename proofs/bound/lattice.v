(* The discrete Hoelder-Brascamp-Lieb inequality of given linear views, from a derivation that is checked by computing:
   a sum of submodularities of entropy, each over rows of integers whose spans are compared by elimination. *)
From Coq Require Import Reals Lra List Arith Lia Bool ZArith QArith Qreals.
From Tang Require Import sums.rsum bound.entropy.
Import ListNotations.
Open Scope Z_scope.

(* Points and rows are lists of integers; a matrix is a list of rows. *)
Definition vector := list Z.
Definition matrix := list vector.
Fixpoint dot (a b : vector) : Z := match a, b with x :: a, y :: b => x * y + dot a b | _, _ => 0 end.
Fixpoint combine2 (j : Z) (a : vector) (k : Z) (b : vector) : vector :=      (* j a + k b *)
  match a, b with
  | x :: a, y :: b => j * x + k * y :: combine2 j a k b
  | _, [] => map (Z.mul j) a | [], _ => map (Z.mul k) b
  end.
Definition is_zero (a : vector) : bool := forallb (Z.eqb 0) a.
(* The first entry that is not 0, and its place. *)
Fixpoint lead (a : vector) : option (nat * Z) :=
  match a with
  | [] => None
  | x :: a => if x =? 0 then match lead a with Some (k, y) => Some (S k, y) | None => None end else Some (O, x)
  end.
(* v without the lead of r. *)
Definition reduce (v r : vector) : vector :=
  match lead r with Some (k, x) => combine2 x v (- nth k v 0) r | None => v end.
Definition reduce_by (e : matrix) (v : vector) : vector := fold_left reduce e v.
Definition echelon (rows : matrix) : matrix := fold_left (fun e r => e ++ [reduce_by e r]) rows [].
Definition rank (rows : matrix) : nat := length (filter (fun r => negb (is_zero r)) (echelon rows)).
Definition spans (rows : matrix) (more : matrix) : bool :=
  let e := echelon rows in forallb (fun r => is_zero (reduce_by e r)) more.
(* The image of the span of `of` under a matrix. *)
Definition image (rows : matrix) (of : matrix) : matrix := map (fun h => map (fun r => dot r h) rows) of.
Fixpoint unit_row (i : nat) : vector := match i with O => [1] | S i => 0 :: unit_row i end.
Definition units (d : nat) : matrix := map unit_row (seq 0 d).

Lemma dot_nil_r a : dot a [] = 0. Proof. now destruct a. Qed.
Lemma dot_map j a : forall x, dot (map (Z.mul j) a) x = j * dot a x.
Proof. induction a as [|y a IH]; intros [|z x]; simpl; try lia. rewrite IH. ring. Qed.
Lemma dot_combine j k a : forall b x, dot (combine2 j a k b) x = j * dot a x + k * dot b x.
Proof.
  induction a as [|y a IH]; intros [|z b] [|w x]; simpl; try lia.
  - rewrite dot_map. ring.
  - rewrite dot_map. ring.
  - rewrite IH. ring.
Qed.
Lemma zero_dot a : is_zero a = true -> forall x, dot a x = 0.
Proof.
  unfold is_zero. induction a as [|y a IH]; intros H [|z x]; cbn [dot]; auto. cbn [forallb] in H.
  apply andb_prop in H as [Y H]. apply Z.eqb_eq in Y. subst y. rewrite IH by auto. ring.
Qed.
Lemma lead_nonzero a k x : lead a = Some (k, x) -> x <> 0.
Proof.
  revert k. induction a as [|y a IH]; simpl; intros k H; [discriminate|]. destruct (Z.eqb_spec y 0).
  - destruct (lead a) as [[j z]|]; inversion H; subst. now apply (IH j).
  - inversion H; subst. auto.
Qed.
Section Vanish.
Context (x : vector).
Lemma reduce_forth v r : dot r x = 0 -> dot v x = 0 -> dot (reduce v r) x = 0.
Proof. intros R V. unfold reduce. destruct (lead r) as [[k y]|]; auto. rewrite dot_combine, R, V. ring. Qed.
Lemma reduce_back v r : dot r x = 0 -> dot (reduce v r) x = 0 -> dot v x = 0.
Proof.
  intros R. unfold reduce. destruct (lead r) as [[k y]|] eqn:L; auto. rewrite dot_combine, R. intros H.
  pose proof (lead_nonzero _ _ _ L). nia.
Qed.
Lemma reduce_by_forth e : (forall r, In r e -> dot r x = 0) -> forall v, dot v x = 0 -> dot (reduce_by e v) x = 0.
Proof. induction e as [|r e IH]; simpl; intros H v V; auto. apply IH; auto. apply reduce_forth; auto. Qed.
Lemma reduce_by_back e : (forall r, In r e -> dot r x = 0) -> forall v, dot (reduce_by e v) x = 0 -> dot v x = 0.
Proof. induction e as [|r e IH]; simpl; intros H v V; auto. apply (reduce_back v r); auto. Qed.
Lemma echelon_vanishes rows : (forall r, In r rows -> dot r x = 0) -> forall r, In r (echelon rows) -> dot r x = 0.
Proof.
  intros H. assert (A : forall e, (forall r, In r e -> dot r x = 0) ->
    forall r, In r (fold_left (fun e r => e ++ [reduce_by e r]) rows e) -> dot r x = 0).
  { induction rows as [|r0 rows IH]; cbn [fold_left]; intros e G; auto. apply IH.
    - intros r I. apply H. now right.
    - intros r I. apply in_app_or in I as [I|[<-|[]]]; auto. apply reduce_by_forth; auto. apply H. now left. }
  apply A. intros r [].
Qed.
Theorem spans_sound rows more : spans rows more = true -> (forall r, In r rows -> dot r x = 0) ->
  forall r, In r more -> dot r x = 0.
Proof.
  unfold spans. rewrite forallb_forall. intros S H r I. apply (reduce_by_back (echelon rows)).
  - now apply echelon_vanishes.
  - now apply zero_dot, S.
Qed.
End Vanish.

(* What two points have in common. *)
Definition sees (A : matrix) (p q : vector) : bool := forallb (fun r => dot r p =? dot r q) A.
Definition view (A : matrix) (p : vector) : vector := map (fun r => dot r p) A.
Lemma sees_equivalence A : equivalence (sees A).
Proof.
  split.
  - intro p. apply forallb_forall. intros. apply Z.eqb_refl.
  - intros p q r. unfold sees. induction A as [|a A IH]; simpl; auto. intros H. apply andb_prop in H as [H1 H2].
    apply Z.eqb_eq in H1. now rewrite H1, (IH H2).
Qed.
Definition minus (p q : vector) : vector := combine2 1 p (-1) q.
Lemma dot_sym a : forall b, dot a b = dot b a.
Proof. induction a as [|x a IH]; intros [|y b]; simpl; auto. rewrite IH. ring. Qed.
Lemma sees_minus A p q : sees A p q = true <-> forall r, In r A -> dot r (minus p q) = 0.
Proof.
  assert (D : forall r, dot r (minus p q) = dot r p - dot r q).
  { intro r. unfold minus. rewrite dot_sym, dot_combine, (dot_sym p), (dot_sym q). ring. }
  unfold sees. rewrite forallb_forall. split; intros H r I; specialize (H r I).
  - apply Z.eqb_eq in H. rewrite D. lia.
  - rewrite D in H. apply Z.eqb_eq. lia.
Qed.
Lemma spans_sees A B p q : spans A B = true -> sees A p q = true -> sees B p q = true.
Proof. rewrite !sees_minus. intros S H. now apply (spans_sound _ A B). Qed.
Lemma sees_app A B p q : sees (A ++ B) p q = sees A p q && sees B p q.
Proof. apply forallb_app. Qed.
Lemma view_sees A p q : view A p = view A q -> sees A p q = true.
Proof.
  unfold view, sees. induction A as [|r A IH]; cbn [map forallb]; auto. intros H. injection H as H1 H2.
  rewrite H1, Z.eqb_refl. now apply IH.
Qed.
Lemma dot_unit i : forall p, dot (unit_row i) p = nth i p 0.
Proof.
  induction i as [|i IH]; intros [|x p]; cbn [unit_row dot nth]; auto; [ring|]. rewrite IH. ring.
Qed.
Lemma units_apart d p q : length p = d -> length q = d -> sees (units d) p q = true -> p = q.
Proof.
  intros P Q S. apply (nth_ext p q 0 0); [congruence|]. intros n L. unfold sees in S. rewrite forallb_forall in S.
  assert (K := S (unit_row n) ltac:(apply in_map, in_seq; lia)). apply Z.eqb_eq in K. now rewrite !dot_unit in K.
Qed.

(* h(one) + h(two) >= h(both) + h(neither), `weight` times; matrices by number. *)
Record step := Step { weight : Q; one : nat; two : nat; both_ : nat; neither_ : nat }.
Definition at_ (l : list matrix) n := nth n l [].
Definition step_ok (l : list matrix) (s : step) : bool :=
  Qle_bool 0 (weight s) && spans (at_ l (one s) ++ at_ l (two s)) (at_ l (both_ s)) &&
  spans (at_ l (one s)) (at_ l (neither_ s)) && spans (at_ l (two s)) (at_ l (neither_ s)).
(* A budget: a rational for each matrix. *)
Fixpoint spend (l : list Q) (n : nat) (q : Q) : list Q :=
  match l, n with
  | [], _ => [] | a :: l, O => Qred (a + q)%Q :: l | a :: l, S n => a :: spend l n q
  end.
Definition pay (l : list Q) (s : step) : list Q :=
  spend (spend (spend (spend l (one s) (- weight s)%Q) (two s) (- weight s)%Q) (both_ s) (weight s)) (neither_ s) (weight s).
Fixpoint earn (l : list Q) (sums : list (nat * Q)) : list Q :=
  match sums with [] => l | (n, q) :: sums => earn (spend l n q) sums end.
(* A derivation of |E| <= prod |view_j E|^s_j prod (values of coordinate i)^t_i for points of d coordinates. The view j
   shows at least the matrix `views` j, the coordinate i at least the matrix `coordinates` i; `whole` shows everything.
   A number that is no place in `matrices` is the matrix without rows. *)
Record derivation := Derivation {
  matrices : list matrix; of_views : list nat; of_coordinates : list nat; whole : nat; steps : list step
}.
Section Derivation.
Context (d : nat) (views : list matrix) (s t : list Q) (c : derivation).
Definition budget : list Q :=
  earn (map (fun _ => 0%Q) (matrices c))
    (combine (of_views c) s ++ combine (of_coordinates c) t ++ [(whole c, (-1)%Q)]).
Definition derives : bool :=
  (length (of_views c) =? length views)%nat && (length s =? length views)%nat &&
  (length (of_coordinates c) =? d)%nat && (length t =? d)%nat &&
  forallb (Qle_bool 0) s && forallb (Qle_bool 0) t &&
  forallb (fun p => spans (fst p) (at_ (matrices c) (snd p))) (combine views (of_views c)) &&
  forallb (fun p => spans [unit_row (fst p)] (at_ (matrices c) (snd p))) (combine (seq 0 d) (of_coordinates c)) &&
  spans (at_ (matrices c) (whole c)) (units d) &&
  forallb (step_ok (matrices c)) (steps c) &&
  forallb (Qle_bool 0) (fold_left pay (steps c) budget).

Section Sound.
Hypothesis ok : derives = true.
Context (E : list vector).
Hypothesis distinct : NoDup E.
Hypothesis dimension : forall p, In p E -> length p = d.
Hypothesis some : E <> [].
Open Scope R_scope.
Definition h n := entropy E (sees (at_ (matrices c) n)).
(* The value of a budget whose first place is k. *)
Fixpoint worth (k : nat) (b : list Q) : R := match b with [] => 0 | a :: b => Q2R a * h k + worth (S k) b end.
Lemma Q2R_red q : Q2R (Qred q) = Q2R q.
Proof. apply Qeq_eqR, Qred_correct. Qed.
Lemma h_blind n : (length (matrices c) <= n)%nat -> h n = 0.
Proof. intros L. unfold h, at_. rewrite nth_overflow by exact L. apply entropy_blind. reflexivity. Qed.
Lemma h_pos n : 0 <= h n.
Proof.
  rewrite <- (entropy_blind E (sees [])) by reflexivity. apply entropy_le; try apply sees_equivalence. reflexivity.
Qed.
Lemma spend_length b : forall n q, length (spend b n q) = length b.
Proof. induction b as [|a b IH]; intros [|n] q; simpl; auto. Qed.
Lemma spend_worth b : forall k n q, (length (matrices c) <= k + length b)%nat ->
  worth k (spend b n q) = worth k b + Q2R q * h (k + n).
Proof.
  induction b as [|a b IH]; intros k [|n] q L; cbn [length] in L; cbn [spend worth].
  - rewrite h_blind by lia. ring.
  - rewrite h_blind by lia. ring.
  - rewrite Q2R_red, Q2R_plus, Nat.add_0_r. ring.
  - rewrite IH by lia. rewrite Nat.add_succ_r. cbn [Nat.add]. ring.
Qed.
Lemma zeros_worth (l : list matrix) : forall k, worth k (map (fun _ => 0%Q) l) = 0.
Proof. induction l as [|m l IH]; intros k; simpl; auto. rewrite IH. unfold Q2R; simpl. lra. Qed.
Lemma earn_worth sums : forall b, (length (matrices c) <= length b)%nat ->
  worth 0 (earn b sums) = worth 0 b + rsum (fun p => Q2R (snd p) * h (fst p)) sums /\ length (earn b sums) = length b.
Proof.
  induction sums as [|[n q] l IH]; intros b L; simpl; [split; [ring|auto]|].
  destruct (IH (spend b n q)) as [W N]; [rewrite spend_length; auto|]. rewrite W, N, spend_length. split; auto.
  rewrite spend_worth by (simpl; auto). fold (rsum (fun p => Q2R (snd p) * h (fst p)) l). simpl. ring.
Qed.
Lemma Qle_R a b : Qle_bool a b = true -> Q2R a <= Q2R b.
Proof. intros H. apply Qle_Rle, Qle_bool_iff, H. Qed.
Lemma Q2R_0 : Q2R 0 = 0. Proof. unfold Q2R; simpl; lra. Qed.
Lemma step_gain st : step_ok (matrices c) st = true -> 0 <= Q2R (weight st) /\ h (both_ st) + h (neither_ st) <= h (one st) + h (two st).
Proof.
  unfold step_ok. intros H. repeat (apply andb_prop in H as [H ?]). split.
  - rewrite <- Q2R_0. now apply Qle_R.
  - apply Rle_trans with (entropy E (both (sees (at_ (matrices c) (one st))) (sees (at_ (matrices c) (two st)))) + h (neither_ st)).
    + apply Rplus_le_compat_r. apply entropy_le; [apply sees_equivalence| |].
      * apply both_equivalence; apply sees_equivalence.
      * intros p q B. apply (spans_sees _ _ p q H2). rewrite sees_app. exact B.
    + apply entropy_submodular; try apply sees_equivalence; intros p q B; [apply (spans_sees _ _ p q H1 B)|apply (spans_sees _ _ p q H0 B)].
Qed.
Lemma pay_worth st b : step_ok (matrices c) st = true -> (length (matrices c) <= length b)%nat ->
  worth 0 (pay b st) <= worth 0 b /\ length (pay b st) = length b.
Proof.
  intros O L. unfold pay. rewrite !spend_length. split; auto.
  rewrite !spend_worth by (rewrite ?spend_length; simpl; auto). rewrite Q2R_opp. simpl.
  destruct (step_gain st O) as [W G]. nra.
Qed.
Lemma paid_worth l : forall b, forallb (step_ok (matrices c)) l = true -> (length (matrices c) <= length b)%nat ->
  worth 0 (fold_left pay l b) <= worth 0 b.
Proof.
  induction l as [|st l IH]; intros b H L; cbn [fold_left]; [lra|]. cbn [forallb] in H. apply andb_prop in H as [O H].
  destruct (pay_worth st b O L) as [W N]. apply Rle_trans with (worth 0 (pay b st)); auto. apply IH; auto. now rewrite N.
Qed.
Lemma positive_worth b : forallb (Qle_bool 0) b = true -> forall k, 0 <= worth k b.
Proof.
  induction b as [|a b IH]; intros H k; simpl in *; [lra|]. apply andb_prop in H as [A H]. specialize (IH H (S k)).
  apply Qle_R in A. rewrite Q2R_0 in A. pose proof (h_pos k). nra.
Qed.
(* Terms paid by lists: the entropy of each is at most ln of how many values there are. *)
Lemma paid_by (ns : list nat) (qs : list Q) (most : nat -> R) :
  forallb (Qle_bool 0) qs = true -> length ns = length qs ->
  (forall k, (k < length ns)%nat -> h (nth k ns O) <= total E * most k) ->
  rsum (fun p => Q2R (snd p) * h (fst p)) (combine ns qs) <=
  total E * rsum (fun k => Q2R (nth k qs 0%Q) * most k) (seq 0 (length qs)).
Proof.
  revert qs most. induction ns as [|n ns IH]; intros [|q qs] most P L B; try discriminate L.
  - unfold rsum. simpl. lra.
  - cbn [forallb] in P. apply andb_prop in P as [P0 P]. apply Qle_R in P0. rewrite Q2R_0 in P0.
    cbn [length] in L, B. injection L as L'. assert (B0 := B O ltac:(lia)). cbn [nth] in B0.
    assert (R := IH qs (fun k => most (S k)) P L' (fun k K => B (S k) ltac:(lia))).
    cbn [combine length seq]. rewrite !rsum_cons, <- seq_shift, rsum_map. cbn [fst snd nth] in *.
    assert (Q2R q * h n <= Q2R q * (total E * most O)) by (apply Rmult_le_compat_l; auto). lra.
Qed.
(* The bound: at most `touched j` values of view j, at most `values i` of coordinate i. *)
Theorem lattice_inequality (touched : nat -> list vector) (values : nat -> list vector) :
  (forall j p, (j < length views)%nat -> In p E -> In (view (nth j views []) p) (touched j)) ->
  (forall i p, (i < d)%nat -> In p E -> In (view [unit_row i] p) (values i)) ->
  ln (INR (length E)) <=
  rsum (fun j => Q2R (nth j s 0%Q) * ln (INR (length (touched j)))) (seq 0 (length views)) +
  rsum (fun i => Q2R (nth i t 0%Q) * ln (INR (length (values i)))) (seq 0 d).
Proof.
  intros T V. pose proof ok as K. unfold derives in K.
  apply andb_prop in K as [K Left]. apply andb_prop in K as [K Steps]. apply andb_prop in K as [K Whole].
  apply andb_prop in K as [K Cs]. apply andb_prop in K as [K Vs]. apply andb_prop in K as [K Tp]. apply andb_prop in K as [K Sp].
  apply andb_prop in K as [K Lt]. apply andb_prop in K as [K Lc]. apply andb_prop in K as [Lv Ls].
  apply Nat.eqb_eq in Lv, Ls, Lc, Lt.
  assert (Z : (length (matrices c) <= length (map (fun _ : matrix => 0%Q) (matrices c)))%nat) by (rewrite map_length; auto).
  destruct (earn_worth (combine (of_views c) s ++ combine (of_coordinates c) t ++ [(whole c, (-1)%Q)]) _ Z) as [W N].
  assert (B : 0 <= worth 0 budget).
  { apply Rle_trans with (worth 0 (fold_left pay (steps c) budget)); [now apply positive_worth|].
    apply paid_worth; auto. unfold budget. rewrite N. exact Z. }
  unfold budget in B. rewrite W, zeros_worth, !rsum_app in B. simpl in B.
  assert (M : Q2R (-1) = -1) by (unfold Q2R; simpl; lra). rewrite M in B.
  assert (Hw : total E * ln (total E) <= h (whole c)).
  { apply entropy_sharp; auto; [|apply sees_equivalence]. intros p q P Q S. apply (units_apart d); auto.
    now apply (spans_sees _ _ p q Whole). }
  assert (Hv := paid_by (of_views c) s (fun j => ln (INR (length (touched j)))) Sp ltac:(lia)).
  assert (Hc := paid_by (of_coordinates c) t (fun i => ln (INR (length (values i)))) Tp ltac:(lia)).
  rewrite forallb_forall in Vs, Cs. rewrite Ls in Hv. rewrite Lt in Hc.
  assert (P : 0 < total E).
  { rewrite total_is. apply lt_0_INR. clear -some. destruct E; [congruence|simpl; lia]. }
  rewrite <- (total_is E).
  assert (Dec : forall a b : vector, {a = b} + {a <> b}) by (apply list_eq_dec, Z.eq_dec).
  assert (Gv : rsum (fun p => Q2R (snd p) * h (fst p)) (combine (of_views c) s) <=
    total E * rsum (fun k => Q2R (nth k s 0%Q) * ln (INR (length (touched k)))) (seq 0 (length views))).
  { apply Hv. intros j J. apply (entropy_image E Dec (view (nth j views [])) (touched j)); [apply sees_equivalence| | |exact some].
    - intros p q G. apply (spans_sees (nth j views [])); [|now apply view_sees].
      apply (Vs (nth j views [], nth j (of_views c) O)). rewrite <- combine_nth by lia. apply nth_In. rewrite combine_length. lia.
    - intros p I. apply T; auto. lia. }
  assert (Gc : rsum (fun p => Q2R (snd p) * h (fst p)) (combine (of_coordinates c) t) <=
    total E * rsum (fun k => Q2R (nth k t 0%Q) * ln (INR (length (values k)))) (seq 0 d)).
  { apply Hc. intros i I. apply (entropy_image E Dec (view [unit_row i]) (values i)); [apply sees_equivalence| | |exact some].
    - intros p q G. apply (spans_sees [unit_row i]); [|now apply view_sees].
      apply (Cs (i, nth i (of_coordinates c) O)).
      assert (X : (i, nth i (of_coordinates c) O) = nth i (combine (seq 0 d) (of_coordinates c)) (O, O)).
      { rewrite combine_nth by (rewrite seq_length; lia). rewrite seq_nth by lia. reflexivity. }
      rewrite X. apply nth_In. rewrite combine_length, seq_length. lia.
    - intros p Ip. apply V; auto. lia. }
  apply Rmult_le_reg_l with (total E); auto. lra.
Qed.
End Sound.
End Derivation.
