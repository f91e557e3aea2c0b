(* Scalar bodies: the real operations of the op table, where each is differentiable, and the symbolic derivative. *)
From Coq Require Import Reals Lra Lia List.
From Coquelicot Require Import Coquelicot.
From Tang Require Import sums.rsum grad.calculus.
Open Scope R_scope.

(* atan2(y, x) with its cut along the negative x axis, as in C. *)
Definition atan2 (y x : R) : R :=
  if Rlt_dec 0 y then PI / 2 - atan (x / y)
  else if Rlt_dec y 0 then - (PI / 2) - atan (x / y)
  else if Rlt_dec x 0 then PI else 0.
Definition exp2 (x : R) : R := exp (x * ln 2).
Definition log2 (x : R) : R := ln x / ln 2.
Definition ratio (a l : R) : R := if Req_EM_T l 0 then 0 else a / l.

(* Conditions of a select do not read the differentiated variables: they are data here. *)
Inductive sexpr :=
  | Lit (c : R) | Arg (k : nat)
  | Add (a b : sexpr) | Mul (a b : sexpr) | Neg (a : sexpr) | Recip (a : sexpr) | Sqrt (a : sexpr)
  | Sin (a : sexpr) | Atan2 (a b : sexpr) | Exp2 (a : sexpr) | Log2 (a : sexpr) | Ratio (a b : sexpr)
  | Max (a b : sexpr) | Min (a b : sexpr) | Select (c : bool) (a b : sexpr).
Fixpoint eval (env : nat -> R) (x : sexpr) : R :=
  match x with
  | Lit c => c | Arg k => env k
  | Add a b => eval env a + eval env b | Mul a b => eval env a * eval env b
  | Neg a => - eval env a | Recip a => / eval env a | Sqrt a => sqrt (eval env a) | Sin a => sin (eval env a)
  | Atan2 a b => atan2 (eval env a) (eval env b) | Exp2 a => exp2 (eval env a) | Log2 a => log2 (eval env a)
  | Ratio a b => ratio (eval env a) (eval env b)
  | Max a b => Rmax (eval env a) (eval env b) | Min a b => Rmin (eval env a) (eval env b)
  | Select c a b => if c then eval env a else eval env b
  end.
(* Where the body is differentiable; only the branch taken counts. *)
Fixpoint wf (env : nat -> R) (x : sexpr) : Prop :=
  match x with
  | Lit _ | Arg _ => True
  | Add a b | Mul a b => wf env a /\ wf env b
  | Neg a | Sin a | Exp2 a => wf env a
  | Recip a => wf env a /\ eval env a <> 0
  | Sqrt a | Log2 a => wf env a /\ 0 < eval env a
  | Atan2 a b => wf env a /\ wf env b /\ (eval env a <> 0 \/ 0 < eval env b)
  | Ratio a b => wf env a /\ wf env b /\ eval env b <> 0
  | Max a b | Min a b => wf env a /\ wf env b /\ eval env a <> eval env b
  | Select c a b => if c then wf env a else wf env b
  end.
(* d x / d argument k, as the compiler's `diff` builds it; max and min select the winning branch. *)
Definition less (env : nat -> R) a b : bool := if Rlt_dec (eval env a) (eval env b) then true else false.
Fixpoint diff (env : nat -> R) (k : nat) (x : sexpr) : sexpr :=
  match x with
  | Lit _ => Lit 0
  | Arg j => Lit (if Nat.eqb j k then 1 else 0)
  | Add a b => Add (diff env k a) (diff env k b)
  | Mul a b => Add (Mul (diff env k a) b) (Mul a (diff env k b))
  | Neg a => Neg (diff env k a)
  | Recip a => Neg (Mul (diff env k a) (Mul (Recip a) (Recip a)))
  | Sqrt a => Mul (diff env k a) (Recip (Mul (Lit 2) (Sqrt a)))
  | Sin a => Mul (diff env k a) (Sin (Add a (Lit (PI / 2))))
  | Atan2 a b => Mul (Add (Mul (diff env k a) b) (Neg (Mul a (diff env k b)))) (Recip (Add (Mul a a) (Mul b b)))
  | Exp2 a => Mul (diff env k a) (Mul (Lit (ln 2)) (Exp2 a))
  | Log2 a => Mul (diff env k a) (Recip (Mul (Lit (ln 2)) a))
  | Ratio a b => Add (Ratio (diff env k a) b) (Neg (Mul (diff env k b) (Mul (Ratio a b) (Ratio (Lit 1) b))))
  | Max a b => Select (less env a b) (diff env k b) (diff env k a)
  | Min a b => Select (less env a b) (diff env k a) (diff env k b)
  | Select c a b => Select c (diff env k a) (diff env k b)
  end.

Lemma ln2_pos : 0 < ln 2.
Proof. rewrite <- ln_1. apply ln_increasing; lra. Qed.
Lemma atan2_right y x : 0 < x -> atan2 y x = atan (y / x).
Proof.
  intros X. unfold atan2. destruct (Rlt_dec 0 y) as [Y|Y]; [|destruct (Rlt_dec y 0) as [Y'|Y']].
  - replace (y / x) with (/ (x / y)) by (field; lra).
    rewrite atan_inv; auto. apply Rdiv_lt_0_compat; auto.
  - replace (y / x) with (- (/ (x / - y))) by (field; lra).
    rewrite atan_opp, atan_inv by (apply Rdiv_lt_0_compat; lra).
    replace (x / - y) with (- (x / y)) by (field; lra). rewrite atan_opp. ring.
  - assert (y = 0) by lra. subst y. destruct (Rlt_dec x 0); [lra|].
    replace (0 / x) with 0 by (field; lra). now rewrite atan_0.
Qed.
Lemma near_pos (g : R -> R) t d : is_derive g t d -> 0 < g t -> locally t (fun u => 0 < g u).
Proof.
  intros D P. assert (C : continuous g t) by (apply (ex_derive_continuous (K := R_AbsRing) (V := R_NormedModule) g t); exists d; exact D).
  refine (C (fun u => 0 < u) _). exact (open_gt 0 (g t) P).
Qed.
Lemma is_derive_atan2 f g t a b : is_derive f t a -> is_derive g t b -> (f t <> 0 \/ 0 < g t) ->
  is_derive (fun u => atan2 (f u) (g u)) t ((a * g t - f t * b) / (f t * f t + g t * g t)).
Proof.
  intros F G.
  assert (DF : Derive (fun u => f u) t = a) by (apply is_derive_unique, F).
  assert (DG : Derive (fun u => g u) t = b) by (apply is_derive_unique, G).
  intros [N|P].
  - destruct (Rlt_dec 0 (f t)) as [Y|Y].
    + apply (is_derive_ext_loc (fun u => PI / 2 - atan (g u / f u))).
      { generalize (near_pos f t a F Y). apply filter_imp. intros u U. unfold atan2. destruct (Rlt_dec 0 (f u)); [auto|lra]. }
      auto_derive; [repeat split; try (eexists; eassumption); lra|].
      rewrite DF, DG. field. split; [nra|lra].
    + assert (Y' : f t < 0) by lra.
      apply (is_derive_ext_loc (fun u => - (PI / 2) - atan (g u / f u))).
      { assert (F' : is_derive (fun u => - f u) t (- a)) by (apply (is_derive_opp (V := R_NormedModule)); auto).
        generalize (near_pos _ t _ F' ltac:(simpl; lra)). apply filter_imp. intros u U. unfold atan2.
        destruct (Rlt_dec 0 (f u)); [lra|]. destruct (Rlt_dec (f u) 0); [auto|lra]. }
      auto_derive; [repeat split; try (eexists; eassumption); lra|].
      rewrite DF, DG. field. split; [nra|lra].
  - apply (is_derive_ext_loc (fun u => atan (f u / g u))).
    { generalize (near_pos g t b G P). apply filter_imp. intros u U. now rewrite atan2_right. }
    auto_derive; [repeat split; try (eexists; eassumption); lra|].
    rewrite DF, DG. field. split; [nra|lra].
Qed.
