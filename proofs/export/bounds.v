(* Bounds that a fusion step drops, because extents or the reader's domain imply them: an affine certificate each, and the
   step with its dropped bounds, decided and compared. *)
From Coq Require Import Reals ZArith List Bool Lra Lia.
From Tang Require Export export.xr export.term export.fusion export.coordinates.
Import ListNotations.

(* A bound f >= 0 that always holds (or never), as a combination of facts: f (or - f - 1) = sum k * fact + what is >= 0. *)
Record drop := Drop { bound : term; holds : bool; multipliers : list (nat * Z) }.

Section Bounds.
Context (whole : list nat) (facts : list term) (drops : list drop).
Notation lin := (lin whole).
Fixpoint combination (ms : list (nat * Z)) : option form :=
  match ms with
  | [] => Some (0%Z, [])
  | (i, k) :: r =>
    match nth_error facts i, combination r with
    | Some h, Some g => match lin h with Some f => if (0 <=? k)%Z then Some (plus (scale k f) g) else None | None => None end
    | _, _ => None
    end
  end.
Definition follows (f : form) (ms : list (nat * Z)) : bool :=
  match combination ms with
  | Some g => match plus f (scale (-1) g) with (k, []) => (0 <=? k)%Z | _ => false end
  | None => false
  end.
Definition proved (d : drop) : bool :=
  match lin (bound d) with
  | Some f => follows (if holds d then f else plus (scale (-1) f) ((-1)%Z, [])) (multipliers d)
  | None => false
  end.
Definition decided (f : term) : option bool :=
  match lin f with
  | Some g =>
    match find (fun d => match lin (bound d) with Some h => if term_eq_dec (rebuild g) (rebuild h) then true else false
                         | None => false end) drops with
    | Some d => Some (holds d)
    | None => None
    end
  | None => None
  end.
(* Made of bounds alone: it is there, and a truth value. *)
Fixpoint sure (g : term) : bool :=
  match g with
  | yes | no => true
  | not_ (less_ f (lit 0 0)) => match lin f with Some _ => true | None => false end
  | and_ a b | or_ a b => sure a && sure b
  | _ => false
  end.
Definition settled (t : term) : term :=
  match t with
  | not_ (less_ f (lit 0 0)) => match decided f with Some true => yes | Some false => no | None => t end
  | and_ yes b => if sure b then b else t
  | and_ a yes => if sure a then a else t
  | and_ no b => if sure b then no else t
  | and_ a no => if sure a then no else t
  | or_ no b => if sure b then b else t
  | or_ a no => if sure a then a else t
  | or_ yes b => if sure b then yes else t
  | or_ a yes => if sure a then yes else t
  | only_ yes a => a
  | _ => t
  end.

Section Sound.
Context (vars axes : nat -> option xr) (read : nat -> list xr -> option xr).
Hypothesis axes_are : forall n, exists x, axes n = Some (Fin x).
Hypothesis whole_are : forall n xs, In n whole -> exists x, read n xs = Some (Fin x).
Notation ev := (eval vars axes read).
Open Scope R_scope.
Hypothesis facts_hold : forall h, In h facts -> exists x, ev h = Some (Fin x) /\ 0 <= x.
Hypothesis drops_proved : forallb proved drops = true.
Notation is := (sum_is vars axes read).
Lemma combination_is ms : forall g, combination ms = Some g -> exists x, is (fst g) (snd g) x /\ 0 <= x.
Proof.
  induction ms as [|[i k] r IH]; cbn [combination]; intros g E.
  - inversion E. exists 0. split; [reflexivity|lra].
  - destruct (nth_error facts i) as [h|] eqn:N; [|discriminate]. destruct (combination r) as [g'|]; [|discriminate].
    destruct (lin h) as [f|] eqn:L; [|discriminate]. destruct (Z.leb_spec 0 k) as [K|]; inversion E; subst g.
    destruct (IH _ eq_refl) as [y [Y P]]. destruct (lin_is whole vars axes read axes_are whole_are h f L) as [x [X S]].
    destruct (facts_hold h (nth_error_In _ _ N)) as [x' [X' Q]]. rewrite X in X'. inversion X'; subst x'.
    exists (IZR k * x + y). split; [now apply plus_is; [apply scale_is|]|].
    assert (0 <= IZR k) by (apply IZR_le; lia). nra.
Qed.
Lemma follows_is f ms x : is (fst f) (snd f) x -> follows f ms = true -> 0 <= x.
Proof.
  intros S F. unfold follows in F. destruct (combination ms) as [g|] eqn:C; [|discriminate].
  destruct (combination_is ms g C) as [y [Y P]].
  pose proof (plus_is vars axes read f (scale (-1) g) _ _ S (scale_is vars axes read (-1) g y Y)) as D.
  destruct (plus f (scale (-1) g)) as [k [|? ?]]; [|discriminate]. cbn [fst snd sum_is] in D.
  apply Z.leb_le, IZR_le in F. lra.
Qed.
Lemma decided_is f b : decided f = Some b -> ev (not_ (less_ f (lit 0 0))) = Some (Tf b).
Proof.
  unfold decided. destruct (lin f) as [g|] eqn:L; [|discriminate].
  destruct (find _ drops) as [d|] eqn:D; [|discriminate]. intros E; inversion E; subst b.
  apply find_some in D as [I M]. destruct (lin (bound d)) as [h|] eqn:H; [|discriminate].
  destruct (term_eq_dec (rebuild g) (rebuild h)) as [R|]; [|discriminate].
  destruct (lin_is whole vars axes read axes_are whole_are f g L) as [x [X S]].
  destruct (lin_is whole vars axes read axes_are whole_are (bound d) h H) as [y [Y T]].
  assert (Exy : y = x).
  { destruct g as [k l], h as [j m]. pose proof (rebuild_is vars axes read k l x S) as A.
    pose proof (rebuild_is vars axes read j m y T) as B. rewrite R, B in A. now inversion A. }
  subst y. pose proof (proj1 (forallb_forall _ _) drops_proved d I) as P. unfold proved in P. rewrite H in P.
  cbn [eval]. rewrite X. cbn [lift2 lift1 literal Z.eqb]. unfold xless. cbn.
  destruct (holds d).
  - pose proof (follows_is h _ x T P). destruct (Rlt_dec x 0); [lra|reflexivity].
  - assert (N : is (fst (plus (scale (-1) h) ((-1)%Z, []))) (snd (plus (scale (-1) h) ((-1)%Z, []))) (IZR (-1) * x + IZR (-1))).
    { apply plus_is; [now apply scale_is|reflexivity]. }
    pose proof (follows_is _ _ _ N P). destruct (Rlt_dec x 0); [reflexivity|lra].
Qed.
Lemma sure_is g : sure g = true -> exists b, ev g = Some (Tf b).
Proof.
  induction g; cbn [sure]; intros S; try discriminate.
  - now exists true.
  - now exists false.
  - apply andb_prop in S as [A B]. destruct (IHg1 A) as [x X], (IHg2 B) as [y Y]. exists (x && y). cbn [eval]. now rewrite X, Y.
  - apply andb_prop in S as [A B]. destruct (IHg1 A) as [x X], (IHg2 B) as [y Y]. exists (x || y). cbn [eval]. now rewrite X, Y.
  - destruct g; try discriminate. destruct g2; try discriminate. destruct mantissa; try discriminate.
    destruct exponent; try discriminate. destruct (lin g1) as [f|] eqn:L; [|discriminate].
    destruct (lin_is whole vars axes read axes_are whole_are g1 f L) as [x [X _]]. cbn [eval]. rewrite X. cbn. eauto.
Qed.
Lemma settled_sound t : ev (settled t) = ev t.
Proof.
  assert (A : forall a b, ev (and_ a b) = lift2 (truth2 andb) (ev a) (ev b)) by reflexivity.
  assert (O : forall a b, ev (or_ a b) = lift2 (truth2 orb) (ev a) (ev b)) by reflexivity.
  assert (Y : ev yes = Some (Tf true)) by reflexivity. assert (N : ev no = Some (Tf false)) by reflexivity.
  assert (K : forall a b r, (sure b = true -> ev (and_ a b) = ev r) -> ev (if sure b then r else and_ a b) = ev (and_ a b))
    by (intros a b r H; destruct (sure b); [now rewrite H|reflexivity]).
  assert (K' : forall a b r, (sure a = true -> ev (and_ a b) = ev r) -> ev (if sure a then r else and_ a b) = ev (and_ a b))
    by (intros a b r H; destruct (sure a); [now rewrite H|reflexivity]).
  assert (L : forall a b r, (sure b = true -> ev (or_ a b) = ev r) -> ev (if sure b then r else or_ a b) = ev (or_ a b))
    by (intros a b r H; destruct (sure b); [now rewrite H|reflexivity]).
  assert (L' : forall a b r, (sure a = true -> ev (or_ a b) = ev r) -> ev (if sure a then r else or_ a b) = ev (or_ a b))
    by (intros a b r H; destruct (sure a); [now rewrite H|reflexivity]).
  destruct t; try reflexivity.
  - cbn [settled]. destruct t1; try (destruct t2; try reflexivity);
      first [apply K|apply K']; intros S; apply sure_is in S as [x S]; rewrite A, ?S, ?Y, ?N; try destruct x; reflexivity.
  - cbn [settled]. destruct t1; try (destruct t2; try reflexivity);
      first [apply L|apply L']; intros S; apply sure_is in S as [x S]; rewrite O, ?S, ?Y, ?N; try destruct x; reflexivity.
  - cbn [settled]. destruct t; try reflexivity. destruct t2; try reflexivity. destruct mantissa; try reflexivity.
    destruct exponent; try reflexivity. destruct (decided t1) as [[|]|] eqn:D; auto; now rewrite (decided_is _ _ D).
  - cbn [settled]. destruct t1; reflexivity.
Qed.
End Sound.
Definition settle : term -> term := everywhere settled.
End Bounds.

(* Equality of whole terms, computed without building its proof. *)
Fixpoint same (a b : term) {struct a} : bool :=
  match a, b with
  | lit m e, lit m' e' => Z.eqb m m' && Z.eqb e e'
  | inf, inf | ninf, ninf | nan, nan | yes, yes | no, no => true
  | v n, v m | ax n, ax m => Nat.eqb n m
  | rd n cs, rd m ds => Nat.eqb n m && (fix all l r :=
      match l, r with [], [] => true | c :: l, d :: r => same c d && all l r | _, _ => false end) cs ds
  | neg a, neg b | recip a, recip b | sqrt_ a, sqrt_ b | sin_ a, sin_ b | exp2_ a, exp2_ b | log2_ a, log2_ b
  | floor_ a, floor_ b | is_nan a, is_nan b | not_ a, not_ b | real_ a, real_ b | index_ a, index_ b => same a b
  | add a c, add b d | mul a c, mul b d | atan2_ a c, atan2_ b d | max_ a c, max_ b d | min_ a c, min_ b d
  | ratio_ a c, ratio_ b d | less_ a c, less_ b d | equal_ a c, equal_ b d | and_ a c, and_ b d | or_ a c, or_ b d
  | div_ a c, div_ b d | mod_ a c, mod_ b d | only_ a c, only_ b d | or_else_ a c, or_else_ b d => same a b && same c d
  | select a c e, select b d f => same a b && (same c d && same e f)
  | _, _ => false
  end.
Lemma same_sound t : forall b, same t b = true -> t = b.
Proof.
  by_term t.
  - intros [] E; try discriminate. cbn in E. apply andb_prop in E as [N E]. apply Nat.eqb_eq in N. subst. f_equal.
    revert at_ E. induction H as [|c cs C _ IH]; intros [|d ds] E; try discriminate; auto.
    apply andb_prop in E as [X Y]. f_equal; [now apply C|now apply IH].
  - destruct t; auto; intros [] E; try discriminate; auto; cbn in E.
    + apply andb_prop in E as [M X]. apply Z.eqb_eq in M, X. now subst.
    + apply Nat.eqb_eq in E. now subst.
    + apply Nat.eqb_eq in E. now subst.
  - repeat split; intros [] E; try discriminate; f_equal; apply IHt; exact E.
  - repeat split; intros [] E; try discriminate; cbn in E; apply andb_prop in E as [X Y]; f_equal; auto.
  - intros [] E; try discriminate. cbn in E. apply andb_prop in E as [X E]. apply andb_prop in E as [Y Z]. f_equal; auto.
Qed.
(* What the compiler made of the reader, and what Coq makes of it, both with the decided bounds gone. *)
Definition fused (whole : list nat) (facts : list term) (drops : list drop) (f : fusion) : Prop :=
  forallb (proved whole facts) drops &&
  looks_at_every_axis (rank f) (producer_body f) && ranks_ok (producer f) (rank f) (before f) &&
  same (settle whole drops (canon whole (splice (producer f) (producer_body f) (before f))))
       (settle whole drops (canon whole (after f))) = true.
(* Where axes and index reads are numbers, and the facts hold, the step changes no value. *)
Theorem fused_sound whole facts drops f vars axes read : fused whole facts drops f ->
  (forall xs, length xs = rank f -> read (producer f) xs = eval vars (fun n => nth_error xs n) read (producer_body f)) ->
  (forall n, exists x, axes n = Some (Fin x)) ->
  (forall n xs, In n whole -> exists x, read n xs = Some (Fin x)) ->
  (forall h, In h facts -> exists x, eval vars axes read h = Some (Fin x) /\ (0 <= x)%R) ->
  eval vars axes read (after f) = eval vars axes read (before f).
Proof.
  intros F M A W H. unfold fused in F. apply andb_prop in F as [F E]. apply andb_prop in F as [F R]. apply andb_prop in F as [D L].
  apply same_sound in E as C.
  assert (S : forall t, eval vars axes read (settle whole drops t) = eval vars axes read t).
  { apply everywhere_sound. now apply (settled_sound whole facts drops vars axes read A W H D). }
  rewrite <- (canon_sound whole vars axes read A W (after f)), <- S, <- C, S, canon_sound by auto.
  now apply (fusion_step_sound vars read (producer f) (rank f)).
Qed.
Ltac prove_fused := first
  [ solve [ vm_compute; reflexivity ] | fail 1 "tang: not proved: fusion step" ].
