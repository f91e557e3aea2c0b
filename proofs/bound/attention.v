(* The traffic of fused attention: one body per (query, key) pair, rows of P words and of Q words. *)
From mathcomp Require Import all_ssreflect.
From Tang Require Import bound.loomis_whitney bound.machine bound.matmul.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Attention.
Variables (I J : finType) (P Q : nat).
(* A query row with its running state holds P words, a key row with its value row Q words. *)
Definition row_word : finType := [finType of (I * 'I_P) + (J * 'I_Q)].
Definition pair : finType := [finType of I * J].
Variable is_state : pred row_word.                           (* which words are accumulators *)
Definition row_operands (t : pair) : {set row_word} :=
  [set w | match w with inl q => q.1 == t.1 | inr k => k.1 == t.2 end].
Notation event := (event row_word pair).
Notation valid := (valid is_state row_operands).
Definition queries (E : {set pair}) := [set t.1 | t in E].
Definition keys (E : {set pair}) := [set t.2 | t in E].
Lemma pairs_bound (E : {set pair}) : #|E| <= #|queries E| * #|keys E|.
Proof.
rewrite -cardsX; apply: subset_leq_card; apply/subsetP => t tE; rewrite inE.
by apply/andP; split; apply/imsetP; exists t.
Qed.
Lemma rows_touched (es : seq event) :
  #|queries (computed es)| * P + #|keys (computed es)| * Q <= #|touched row_operands es|.
Proof.
set E := computed es.
pose A := [set w : row_word | if w is inl q then q.1 \in queries E else false].
pose B := [set w : row_word | if w is inr k then k.1 \in keys E else false].
have cA : #|queries E| * P <= #|A|.
  have inj : injective (fun q : I * 'I_P => inl q : row_word) by move=> x y [].
  have := card_imset (mem (setX (queries E) [set: 'I_P])) inj.
  rewrite cardsX cardsT card_ord => <-; apply: subset_leq_card; apply/subsetP => w /imsetP [q].
  by rewrite inE => /andP [h _] ->; rewrite inE.
have cB : #|keys E| * Q <= #|B|.
  have inj : injective (fun k : J * 'I_Q => inr k : row_word) by move=> x y [].
  have := card_imset (mem (setX (keys E) [set: 'I_Q])) inj.
  rewrite cardsX cardsT card_ord => <-; apply: subset_leq_card; apply/subsetP => w /imsetP [q].
  by rewrite inE => /andP [h _] ->; rewrite inE.
have d : [disjoint A & B].
  by rewrite -setI_eq0; apply/eqP/setP => -[q|k]; rewrite !inE ?andbF.
apply: leq_trans (leq_add cA cB) _.
have -> : #|A| + #|B| = #|A :|: B| by rewrite cardsU (disjoint_setI0 d) cards0 subn0.
apply: subset_leq_card; apply/subsetP => -[q|k]; rewrite !inE ?orbF //= => /imsetP [t tE e];
  by apply/bigcupP; exists t => //; rewrite inE /= e.
Qed.
(* 4 P Q V <= (number of segments) X^2: the footprint of a segment bounds its pairs. *)
Lemma pairs_in_segment (es : seq event) X : #|touched row_operands es| <= X -> 4 * P * Q * #|computed es| <= X ^ 2.
Proof.
move=> t; have h := leq_trans (rows_touched es) t.
set a := #|queries (computed es)| in h *; set b := #|keys (computed es)| in h *.
apply: (leq_trans (n := 4 * ((a * P) * (b * Q)))).
  have -> : 4 * ((a * P) * (b * Q)) = 4 * P * Q * (a * b) by rewrite -!mulnA; congr (_ * _); rewrite [LHS]mulnCA; congr (_ * _); rewrite [RHS]mulnCA; congr (_ * _); rewrite mulnC.
  by rewrite leq_mul2l pairs_bound orbT.
apply: leq_trans (nat_AGM2 _ _) _; by rewrite leq_exp2r.
Qed.
Theorem attention_io M T (es : seq event) : 0 < T -> 0 < P * Q -> valid M (Memory set0 set0) es -> no_alloc es ->
  computed es = setT -> #|I| * #|J| <= ((traffic es %/ T).+1) * ((M + T) ^ 2 %/ (4 * P * Q)).
Proof.
move=> pos pq v na all; rewrite -card_prod -cardsT -all.
have c0 : clean (Memory set0 set0 : memory row_word) by rewrite /clean sub0set.
apply: (segment_count (good := fun s => no_alloc s)) v na => // [p r|m s c vs g small]; first by rewrite no_alloc_cat.
have d0 : 0 < 4 * P * Q by rewrite -mulnA muln_gt0 pq.
rewrite leq_divRL //.
rewrite mulnC; apply: pairs_in_segment; apply: leq_trans (footprint_chain vs g) _; by rewrite leq_add2l.
Qed.
End Attention.
