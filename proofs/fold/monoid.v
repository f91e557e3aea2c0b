(* Monoids on a carrier, folds of partial terms, and the law behind every split: a fold of blocks. *)
From Coq Require Import List Permutation.
Import ListNotations.

(* The laws hold on the carrier [ok]; a fold injects every term by [op e], which puts it there. *)
Record monoid (V : Type) := Monoid {
  ok : V -> Prop;
  op : V -> V -> V;
  e : V;
  inj_ok : forall x, ok x -> op e x = x;
  e_ok : ok e;
  op_ok : forall x y, ok x -> ok y -> ok (op x y);
  op_e_r : forall x, ok x -> op x e = x;
  op_assoc : forall x y z, ok x -> ok y -> ok z -> op x (op y z) = op (op x y) z
}.
Arguments Monoid {V}. Arguments ok {V}. Arguments op {V}. Arguments e {V}. Arguments inj_ok {V}.
Arguments e_ok {V}. Arguments op_ok {V}. Arguments op_e_r {V}. Arguments op_assoc {V}.
Definition commutative {V} (m : monoid V) := forall x y, ok m x -> ok m y -> op m x y = op m y x.

Section Fold.
Context {V : Type} (m : monoid V).
(* An absent term leaves the state alone; no term gives the identity. *)
Definition step (s : V) (t : option V) : V := match t with Some x => op m s x | None => s end.
Definition fold_from (s : V) (ts : list (option V)) : V := fold_left step ts s.
Definition fold (ts : list (option V)) : V := fold_from (e m) ts.
Definition all_ok (ts : list (option V)) := forall x, In (Some x) ts -> ok m x.

Lemma all_ok_cons t ts : all_ok (t :: ts) <-> ((forall x, t = Some x -> ok m x) /\ all_ok ts).
Proof.
  unfold all_ok; simpl; split.
  - intros H; split; intros x Hx; apply H; [left|right]; auto.
  - intros [A B] x [Hx|Hx]; auto.
Qed.
Lemma all_ok_app a b : all_ok (a ++ b) <-> all_ok a /\ all_ok b.
Proof.
  unfold all_ok; split.
  - intros H; split; intros x Hx; apply H, in_or_app; auto.
  - intros [A B] x Hx; apply in_app_or in Hx as [|]; auto.
Qed.
Lemma step_ok s t : ok m s -> (forall x, t = Some x -> ok m x) -> ok m (step s t).
Proof. destruct t; simpl; auto. intros; apply op_ok; auto. Qed.
Lemma fold_from_ok ts : forall s, ok m s -> all_ok ts -> ok m (fold_from s ts).
Proof.
  induction ts as [|t ts IH]; intros s Hs H; simpl; auto.
  apply all_ok_cons in H as [A B]. apply IH; auto. apply step_ok; auto.
Qed.
Lemma fold_ok ts : all_ok ts -> ok m (fold ts).
Proof. intros; apply fold_from_ok; auto. apply e_ok. Qed.

(* A running fold is the state joined with the fold of the rest. *)
Theorem fold_from_fold ts : forall s, ok m s -> all_ok ts -> fold_from s ts = op m s (fold ts).
Proof.
  induction ts as [|t ts IH]; intros s Hs H; unfold fold; simpl.
  - now rewrite op_e_r.
  - apply all_ok_cons in H as [A B].
    destruct t as [x|]; simpl.
    + rewrite IH; [|apply op_ok|]; auto. rewrite inj_ok by auto.
      rewrite (IH x) by auto. rewrite op_assoc; auto. apply fold_ok; auto.
    + apply IH; auto.
Qed.
Theorem fold_app a b : all_ok a -> all_ok b -> fold (a ++ b) = op m (fold a) (fold b).
Proof.
  intros A B. unfold fold at 1, fold_from. rewrite fold_left_app.
  change (fold_from (fold a) b = op m (fold a) (fold b)).
  apply fold_from_fold; auto. apply fold_ok; auto.
Qed.

Lemma fold_cons x ts : ok m x -> all_ok ts -> fold (Some x :: ts) = op m x (fold ts).
Proof.
  intros X T. change (Some x :: ts) with ([Some x] ++ ts). rewrite fold_app; auto.
  - unfold fold at 1; simpl. now rewrite inj_ok.
  - intros y [E|[]]. now inversion E; subst.
Qed.
(* Any partition into contiguous blocks, empty ones included: the fold of the partial folds. *)
Theorem split_fold (blocks : list (list (option V))) :
  (forall b, In b blocks -> all_ok b) ->
  fold (concat blocks) = fold (map (fun b => Some (fold b)) blocks).
Proof.
  induction blocks as [|b bs IH]; intros H; [reflexivity|].
  simpl concat. simpl map.
  assert (Hb : all_ok b) by (apply H; left; auto).
  assert (Hbs : forall c, In c bs -> all_ok c) by (intros; apply H; right; auto).
  assert (Hc : all_ok (concat bs)).
  { intros x Hx. apply in_concat in Hx as [c [Hi Hx]]. exact (Hbs c Hi x Hx). }
  rewrite fold_app, IH by auto.
  change (Some (fold b) :: map (fun b0 => Some (fold b0)) bs)
    with ([Some (fold b)] ++ map (fun b0 => Some (fold b0)) bs).
  rewrite fold_app.
  - f_equal. unfold fold at 2; simpl. symmetry. apply inj_ok, fold_ok; auto.
  - intros x [Hx|[]]. inversion Hx; subst. apply fold_ok; auto.
  - intros x Hx. apply in_map_iff in Hx as [c [Heq Hi]]. inversion Heq. apply fold_ok; auto.
Qed.

(* Any tree over the terms in order: the form of a workgroup's tree combine. *)
Inductive tree := Leaf (t : option V) | Node (a b : tree).
Fixpoint leaves (t : tree) := match t with Leaf x => [x] | Node a b => leaves a ++ leaves b end.
Fixpoint tree_fold (t : tree) : V :=
  match t with Leaf x => step (e m) x | Node a b => op m (tree_fold a) (tree_fold b) end.
Theorem tree_is_fold t : all_ok (leaves t) -> tree_fold t = fold (leaves t).
Proof.
  induction t as [x|a IA b IB]; simpl; intros H; [reflexivity|].
  apply all_ok_app in H as [A B]. now rewrite fold_app, IA, IB.
Qed.

(* Order may change only for a commutative monoid. *)
Theorem fold_permuted a b : commutative m -> Permutation a b -> all_ok a -> fold a = fold b.
Proof.
  intros C P. induction P as [|t a b P IH|t u a|a b c P1 IH1 P2 IH2]; intros H; auto.
  - apply all_ok_cons in H as [A B].
    change (t :: a) with ([t] ++ a). change (t :: b) with ([t] ++ b).
    assert (all_ok [t]) by (apply all_ok_cons; split; auto; intros ? []).
    assert (all_ok b) by (intros x Hx; apply B; eapply Permutation_in; [apply Permutation_sym|]; eauto).
    rewrite !fold_app, IH; auto.
  - apply all_ok_cons in H as [A H]. apply all_ok_cons in H as [B H].
    unfold fold; simpl. f_equal. destruct t, u; simpl; auto.
    rewrite !inj_ok; auto.
  - rewrite IH1, IH2; auto. intros x Hx; apply H. eapply Permutation_in; [apply Permutation_sym|]; eauto.
Qed.
End Fold.
