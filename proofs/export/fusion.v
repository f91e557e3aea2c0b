(* A fusion step as printed terms: splice the producer's body into the reader, and the proof that this is the same value. *)
From Coq Require Import List Bool Arith ZArith.
From Tang Require Export export.xr export.term.
Export ListNotations.

(* What has no value anywhere: an axis that the view does not give. *)
Definition absent : term := only_ no nan.
Fixpoint subst (cs : list term) (t : term) : term :=
  match t with
  | ax n => nth n cs absent
  | rd n at_ => rd n (map (subst cs) at_)
  | lit _ _ | inf | ninf | nan | yes | no | v _ => t
  | add a b => add (subst cs a) (subst cs b) | mul a b => mul (subst cs a) (subst cs b)
  | neg a => neg (subst cs a) | recip a => recip (subst cs a) | sqrt_ a => sqrt_ (subst cs a)
  | sin_ a => sin_ (subst cs a) | atan2_ a b => atan2_ (subst cs a) (subst cs b)
  | exp2_ a => exp2_ (subst cs a) | log2_ a => log2_ (subst cs a) | floor_ a => floor_ (subst cs a)
  | max_ a b => max_ (subst cs a) (subst cs b) | min_ a b => min_ (subst cs a) (subst cs b)
  | is_nan a => is_nan (subst cs a) | ratio_ a b => ratio_ (subst cs a) (subst cs b)
  | less_ a b => less_ (subst cs a) (subst cs b) | equal_ a b => equal_ (subst cs a) (subst cs b)
  | and_ a b => and_ (subst cs a) (subst cs b) | or_ a b => or_ (subst cs a) (subst cs b)
  | not_ a => not_ (subst cs a) | div_ a b => div_ (subst cs a) (subst cs b) | mod_ a b => mod_ (subst cs a) (subst cs b)
  | real_ a => real_ (subst cs a) | index_ a => index_ (subst cs a)
  | select c a b => select (subst cs c) (subst cs a) (subst cs b)
  | only_ g a => only_ (subst cs g) (subst cs a) | or_else_ a b => or_else_ (subst cs a) (subst cs b)
  end.
(* Every read of node m becomes m's body at the read's coordinates. *)
Section Splice.
Context (m : nat) (body : term).
Fixpoint splice (t : term) : term :=
  match t with
  | rd n at_ => if Nat.eqb n m then subst (map splice at_) body else rd n (map splice at_)
  | ax _ | lit _ _ | inf | ninf | nan | yes | no | v _ => t
  | add a b => add (splice a) (splice b) | mul a b => mul (splice a) (splice b)
  | neg a => neg (splice a) | recip a => recip (splice a) | sqrt_ a => sqrt_ (splice a)
  | sin_ a => sin_ (splice a) | atan2_ a b => atan2_ (splice a) (splice b)
  | exp2_ a => exp2_ (splice a) | log2_ a => log2_ (splice a) | floor_ a => floor_ (splice a)
  | max_ a b => max_ (splice a) (splice b) | min_ a b => min_ (splice a) (splice b)
  | is_nan a => is_nan (splice a) | ratio_ a b => ratio_ (splice a) (splice b)
  | less_ a b => less_ (splice a) (splice b) | equal_ a b => equal_ (splice a) (splice b)
  | and_ a b => and_ (splice a) (splice b) | or_ a b => or_ (splice a) (splice b)
  | not_ a => not_ (splice a) | div_ a b => div_ (splice a) (splice b) | mod_ a b => mod_ (splice a) (splice b)
  | real_ a => real_ (splice a) | index_ a => index_ (splice a)
  | select c a b => select (splice c) (splice a) (splice b)
  | only_ g a => only_ (splice g) (splice a) | or_else_ a b => or_else_ (splice a) (splice b)
  end.
End Splice.

(* Does t have no value when axis n has none? A read with an absent coordinate is absent, so the spliced body
   must be too: it has to look at every axis. *)
Fixpoint strict (n : nat) (t : term) : bool :=
  match t with
  | ax k => Nat.eqb k n
  | rd _ at_ => existsb (strict n) at_
  | lit _ _ | inf | ninf | nan | yes | no | v _ => false
  | neg a | recip a | sqrt_ a | sin_ a | exp2_ a | log2_ a | floor_ a | is_nan a | not_ a | real_ a | index_ a => strict n a
  | add a b | mul a b | atan2_ a b | max_ a b | min_ a b | ratio_ a b | less_ a b | equal_ a b | and_ a b | or_ a b
  | div_ a b | mod_ a b | only_ a b => strict n a || strict n b
  | select c a b => strict n c || (strict n a && strict n b)
  | or_else_ a b => strict n a && strict n b
  end.

Section Induction.
Context (P : term -> Prop).
Hypothesis Hrd : forall n cs, Forall P cs -> P (rd n cs).
Hypothesis H0 : forall t, match t with lit _ _ | inf | ninf | nan | yes | no | v _ | ax _ => P t | _ => True end.
Hypothesis H1 : forall a, P a -> P (neg a) /\ P (recip a) /\ P (sqrt_ a) /\ P (sin_ a) /\ P (exp2_ a) /\ P (log2_ a) /\
  P (floor_ a) /\ P (is_nan a) /\ P (not_ a) /\ P (real_ a) /\ P (index_ a).
Hypothesis H2 : forall a b, P a -> P b -> P (add a b) /\ P (mul a b) /\ P (atan2_ a b) /\ P (max_ a b) /\ P (min_ a b) /\
  P (ratio_ a b) /\ P (less_ a b) /\ P (equal_ a b) /\ P (and_ a b) /\ P (or_ a b) /\ P (div_ a b) /\ P (mod_ a b) /\
  P (only_ a b) /\ P (or_else_ a b).
Hypothesis H3 : forall c a b, P c -> P a -> P b -> P (select c a b).
Fixpoint term_induction (t : term) : P t.
Proof.
  destruct t; try exact (H0 (lit _ _)); try exact (H0 inf); try exact (H0 ninf); try exact (H0 nan); try exact (H0 yes);
    try exact (H0 no); try exact (H0 (v _)); try exact (H0 (ax _));
    try (apply (H1 t (term_induction t)); fail); try (apply (H2 t1 t2 (term_induction t1) (term_induction t2)); fail);
    try (exact (H3 t1 t2 t3 (term_induction t1) (term_induction t2) (term_induction t3))).
  apply Hrd. induction at_ as [|c cs IH]; constructor; [apply term_induction|exact IH].
Defined.
End Induction.
Ltac by_term t := pattern t; revert t; apply term_induction;
  [ intros node_ l H | intros t | intros t IHt | intros t1 t2 IHt1 IHt2 | intros t1 t2 t3 IHt1 IHt2 IHt3 ].

Section Sound.
Context (vars : nat -> option xr) (read : nat -> list xr -> option xr).
Notation ev axes := (eval vars axes read).
Lemma eval_ext a b t : (forall n, a n = b n) -> ev a t = ev b t.
Proof.
  intros E. by_term t.
  - simpl. assert (M : map (ev a) l = map (ev b) l).
    { induction H as [|c l C Cs IH]; simpl; auto. now rewrite C, IH. }
    now rewrite M.
  - destruct t; auto. simpl; auto.
  - repeat split; simpl; now rewrite IHt.
  - repeat split; simpl; now rewrite IHt1, IHt2.
  - simpl. now rewrite IHt1, IHt2, IHt3.
Qed.
Lemma eval_subst axes cs t : ev axes (subst cs t) = ev (fun n => ev axes (nth n cs absent)) t.
Proof.
  by_term t.
  - simpl. rewrite map_map. assert (M : map (fun t => ev axes (subst cs t)) l = map (ev (fun n => ev axes (nth n cs absent))) l).
    { induction H as [|c l C Cs IH]; simpl; auto. now rewrite C, IH. }
    now rewrite M.
  - destruct t; auto.
  - repeat split; simpl; now rewrite IHt.
  - repeat split; simpl; now rewrite IHt1, IHt2.
  - simpl. now rewrite IHt1, IHt2, IHt3.
Qed.
Lemma lift2_none {f a} : lift2 f a None = None. Proof. destruct a; reflexivity. Qed.
Lemma strict_sound axes n t : axes n = None -> strict n t = true -> ev axes t = None.
Proof.
  intros N. by_term t.
  - simpl. intros S. assert (A : all_present (map (ev axes) l) = None); [|now rewrite A].
    induction H as [|c l C Cs IH]; simpl in *; [discriminate|].
    apply orb_prop in S as [S|S]; [now rewrite (C S)|]. rewrite (IH S). now destruct (ev axes c).
  - destruct t; simpl; try discriminate; auto. intros S. apply Nat.eqb_eq in S. now subst.
  - repeat split; simpl; intros S; now rewrite (IHt S).
  - repeat split; simpl; intros S; try (apply orb_prop in S as [S|S]; [now rewrite (IHt1 S)|rewrite (IHt2 S); try apply lift2_none]).
    + destruct (ev axes t1) as [x|]; auto. destruct (xtrue x); auto.
    + apply andb_prop in S as [S1 S2]. now rewrite (IHt1 S1), (IHt2 S2).
  - simpl. intros S. apply orb_prop in S as [S|S]; [now rewrite (IHt1 S)|].
    apply andb_prop in S as [S2 S3]. rewrite (IHt2 S2), (IHt3 S3). destruct (ev axes t1) as [x|]; auto. now destruct (xtrue x).
Qed.

(* The producer: node m of rank k has this body at every point (its domain is an `only_` in the body). *)
Context (m rank : nat) (body : term).
Hypothesis meaning : forall xs, length xs = rank -> read m xs = eval vars (fun n => nth_error xs n) read body.
(* Reads of m in t have `rank` coordinates. *)
Fixpoint ranks_ok (t : term) : bool :=
  match t with
  | rd n at_ => (negb (Nat.eqb n m) || Nat.eqb (length at_) rank) && forallb ranks_ok at_
  | ax _ | lit _ _ | inf | ninf | nan | yes | no | v _ => true
  | neg a | recip a | sqrt_ a | sin_ a | exp2_ a | log2_ a | floor_ a | is_nan a | not_ a | real_ a | index_ a => ranks_ok a
  | add a b | mul a b | atan2_ a b | max_ a b | min_ a b | ratio_ a b | less_ a b | equal_ a b | and_ a b | or_ a b
  | div_ a b | mod_ a b | only_ a b | or_else_ a b => ranks_ok a && ranks_ok b
  | select c a b => ranks_ok c && (ranks_ok a && ranks_ok b)
  end.
Definition looks_at_every_axis : bool := forallb (fun n => strict n body) (seq 0 rank).
Lemma all_present_nth l xs : all_present l = Some xs -> forall n, nth_error xs n = match nth_error l n with Some o => o | None => None end.
Proof.
  revert xs. induction l as [|[x|] l IH]; simpl; intros xs E n; try discriminate.
  - inversion E. destruct n; reflexivity.
  - destruct (all_present l) as [ys|]; inversion E; subst. destruct n; simpl; auto.
Qed.
Lemma all_present_length l xs : all_present l = Some xs -> length xs = length l.
Proof.
  revert xs. induction l as [|[x|] l IH]; simpl; intros xs E; try discriminate; [now inversion E|].
  destruct (all_present l) as [ys|]; inversion E; subst. simpl. now rewrite (IH ys).
Qed.
Lemma all_present_none l : all_present l = None -> exists n, n < length l /\ nth n l None = None.
Proof.
  induction l as [|[x|] l IH]; simpl; intros E; try discriminate.
  - destruct (all_present l); try discriminate. destruct (IH eq_refl) as [n [L N]]. exists (S n). split; [apply -> Nat.succ_lt_mono; exact L|auto].
  - exists 0. split; [apply Nat.lt_0_succ|auto].
Qed.
Theorem fusion_step_sound axes t : looks_at_every_axis = true -> ranks_ok t = true ->
  ev axes (splice m body t) = ev axes t.
Proof.
  intros L. unfold looks_at_every_axis in L. rewrite forallb_forall in L.
  by_term t.
  - simpl. intros R. apply andb_prop in R as [R Rs].
    assert (M : map (ev axes) (map (splice m body) l) = map (ev axes) l).
    { clear R. induction H as [|c l C Cs IH]; simpl in *; auto. apply andb_prop in Rs as [R1 R2]. now rewrite (C R1), (IH R2). }
    destruct (Nat.eqb_spec node_ m) as [->|N]; simpl; [|now rewrite M].
    simpl in R. apply Nat.eqb_eq in R. rewrite eval_subst.
    assert (A : forall k, ev axes (nth k (map (splice m body) l) absent) = nth k (map (ev axes) l) None).
    { intro k. rewrite <- M. change None with (ev axes absent) at 1. now rewrite map_nth. }
    destruct (all_present (map (ev axes) l)) as [xs|] eqn:E.
    + rewrite meaning by (rewrite (all_present_length _ _ E), map_length; auto). apply eval_ext. intro k. rewrite A.
      rewrite (all_present_nth _ _ E). destruct (nth_error (map (ev axes) l) k) eqn:X.
      * now apply nth_error_nth.
      * apply nth_overflow. now apply nth_error_None.
    + destruct (all_present_none _ E) as [k [K Z]]. rewrite map_length, R in K.
      apply (strict_sound _ k); [now rewrite A|]. apply L, in_seq. split; [apply Nat.le_0_l|exact K].
  - destruct t; auto.
  - repeat split; simpl; intros R; now rewrite (IHt R).
  - repeat split; simpl; intros R; apply andb_prop in R as [R1 R2]; now rewrite (IHt1 R1), (IHt2 R2).
  - simpl. intros R. apply andb_prop in R as [R1 R]. apply andb_prop in R as [R2 R3]. now rewrite (IHt1 R1), (IHt2 R2), (IHt3 R3).
Qed.
End Sound.

(* A printed step: node `producer` of `rank` axes with `body` is spliced; the reader's term before and after. *)
Record fusion := Fusion { producer : nat; rank : nat; producer_body : term; before : term; after : term }.
Definition fusion_ok (f : fusion) : Prop :=
  looks_at_every_axis (rank f) (producer_body f) = true /\ ranks_ok (producer f) (rank f) (before f) = true /\
  splice (producer f) (producer_body f) (before f) = after f.
Theorem fusion_trace_sound f vars axes read : fusion_ok f ->
  (forall xs, length xs = rank f -> read (producer f) xs = eval vars (fun n => nth_error xs n) read (producer_body f)) ->
  eval vars axes read (after f) = eval vars axes read (before f).
Proof. intros [L [R <-]] M. now apply (fusion_step_sound vars read (producer f) (rank f)). Qed.
Ltac prove_fusion := first
  [ solve [ repeat split; vm_compute; reflexivity ] | fail 1 "tang: not proved: fusion step" ].
