(* A fusion step as printed terms: splice the producer's body into the reader, and the proof that this is the same value. *)
From Coq Require Import List Bool Arith ZArith.
From Tang Require Export export.xr export.term.
Export ListNotations.

(* What has no value anywhere: an axis that the view does not give. *)
Definition absent : term := only_ no nan.
Definition subst (cs : list term) : term -> term :=
  everywhere (fun t => match t with ax n => nth n cs absent | _ => t end).
(* Every read of node m becomes m's body at the read's coordinates. *)
Definition splice (m : nat) (body : term) : term -> term :=
  everywhere (fun t => match t with rd n at_ => if Nat.eqb n m then subst at_ body else t | _ => t end).

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
(* What changes no value at one subterm changes none everywhere. *)
Lemma everywhere_sound axes f : (forall t, ev axes (f t) = ev axes t) -> forall t, ev axes (everywhere f t) = ev axes t.
Proof.
  intros F t. by_term t.
  - cbn [everywhere]. rewrite F. cbn [eval]. rewrite map_map.
    assert (M : map (fun t => ev axes (everywhere f t)) l = map (ev axes) l).
    { induction H as [|c l C Cs IH]; cbn [map]; auto. now rewrite C, IH. }
    now rewrite M.
  - destruct t; auto; apply F.
  - repeat split; cbn [everywhere]; rewrite F; cbn [eval]; now rewrite IHt.
  - repeat split; cbn [everywhere]; rewrite F; cbn [eval]; now rewrite IHt1, IHt2.
  - cbn [everywhere]. rewrite F. cbn [eval]. now rewrite IHt1, IHt2, IHt3.
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
