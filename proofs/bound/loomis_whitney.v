(* Loomis-Whitney for any finite set of points, by counting pairs in fibres. *)
From mathcomp Require Import all_ssreflect.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Lemma square_of_sum (I : finType) (P : {set I}) (f : I -> nat) :
  (\sum_(i in P) f i) ^ 2 <= #|P| * \sum_(i in P) f i ^ 2.
Proof.
rewrite -mulnn big_distrlr /= -(leq_pmul2l (isT : 0 < 2)) !mul2n -!addnn.
have S : #|P| * (\sum_(i in P) f i ^ 2) = \sum_(i in P) \sum_(j in P) f i ^ 2.
  by rewrite big_distrr /=; apply: eq_bigr => i _; rewrite sum_nat_const.
have S' : #|P| * (\sum_(i in P) f i ^ 2) = \sum_(i in P) \sum_(j in P) f j ^ 2.
  by rewrite sum_nat_const.
rewrite {1}S S' -!big_split /=; apply: leq_sum => i _; rewrite -!big_split /=.
apply: leq_sum => j _; have H := nat_Cauchy (f i) (f j); rewrite mul2n -addnn in H.
by apply: leq_trans H _.
Qed.

Section LoomisWhitney.
Variables (A B C : finType) (E : {set A * B * C}).
Definition pab := [set p.1 | p in E].
Definition pac := [set (p.1.1, p.2) | p in E].
Definition pbc := [set (p.1.2, p.2) | p in E].
Definition fibre (q : A * B) := [set c | (q, c) \in E].
Lemma card_by_fibres : #|E| = \sum_(q in pab) #|fibre q|.
Proof.
rewrite -sum1_card (partition_big (fun p : A * B * C => p.1) (mem pab)) /=; last first.
  by move=> p pE; apply/imsetP; exists p.
apply: eq_bigr => q _; rewrite -sum1_card (reindex_onto (fun c => (q, c)) snd) /=.
  by apply: eq_bigl => c; rewrite inE !eqxx !andbT.
by move=> [q' c] /andP [_ /eqP /= ->].
Qed.
Definition pairs := [set t : A * B * (C * C) | ((t.1, t.2.1) \in E) && ((t.1, t.2.2) \in E)].
Lemma card_pairs : #|pairs| = \sum_(q in pab) #|fibre q| ^ 2.
Proof.
rewrite -sum1_card (partition_big (fun t : A * B * (C * C) => t.1) (mem pab)) /=; last first.
  by move=> t; rewrite inE => /andP [h _]; apply/imsetP; exists (t.1, t.2.1).
apply: eq_bigr => q _; rewrite -mulnn -cardsX -sum1_card (reindex_onto (fun c => (q, c)) snd) /=.
  by apply: eq_bigl => -[c c']; rewrite !inE /= !eqxx !andbT.
by move=> [q' c] /andP [_ /eqP /= ->].
Qed.
Theorem loomis_whitney : #|E| ^ 2 <= #|pab| * (#|pac| * #|pbc|).
Proof.
apply: (leq_trans (n := #|pab| * #|pairs|)); first by rewrite card_by_fibres card_pairs square_of_sum.
rewrite leq_mul2l -cardsX; apply/orP; right.
pose g (t : A * B * (C * C)) := ((t.1.1, t.2.1), (t.1.2, t.2.2)).
have gi : injective g by move=> [[a b] [c d]] [[a' b'] [c' d']] [] -> -> -> ->.
rewrite -(card_imset _ gi); apply: subset_leq_card; apply/subsetP => y /imsetP [t tq ->].
move: tq; rewrite inE => /andP [h1 h2]; rewrite inE /=; apply/andP; split; apply/imsetP.
  by exists (t.1, t.2.1).
by exists (t.1, t.2.2).
Qed.
End LoomisWhitney.

(* 27 a b c <= (a + b + c)^3. *)
Lemma amgm3 a b c : 27 * (a * (b * c)) <= (a + b + c) ^ 3.
Proof.
have key x y z : x <= y -> y <= z -> 27 * (x * (y * z)) <= (x + y + z) ^ 3.
  move=> /subnKC <- /subnKC <-; set p := y - x; set q := z - (x + p).
  rewrite !expnS expn0 muln1.
  have -> : (x + (x + p) + (x + p + q)) * ((x + (x + p) + (x + p + q)) * (x + (x + p) + (x + p + q)))
     = 27 * (x * ((x + p) * (x + p + q))) + (9 * x * (p * p + p * q + q * q) + (2 * p + q) * (2 * p + q) * (2 * p + q)).
    by ring.
  exact: leq_addr.
have [ab|/ltnW ba] := leqP a b; have [bc|/ltnW cb] := leqP b c; have [ac|/ltnW ca] := leqP a c.
- exact: key.
- exact: key.
- have := key a c b ac cb; have -> : a * (c * b) = a * (b * c) by ring.
  by have -> : a + c + b = a + b + c by ring.
- have := key c a b ca ab; have -> : c * (a * b) = a * (b * c) by ring.
  by have -> : c + a + b = a + b + c by ring.
- have := key b a c ba ac; have -> : b * (a * c) = a * (b * c) by ring.
  by have -> : b + a + c = a + b + c by ring.
- have := key b c a bc ca; have -> : b * (c * a) = a * (b * c) by ring.
  by have -> : b + c + a = a + b + c by ring.
- have := key c b a cb ba; have -> : c * (b * a) = a * (b * c) by ring.
  by have -> : c + b + a = a + b + c by ring.
- have := key c b a cb ba; have -> : c * (b * a) = a * (b * c) by ring.
  by have -> : c + b + a = a + b + c by ring.
Qed.
