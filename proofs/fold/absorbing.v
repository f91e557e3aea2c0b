(* Absorbing monoids: fold the base, rescale, contract. One statement for tiled matmul and flash attention. *)
From Coq Require Import List Reals Lra FunctionalExtensionality.
From Tang Require Import fold.monoid.
Import ListNotations.
Open Scope R_scope.

(* Base B under an idempotent commutative associative join; added components c : C, each with its own act.
   The base laws are asked on its carrier [okB] (a finite sentinel is the bottom only of the values above it). *)
Record absorb (B C : Type) := Absorb {
  okB : B -> Prop; join : B -> B -> B; bot : B; act : C -> B -> B -> R;
  bot_ok : okB bot;
  join_ok : forall x y, okB x -> okB y -> okB (join x y);
  join_comm : forall x y, okB x -> okB y -> join x y = join y x;
  join_idem : forall x, okB x -> join x x = x;
  join_assoc : forall x y z, okB x -> okB y -> okB z -> join x (join y z) = join (join x y) z;
  join_bot : forall x, okB x -> join bot x = x;
  act_unit : forall c x, okB x -> act c x x = 1 \/ act c x x = 0;
  (* The cocycle: along b0 <= b1 <= b2, and only where the element itself is kept. *)
  cocycle : forall c x y z, okB x -> okB y -> okB z -> act c x x = 1 ->
    act c x (join x y) * act c (join x y) (join (join x y) z) = act c x (join (join x y) z)
}.
Arguments Absorb {B C}. Arguments okB {B C}. Arguments join {B C}. Arguments bot {B C}. Arguments act {B C}.
Arguments bot_ok {B C}. Arguments join_ok {B C}. Arguments join_comm {B C}. Arguments join_idem {B C}.
Arguments join_assoc {B C}. Arguments join_bot {B C}. Arguments act_unit {B C}. Arguments cocycle {B C}.

Section Absorbing.
Context {B C : Type} (a : absorb B C).
Definition state : Type := B * (C -> R).
Definition absorb_op (x y : state) : state :=
  let b := join a (fst x) (fst y) in
  (b, fun c => act a c (fst x) b * snd x c + act a c (fst y) b * snd y c).
Definition absorb_e : state := (bot a, fun _ => 0).
(* Injected elements: a component is kept by its own base, or it is 0. *)
Definition absorb_ok (x : state) : Prop :=
  okB a (fst x) /\ forall c, act a c (fst x) (fst x) = 1 \/ snd x c = 0.
Definition inject (x : state) : state := absorb_op absorb_e x.

Lemma inject_ok x : okB a (fst x) -> absorb_ok (inject x).
Proof.
  intros H. unfold inject, absorb_op, absorb_ok; simpl. rewrite join_bot by auto. split; auto.
  intro c. destruct (act_unit a c (fst x) H) as [E|E]; [left; auto|right; rewrite E; ring].
Qed.

Lemma act_to_join x y z c : absorb_ok x -> okB a y -> okB a z ->
  act a c (join a (fst x) y) (join a (join a (fst x) y) z) * (act a c (fst x) (join a (fst x) y) * snd x c)
  = act a c (fst x) (join a (join a (fst x) y) z) * snd x c.
Proof.
  intros [X U] Y Z. destruct (U c) as [E|E].
  - rewrite <- (cocycle a c (fst x) y z) by auto. ring.
  - rewrite E. ring.
Qed.
Lemma act_self x c : absorb_ok x -> act a c (fst x) (fst x) * snd x c = snd x c.
Proof. intros [X U]. destruct (U c) as [E|E]; rewrite E; ring. Qed.

Lemma absorb_op_ok x y : absorb_ok x -> absorb_ok y -> absorb_ok (absorb_op x y).
Proof.
  intros X Y. pose proof X as [Xb _]. pose proof Y as [Yb _]. unfold absorb_op; simpl.
  set (b := join a (fst x) (fst y)). assert (Bb : okB a b) by (apply join_ok; auto).
  split; simpl; auto. intro c. destruct (act_unit a c b Bb) as [E|E]; [left; auto|right].
  (* act b b = 0 forces both contributions to be 0, by the cocycle with the last two bases equal *)
  assert (J : join a b b = b) by (apply join_idem; auto).
  pose proof (act_to_join x (fst y) b c X Yb Bb) as P. fold b in P. rewrite J, E in P.
  pose proof (act_to_join y (fst x) b c Y Xb Bb) as Q. rewrite (join_comm a (fst y) (fst x)) in Q by auto.
  fold b in Q. rewrite J, E in Q. lra.
Qed.

Theorem absorbing_assoc x y z : absorb_ok x -> absorb_ok y -> absorb_ok z ->
  absorb_op x (absorb_op y z) = absorb_op (absorb_op x y) z.
Proof.
  intros X Y Z. pose proof X as [Xb _]. pose proof Y as [Yb _]. pose proof Z as [Zb _].
  unfold absorb_op; simpl. rewrite (join_assoc a (fst x) (fst y) (fst z)) by auto. f_equal.
  extensionality c.
  pose proof (act_to_join x (fst y) (fst z) c X Yb Zb) as P1.
  pose proof (act_to_join y (fst x) (fst z) c Y Xb Zb) as P2. rewrite (join_comm a (fst y) (fst x)) in P2 by auto.
  pose proof (act_to_join y (fst z) (fst x) c Y Zb Xb) as P3.
  pose proof (act_to_join z (fst y) (fst x) c Z Yb Xb) as P4. rewrite (join_comm a (fst z) (fst y)) in P4 by auto.
  assert (J : join a (join a (fst y) (fst z)) (fst x) = join a (join a (fst x) (fst y)) (fst z)).
  { rewrite join_comm, join_assoc; auto. apply join_ok; auto. }
  rewrite J in P3, P4. lra.
Qed.
Theorem absorbing_comm x y : absorb_ok x -> absorb_ok y -> absorb_op x y = absorb_op y x.
Proof.
  intros [X _] [Y _]. unfold absorb_op. rewrite (join_comm a (fst y) (fst x)) by auto.
  f_equal. extensionality c. ring.
Qed.
Lemma absorb_inj x : absorb_ok x -> absorb_op absorb_e x = x.
Proof.
  intros H. pose proof H as [X _]. destruct x as [b f]. unfold absorb_op; simpl in *.
  rewrite join_bot by auto. f_equal. extensionality c.
  pose proof (act_self (b, f) c H) as P; simpl in P. rewrite Rmult_0_r, P. ring.
Qed.
Lemma absorb_e_ok : absorb_ok absorb_e.
Proof. split; simpl; auto. apply bot_ok. Qed.

Definition absorbing : monoid state.
Proof.
  refine {| ok := absorb_ok; op := absorb_op; e := absorb_e |}.
  - apply absorb_inj.
  - apply absorb_e_ok.
  - apply absorb_op_ok.
  - intros. rewrite absorbing_comm; auto using absorb_inj, absorb_e_ok.
  - apply absorbing_assoc.
Defined.
Theorem absorbing_commutative : commutative absorbing.
Proof. exact absorbing_comm. Qed.

(* Definition form: fold of the base, then for every component a plain sum of act * lift. *)
Definition base_fold (b : B) (ts : list (option state)) : B :=
  fold_left (fun b t => match t with Some x => join a b (fst x) | None => b end) ts b.
Definition term_at (c : C) (b : B) (t : option state) : R :=
  match t with Some x => act a c (fst x) b * snd x c | None => 0 end.
Definition contract (c : C) (b : B) (ts : list (option state)) : R :=
  fold_left (fun s t => s + term_at c b t) ts 0.
(* One chunk: join the base of the whole chunk, rescale the state once, add the contraction. *)
Definition chunk_step (s : state) (ts : list (option state)) : state :=
  let b := base_fold (fst s) ts in
  (b, fun c => act a c (fst s) b * snd s c + contract c b ts).

Lemma contract_from c b ts : forall s, fold_left (fun s t => s + term_at c b t) ts s = s + contract c b ts.
Proof.
  unfold contract. induction ts as [|t ts IH]; intros s; simpl; [ring|].
  rewrite IH, (IH (0 + _)). ring.
Qed.
Lemma base_above ts : forall b, okB a b -> all_ok absorbing ts ->
  okB a (base_fold b ts) /\ exists r, okB a r /\ base_fold b ts = join a b r.
Proof.
  induction ts as [|t ts IH]; intros b Hb H; simpl.
  - split; auto. exists b. split; auto. now rewrite join_idem.
  - apply all_ok_cons in H as [T H]. destruct t as [x|]; [|apply IH; auto].
    destruct (T x eq_refl) as [X _].
    destruct (IH (join a b (fst x)) (join_ok a _ _ Hb X) H) as [O [r [R E]]].
    split; auto. exists (join a (fst x) r). split; [apply join_ok; auto|].
    rewrite join_assoc by auto. exact E.
Qed.
Theorem absorbing_chunk ts : forall s, absorb_ok s -> all_ok absorbing ts ->
  fold_from absorbing s ts = chunk_step s ts.
Proof.
  induction ts as [|t ts IH]; intros s S H.
  - simpl. unfold chunk_step; simpl. destruct s as [b f]; simpl. f_equal. extensionality c.
    pose proof (act_self (b, f) c S) as P; simpl in P. unfold contract; simpl. lra.
  - apply all_ok_cons in H as [T H]. destruct t as [x|].
    + pose proof (T x eq_refl) as X. pose proof S as [Sb _]. pose proof X as [Xb _].
      simpl. rewrite IH by (auto; apply absorb_op_ok; auto).
      unfold chunk_step. simpl. set (b1 := join a (fst s) (fst x)).
      assert (B1 : okB a b1) by (apply join_ok; auto).
      destruct (base_above ts b1 B1 H) as [O [r [R E]]].
      change (base_fold (fst s) (Some x :: ts)) with (base_fold b1 ts).
      f_equal. extensionality c. unfold contract at 2. simpl. rewrite contract_from. simpl.
      rewrite E. unfold b1 in *.
      pose proof (act_to_join s (fst x) r c S Xb R) as P.
      pose proof (act_to_join x (fst s) r c X Sb R) as Q. rewrite (join_comm a (fst x) (fst s)) in Q by auto.
      lra.
    + simpl. rewrite IH by auto. unfold chunk_step. simpl.
      change (base_fold (fst s) (None :: ts)) with (base_fold (fst s) ts).
      f_equal. extensionality c. unfold contract at 2. simpl. rewrite contract_from. simpl. ring.
Qed.

(* Chunk after chunk equals term after term, for every partition into chunks. *)
Theorem absorbing_chunked (chunks : list (list (option state))) :
  (forall ts, In ts chunks -> all_ok absorbing ts) ->
  fold absorbing (concat chunks) = fold_left chunk_step chunks absorb_e.
Proof.
  unfold fold. simpl e. generalize absorb_e_ok. generalize absorb_e as s.
  induction chunks as [|ts cs IH]; intros s S H; simpl; auto.
  assert (T : all_ok absorbing ts) by (apply H; left; auto).
  unfold fold_from at 1. rewrite fold_left_app.
  change (fold_from absorbing (fold_from absorbing s ts) (concat cs) = fold_left chunk_step cs (chunk_step s ts)).
  rewrite <- absorbing_chunk by auto. apply IH.
  - apply (fold_from_ok absorbing ts s S T).
  - intros; apply H; right; auto.
Qed.
(* The whole fold as one chunk: what `definition_form` emits and gradients differentiate. *)
Theorem definition_form ts : all_ok absorbing ts ->
  let b := base_fold (bot a) ts in
  fst (fold absorbing ts) = b /\ forall c, snd (fold absorbing ts) c = contract c b ts.
Proof.
  intros H. simpl. unfold fold. simpl e. rewrite absorbing_chunk by (auto; apply absorb_e_ok).
  unfold chunk_step; simpl. split; auto. intro c. ring.
Qed.
End Absorbing.
