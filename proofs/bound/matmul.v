(* The traffic of a matmul on a machine with M words of fast memory, for every legal schedule. *)
From mathcomp Require Import all_ssreflect.
From Tang Require Import bound.loomis_whitney bound.machine.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Matmul.
Variables I J K : finType.
(* C[i,j] += A[i,k] B[k,j]: words of C, then A, then B. *)
Definition word : finType := [finType of (I * J) + ((I * K) + (J * K))].
Definition body : finType := [finType of I * J * K].
Definition c_of (t : body) : word := inl t.1.
Definition a_of (t : body) : word := inr (inl (t.1.1, t.2)).
Definition b_of (t : body) : word := inr (inr (t.1.2, t.2)).
Definition operands (t : body) : {set word} := [set c_of t; a_of t; b_of t].
Definition is_out (w : word) := if w is inl _ then true else false.
Notation event := (event word body).
Notation valid := (valid is_out operands).
Definition empty : memory word := Memory set0 set0.

(* The words touched by a set of points are its three projections. *)
Lemma projections (es : seq event) :
  #|pab (computed es)| + (#|pac (computed es)| + #|pbc (computed es)|) <= #|touched operands es|.
Proof.
set E := computed es.
pose fc (q : I * J) : word := inl q. pose fa (q : I * K) : word := inr (inl q). pose fb (q : J * K) : word := inr (inr q).
have ic : injective fc by move=> ? ? []. have ia : injective fa by move=> ? ? []. have ib : injective fb by move=> ? ? [].
rewrite -(card_imset _ ic) -(card_imset _ ia) -(card_imset _ ib).
have dab : [disjoint fa @: pac E & fb @: pbc E].
  by rewrite -setI_eq0; apply/eqP/setP => w; rewrite !inE; apply/negbTE/negP => /andP [/imsetP [x _ ->] /imsetP [y _]].
have dc : [disjoint fc @: pab E & fa @: pac E :|: fb @: pbc E].
  rewrite -setI_eq0; apply/eqP/setP => w; rewrite !inE; apply/negbTE/negP => /andP [/imsetP [x _ ->]].
  by move=> /orP [/imsetP [y _]|/imsetP [y _]].
have -> : #|fa @: pac E| + #|fb @: pbc E| = #|fa @: pac E :|: fb @: pbc E|.
  by rewrite [RHS]cardsU (disjoint_setI0 dab) cards0 subn0.
have -> : #|fc @: pab E| + #|fa @: pac E :|: fb @: pbc E| = #|fc @: pab E :|: (fa @: pac E :|: fb @: pbc E)|.
  by rewrite [RHS]cardsU (disjoint_setI0 dc) cards0 subn0.
apply: subset_leq_card; apply/subsetP => w; rewrite !inE => /or3P [] /imsetP [q /imsetP [t tE ->] ->];
  by apply/bigcupP; exists t => //; rewrite !inE /c_of /a_of /b_of ?eqxx ?orbT.
Qed.
Lemma points_bound (es : seq event) X : #|touched operands es| <= X -> 27 * #|computed es| ^ 2 <= X ^ 3.
Proof.
move=> t; apply: (leq_trans (n := 27 * (#|pab (computed es)| * (#|pac (computed es)| * #|pbc (computed es)|)))).
  by rewrite leq_mul2l loomis_whitney.
apply: leq_trans (amgm3 _ _ _) _; rewrite leq_exp2r // -addnA; exact: leq_trans (projections es) t.
Qed.

(* From segments to the whole: h segments of at most E points each, 27 E^2 <= X^3. *)
Lemma whole h E X V : V <= h * E -> 27 * E ^ 2 <= X ^ 3 -> 27 * V ^ 2 <= h ^ 2 * X ^ 3.
Proof.
move=> v e; apply: (leq_trans (n := h ^ 2 * (27 * E ^ 2))); last by rewrite leq_mul2l e orbT.
by rewrite mulnCA leq_mul2l /= -expnMn leq_exp2r.
Qed.
Lemma largest X : exists E, 27 * E ^ 2 <= X ^ 3 /\ forall n, 27 * n ^ 2 <= X ^ 3 -> n <= E.
Proof.
have ex : exists n, 27 * n ^ 2 <= X ^ 3 by exists 0; rewrite muln0.
have bd n : 27 * n ^ 2 <= X ^ 3 -> n <= X ^ 3.
  move=> h; apply: leq_trans h; apply: leq_trans (leq_pmull (n ^ 2) (isT : 0 < 27)).
  by case: n => // n; rewrite -mulnn leq_pmulr.
by exists (ex_maxn ex bd); case: ex_maxnP => E e m.
Qed.

(* Any reassociation: fresh accumulators are free. Q is the traffic, T any segment length. *)
Theorem matmul_io_any M T (es : seq event) : 0 < T -> valid M empty es -> computed es = setT ->
  27 * (#|I| * #|J| * #|K|) ^ 2 <= ((traffic es %/ T).+1) ^ 2 * (2 * M + T) ^ 3.
Proof.
move=> pos v all; have [E [e big]] := largest (2 * M + T).
have c0 : clean empty by rewrite /clean sub0set.
apply: whole e; rewrite -!card_prod -cardsT -all.
apply: (segment_count (good := fun _ => true)) v _ => // m s c vs _ small.
apply: big; apply: points_bound; apply: leq_trans (footprint_any c vs) _; by rewrite leq_add2l.
Qed.
(* A running value must be present when it is updated (no fresh accumulators): the sharper constant. *)
Theorem matmul_io_chain M T (es : seq event) : 0 < T -> valid M empty es -> no_alloc es -> computed es = setT ->
  27 * (#|I| * #|J| * #|K|) ^ 2 <= ((traffic es %/ T).+1) ^ 2 * (M + T) ^ 3.
Proof.
move=> pos v na all; have [E [e big]] := largest (M + T).
have c0 : clean empty by rewrite /clean sub0set.
apply: whole e; rewrite -!card_prod -cardsT -all.
apply: (segment_count (good := fun s => no_alloc s)) v na => // [p r|m s c vs g small]; first by rewrite no_alloc_cat.
apply: big; apply: points_bound; apply: leq_trans (footprint_chain vs g) _; by rewrite leq_add2l.
Qed.
(* T = 2M: Q >= 2V/sqrt(M) - 2M, squared and without roots. T = 4M for the other model. *)
Corollary matmul_io M (es : seq event) : 0 < M -> valid M empty es -> no_alloc es -> computed es = setT ->
  (#|I| * #|J| * #|K|) ^ 2 <= ((traffic es %/ (2 * M)).+1) ^ 2 * M ^ 3.
Proof.
move=> pos v na all; have := matmul_io_chain (T := 2 * M) _ v na all; rewrite muln_gt0 pos => /(_ isT).
have -> : M + 2 * M = 3 * M by rewrite -{1}(mul1n M) -mulnDl.
have -> : (3 * M) ^ 3 = 27 * M ^ 3 by rewrite expnMn.
by rewrite mulnCA leq_mul2l.
Qed.
Corollary matmul_io_split M (es : seq event) : 0 < M -> valid M empty es -> computed es = setT ->
  (#|I| * #|J| * #|K|) ^ 2 <= ((traffic es %/ (4 * M)).+1) ^ 2 * (8 * M ^ 3).
Proof.
move=> pos v all; have := matmul_io_any (T := 4 * M) _ v all; rewrite muln_gt0 pos => /(_ isT).
have -> : 2 * M + 4 * M = 6 * M by rewrite -mulnDl.
have -> : (6 * M) ^ 3 = 27 * (8 * M ^ 3) by rewrite expnMn mulnA.
by rewrite mulnCA leq_mul2l.
Qed.
End Matmul.
