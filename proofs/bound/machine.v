(* A two-level machine and what a segment of T words of traffic can touch, for every schedule. *)
From mathcomp Require Import all_ssreflect.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Machine.
Variable W : finType.                                    (* words: of A, of B, of C *)
Variable is_out : pred W.                                (* words of C: accumulators *)
Variable T : finType.                                    (* body points *)
Variable operands : T -> {set W}.                        (* the words a point reads and updates *)
(* Allocate starts a fresh accumulator (a partial sum) at no cost; the chain model below forbids it. *)
Inductive event := Load of W | Store of W | Drop of W | Allocate of W | Compute of T.
(* Fast memory, and the accumulators in it that were updated since they were last stored. *)
Record memory := Memory { held : {set W}; dirty : {set W} }.
Definition outs (S : {set W}) := [set w in S | is_out w].
Definition step (m : memory) (e : event) : memory :=
  match e with
  | Load w | Allocate w => Memory (w |: held m) (dirty m)
  | Store w => Memory (held m) (dirty m :\ w)
  | Drop w => Memory (held m :\ w) (dirty m)
  | Compute t => Memory (held m) (dirty m :|: outs (operands t))
  end.
(* What a schedule may do: compute on what is held, store what is held, never lose an updated accumulator. *)
Definition legal (m : memory) (e : event) : bool :=
  match e with
  | Load w => true
  | Allocate w => is_out w
  | Store w => w \in held m
  | Drop w => w \notin dirty m
  | Compute t => operands t \subset held m
  end.
Fixpoint valid (M : nat) (m : memory) (es : seq event) : bool :=
  (#|held m| <= M) && match es with [::] => true | e :: r => legal m e && valid M (step m e) r end.
Definition io (e : event) := match e with Load _ | Store _ => 1 | _ => 0 end.
Definition traffic (es : seq event) := \sum_(e <- es) io e.
Fixpoint final (m : memory) (es : seq event) := match es with [::] => m | e :: r => final (step m e) r end.
Definition computed (es : seq event) : {set T} := [set t | has (fun e => if e is Compute t' then t' == t else false) es].
Definition touched (es : seq event) : {set W} := \bigcup_(t in computed es) operands t.
Definition loaded (es : seq event) : {set W} := [set w | has (fun e => if e is Load w' then w' == w else false) es].
Definition stored (es : seq event) : {set W} := [set w | has (fun e => if e is Store w' then w' == w else false) es].
Definition allocated (es : seq event) : {set W} :=
  [set w | has (fun e => if e is Allocate w' then w' == w else false) es].
Definition no_alloc (es : seq event) := all (fun e => if e is Allocate _ then false else true) es.
Definition clean (m : memory) := dirty m \subset held m.

Lemma clean_step m e : clean m -> legal m e -> clean (step m e).
Proof.
rewrite /clean; case: e => [w|w|w|w|t] /= c l.
- by apply: subset_trans c (subsetUr _ _).
- by apply: subset_trans (subsetDl _ _) c.
- by rewrite subsetD1 c l.
- by apply: subset_trans c (subsetUr _ _).
- by rewrite subUset c /=; apply: subset_trans l; apply/subsetP => w; rewrite inE => /andP [].
Qed.
(* What is touched was there, was loaded, or was allocated. *)
Lemma touched_from M m es t w : valid M m es -> t \in computed es -> w \in operands t ->
  [|| w \in held m, w \in loaded es | w \in allocated es].
Proof.
elim: es m => [|e r IH] m; first by rewrite inE.
move=> /= /andP [_ /andP [l v]]; rewrite !inE /= => /orP [h|h] wt.
  by case: e l h {v} => //= t' /subsetP s /eqP E; rewrite s // E.
have tr : t \in computed r by rewrite inE.
have {IH} := IH _ v tr wt; rewrite !inE; case: e l v => [w'|w'|w'|w'|t'] /= l v; rewrite ?inE.
- by case/orP=> [/orP [/eqP ->|->]|/orP [->|->]]; rewrite ?eqxx ?orbT.
- by [].
- by case/orP=> [/andP [_ ->]|/orP [->|->]]; rewrite ?orbT.
- by case/orP=> [/orP [/eqP ->|->]|/orP [->|->]]; rewrite ?eqxx ?orbT.
- by [].
Qed.
Lemma allocated_out M m es w : valid M m es -> w \in allocated es -> is_out w.
Proof.
elim: es m => [|e r IH] m; first by rewrite inE.
move=> /= /andP [_ /andP [l v]]; rewrite !inE /= => /orP [h|h].
  by case: e l h {v} => //= w' ? /eqP <-.
by apply: IH v _; rewrite inE.
Qed.
(* What was updated is still there at the end, or was stored. *)
Lemma dirty_kept M m es w : valid M m es -> w \in dirty m -> (w \in dirty (final m es)) || (w \in stored es).
Proof.
elim: es m => [|e r IH] m /=; first by move=> _ ->.
move=> /andP [_ /andP [l v]] wd; rewrite inE /=.
have [ws|ws] := boolP (if e is Store w' then w' == w else false); first by rewrite orbT.
have := IH _ v; rewrite inE /=; apply; case: e l v ws => [w'|w'|w'|w'|t'] //= l v ws; rewrite ?inE ?wd //.
by rewrite andbT eq_sym.
Qed.
Lemma updated_kept M m es t w : valid M m es -> t \in computed es -> w \in outs (operands t) ->
  (w \in dirty (final m es)) || (w \in stored es).
Proof.
elim: es m => [|e r IH] m; first by rewrite inE.
move=> /= /andP [_ /andP [l v]]; rewrite inE /= => /orP [h|h] wo.
  case: e l v h => //= t' l v /eqP E; have := dirty_kept v; rewrite /= !inE /= => D.
  by have := D w; rewrite !inE; apply; move: wo; rewrite E !inE => /andP [-> ->]; rewrite orbT.
have tr : t \in computed r by rewrite inE.
by have := IH _ v tr wo; rewrite [_ \in stored _]inE [_ \in stored (_ :: _)]inE /= => /orP [->//|->]; rewrite !orbT.
Qed.
Lemma final_valid M m es : clean m -> valid M m es -> clean (final m es) /\ #|held (final m es)| <= M.
Proof.
elim: es m => [|e r IH] m c /= /andP [h]; first by [].
by move=> /andP [l v]; apply: IH => //; apply: clean_step.
Qed.
Lemma card_loaded es : #|loaded es| + #|stored es| <= traffic es.
Proof.
rewrite /traffic; elim: es => [|e r IH].
  have L0 : loaded [::] = set0 by apply/setP => w; rewrite !inE.
  have S0 : stored [::] = set0 by apply/setP => w; rewrite !inE.
  by rewrite L0 S0 !cards0.
rewrite big_cons.
have L : #|loaded (e :: r)| <= (if e is Load _ then 1 else 0) + #|loaded r|.
  have -> : loaded (e :: r) = (if e is Load w then [set w] else set0) :|: loaded r.
    by apply/setP => w; rewrite !inE /=; case: e {IH} => *; rewrite ?inE 1?eq_sym.
  by apply: leq_trans (leq_card_setU _ _) _; rewrite leq_add2r; case: e {IH} => *; rewrite ?cards1 ?cards0.
have S : #|stored (e :: r)| <= (if e is Store _ then 1 else 0) + #|stored r|.
  have -> : stored (e :: r) = (if e is Store w then [set w] else set0) :|: stored r.
    by apply/setP => w; rewrite !inE /=; case: e {IH L} => *; rewrite ?inE 1?eq_sym.
  by apply: leq_trans (leq_card_setU _ _) _; rewrite leq_add2r; case: e {IH L} => *; rewrite ?cards1 ?cards0.
apply: leq_trans (leq_add L S) _; rewrite addnACA; apply: leq_add IH.
by case: e {L S}.
Qed.
(* A segment of T words of traffic touches at most 2M + T words; at most M + T when no accumulator starts fresh. *)
Theorem footprint_any M m es : clean m -> valid M m es -> #|touched es| <= 2 * M + traffic es.
Proof.
move=> c v; have [cf hf] := final_valid c v; have hm : #|held m| <= M by case: es v {cf hf} => [|e r] /= /andP [].
have sub : touched es \subset (held m :|: loaded es) :|: (held (final m es) :|: stored es).
  apply/subsetP => w /bigcupP [t tc wt]; rewrite !inE.
  have [out|inp] := boolP (is_out w).
    have wo : w \in outs (operands t) by rewrite inE wt out.
    have /orP [d|s] := updated_kept v tc wo; first by rewrite (subsetP cf _ d) !orbT.
    by rewrite inE in s; rewrite s !orbT.
  have /or3P [->//|l|al] := touched_from v tc wt; first by rewrite inE in l; rewrite l !orbT.
  by rewrite (allocated_out v al) in inp.
apply: leq_trans (subset_leq_card sub) _; apply: leq_trans (leq_card_setU _ _) _.
apply: leq_trans (leq_add (leq_card_setU _ _) (leq_card_setU _ _)) _.
by rewrite addnACA mul2n -addnn; apply: leq_add; [exact: leq_add | exact: card_loaded].
Qed.
Theorem footprint_chain M m es : valid M m es -> no_alloc es -> #|touched es| <= M + traffic es.
Proof.
move=> v na; have hm : #|held m| <= M by case: es v {na} => [|e r] /= /andP [].
have sub : touched es \subset held m :|: loaded es.
  apply/subsetP => w /bigcupP [t tc wt]; rewrite in_setU.
  have /or3P [->//|->|al] := touched_from v tc wt; first by rewrite orbT.
  have : allocated es = set0; last by move=> E; rewrite E inE in al.
  apply/setP => x; rewrite !inE; apply/negbTE; move: na; rewrite /no_alloc; elim: (es) => //= e r IH /andP [a /IH h].
  by rewrite negb_or h andbT; case: e a.
apply: leq_trans (subset_leq_card sub) _; apply: leq_trans (leq_card_setU _ _) _.
by apply: leq_add => //; apply: leq_trans (card_loaded es); apply: leq_addr.
Qed.

(* Cutting a schedule into segments of T words of traffic. *)
Lemma cut T' es : T' < traffic es -> exists p r, es = p ++ r /\ traffic p = T'.
Proof.
elim: es T' => [|e r IH] [|T'] h; first by rewrite /traffic big_nil in h.
- by rewrite /traffic big_nil in h.
- by exists [::], (e :: r); rewrite /traffic big_nil.
have tc s : traffic (e :: s) = io e + traffic s by rewrite /traffic big_cons.
have io1 : io e = 0 \/ io e = 1 by case: e {IH h tc}; auto.
case: io1 => i; rewrite tc i in h.
- by have [p [q [-> E]]] := IH _ h; exists (e :: p), q; rewrite tc i E.
by have [p [q [-> E]]] := IH T' h; exists (e :: p), q; rewrite tc i E.
Qed.
Lemma traffic_cat p r : traffic (p ++ r) = traffic p + traffic r.
Proof. by rewrite /traffic big_cat. Qed.
Lemma valid_cat M m p r : valid M m (p ++ r) -> valid M m p /\ valid M (final m p) r.
Proof.
elim: p m => [|e p IH] m /= v; first by split=> //; case: r v => [|? ?] /= /andP [->].
by move: v => /andP [-> /andP [-> /IH]].
Qed.
Lemma computed_cat p r : computed (p ++ r) = computed p :|: computed r.
Proof. by apply/setP => t; rewrite !inE has_cat. Qed.
Lemma no_alloc_cat p r : no_alloc (p ++ r) = no_alloc p && no_alloc r.
Proof. exact: all_cat. Qed.

(* If no segment of T words computes more than E points, a schedule with Q words computes (Q/T + 1) E at most. *)
Theorem segment_count (good : pred (seq event)) M m es T' E :
  (forall p r, good (p ++ r) -> good p && good r) ->
  (forall m s, clean m -> valid M m s -> good s -> traffic s <= T' -> #|computed s| <= E) ->
  0 < T' -> clean m -> valid M m es -> good es -> #|computed es| <= (traffic es %/ T').+1 * E.
Proof.
move=> gc H pos; have [n] := ubnP (traffic es); elim: n m es => // n IH m es bound c v g.
have [small|big] := leqP (traffic es) T'.
  by apply: leq_trans (H m es c v g small) _; apply: leq_pmull.
have [p [r [E' tp]]] := cut big; subst es.
have [vp vr] := valid_cat v; have /andP [gp gr] := gc _ _ g.
rewrite computed_cat; apply: leq_trans (leq_card_setU _ _) _; rewrite traffic_cat tp in bound *.
have cf := (final_valid c vp).1.
have Q : #|computed r| <= (traffic r %/ T').+1 * E.
  have small : traffic r < n by rewrite ltnS in bound; apply: leq_trans bound; rewrite -add1n leq_add2r.
  exact: IH small cf vr gr.
rewrite divnDl ?dvdnn // divnn pos add1n mulSn; apply: leq_add => //.
by apply: H vp gp _ => //; rewrite tp.
Qed.
End Machine.
