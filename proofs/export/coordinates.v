(* Coordinates and bounds are linear forms over axes and index reads. A fusion step as the compiler made it composes them:
   `canon` brings the forms of both sides to one spelling. *)
From Coq Require Import Reals ZArith List Bool Lra.
From Tang Require Export export.xr export.term export.fusion.
Import ListNotations.

Fixpoint term_eq_dec (a b : term) {struct a} : {a = b} + {a <> b}.
Proof. decide equality; try apply Z.eq_dec; try apply Nat.eq_dec. exact (list_eq_dec term_eq_dec at_ at_0). Defined.

(* Constant and coefficients, the atoms in the order of their codes. *)
Notation form := (Z * list (term * Z))%type.
Fixpoint code (t : term) : list Z :=
  match t with
  | ax n => [0; Z.of_nat n] | rd n cs => 1 :: Z.of_nat n :: concat (map code cs)
  | add a b => 2 :: code a ++ code b | mul a b => 3 :: code a ++ code b | lit m e => [4; m; e] | _ => [5]
  end%Z.
Fixpoint earlier (a b : list Z) : bool :=
  match a, b with
  | _, [] => false | [], _ => true
  | x :: a, y :: b => (x <? y)%Z || ((x =? y)%Z && earlier a b)
  end.
Fixpoint insert (t : term) (k : Z) (l : list (term * Z)) : list (term * Z) :=
  match l with
  | [] => [(t, k)]
  | (u, j) :: r =>
      if term_eq_dec t u then (if (j + k =? 0)%Z then r else (u, (j + k)%Z) :: r)
      else if earlier (code t) (code u) then (t, k) :: l else (u, j) :: insert t k r
  end.
Definition plus (f g : form) : form :=
  ((fst f + fst g)%Z, fold_right (fun p l => insert (fst p) (snd p) l) (snd g) (snd f)).
Definition scale (c : Z) (f : form) : form :=
  if (c =? 0)%Z then (0%Z, []) else ((c * fst f)%Z, map (fun p => (fst p, (c * snd p)%Z)) (snd f)).
Definition rebuild (f : form) : term := fold_right (fun p r => add (mul (lit (snd p) 0) (fst p)) r) (lit (fst f) 0) (snd f).
Fixpoint all_some {A} (l : list (option A)) : option (list A) :=
  match l with
  | [] => Some [] | None :: _ => None
  | Some x :: r => match all_some r with Some xs => Some (x :: xs) | None => None end
  end.

Section Forms.
Context (whole : list nat).                                  (* the nodes whose values are indices, always there *)
Fixpoint lin (t : term) : option form :=
  match t with
  | lit m e => if (e =? 0)%Z then Some (m, []) else None
  | ax n => Some (0%Z, [(ax n, 1%Z)])
  | rd n cs => if existsb (Nat.eqb n) whole then
      match all_some (map lin cs) with Some fs => Some (0%Z, [(rd n (map rebuild fs), 1%Z)]) | None => None end else None
  | add a b => match lin a, lin b with Some f, Some g => Some (plus f g) | _, _ => None end
  | mul a b => match lin a, lin b with Some (c, []), Some g => Some (scale c g) | _, _ => None end
  | neg a => match lin a with Some f => Some (scale (-1) f) | None => None end
  | _ => None
  end.
(* Every maximal linear subterm in its one spelling; a guard that says an axis equals itself goes. *)
Definition spelled (t : term) : term :=
  match lin t with
  | Some f => rebuild f
  | None =>
    match t with
    | only_ (equal_ x y) a =>
      match lin x, lin y with
      | Some f, Some h => if term_eq_dec (rebuild f) (rebuild h) then a else t
      | _, _ => t
      end
    | _ => t
    end
  end.
Definition canon : term -> term := everywhere spelled.

Section Sound.
Context (vars axes : nat -> option xr) (read : nat -> list xr -> option xr).
Hypothesis axes_are : forall n, exists x, axes n = Some (Fin x).
Hypothesis whole_are : forall n xs, In n whole -> exists x, read n xs = Some (Fin x).
Notation ev := (eval vars axes read).
Open Scope R_scope.
Fixpoint sum_is (k : Z) (l : list (term * Z)) (x : R) : Prop :=
  match l with
  | [] => x = IZR k
  | (t, j) :: r => exists y z, ev t = Some (Fin y) /\ sum_is k r z /\ x = IZR j * y + z
  end.
Lemma rebuild_is k l : forall x, sum_is k l x -> ev (rebuild (k, l)) = Some (Fin x).
Proof.
  unfold rebuild. cbn [fst snd]. induction l as [|[t j] r IH]; cbn [sum_is fold_right fst snd]; intros x H.
  - now subst.
  - destruct H as [y [z [T [S ->]]]]. cbn [eval]. rewrite T, (IH _ S). reflexivity.
Qed.
Lemma insert_is t j y k : ev t = Some (Fin y) -> forall l x, sum_is k l x -> sum_is k (insert t j l) (x + IZR j * y).
Proof.
  intros T. induction l as [|[u i] r IH]; cbn [insert]; intros x H.
  - cbn [sum_is] in *. subst. exists y, (IZR k). repeat split; auto. ring.
  - pose proof H as [w [z [U [S E]]]]. destruct (term_eq_dec t u) as [->|N].
    + rewrite T in U. inversion U. subst w. destruct (Z.eqb_spec (i + j) 0) as [Z0|_].
      * assert (A : IZR i + IZR j = 0) by (rewrite <- plus_IZR, Z0; reflexivity).
        replace (x + IZR j * y) with z; auto. subst x. replace (IZR j) with (- IZR i) by lra. ring.
      * exists y, z. repeat split; auto. rewrite plus_IZR. subst x. ring.
    + destruct (earlier (code t) (code u)).
      * exists y, x. repeat split; auto. ring.
      * exists w, (z + IZR j * y). repeat split; auto. subst x. ring.
Qed.
Lemma shift_is c k l : forall x, sum_is k l x -> sum_is (c + k) l (IZR c + x).
Proof.
  induction l as [|[t j] r IH]; cbn [sum_is]; intros x H; [subst; now rewrite plus_IZR|].
  destruct H as [y [z [T [S ->]]]]. exists y, (IZR c + z). repeat split; auto. ring.
Qed.
Lemma plus_is f g x y : sum_is (fst f) (snd f) x -> sum_is (fst g) (snd g) y ->
  sum_is (fst (plus f g)) (snd (plus f g)) (x + y).
Proof.
  destruct f as [k l], g as [h m]. unfold plus. cbn [fst snd]. revert x. induction l as [|[t j] r IH]; cbn [sum_is fold_right fst snd]; intros x F G.
  - subst. now apply shift_is.
  - destruct F as [w [z [T [S ->]]]]. replace (IZR j * w + z + y) with (z + y + IZR j * w) by ring.
    apply insert_is; auto.
Qed.
Lemma scale_is c f x : sum_is (fst f) (snd f) x -> sum_is (fst (scale c f)) (snd (scale c f)) (IZR c * x).
Proof.
  destruct f as [k l]. unfold scale. destruct (Z.eqb_spec c 0) as [->|_]; cbn [fst snd].
  - intros _. cbn [sum_is]. ring.
  - revert x. induction l as [|[t j] r IH]; cbn [sum_is map fst snd]; intros x H; [subst; now rewrite mult_IZR|].
    destruct H as [y [z [T [S ->]]]]. exists y, (IZR c * z). repeat split; auto. rewrite mult_IZR. ring.
Qed.
Definition linear (t : term) : Prop := forall f, lin t = Some f -> exists x, ev t = Some (Fin x) /\ sum_is (fst f) (snd f) x.
Lemma all_lin cs fs : Forall linear cs -> all_some (map lin cs) = Some fs ->
  exists xs, all_present (map ev cs) = Some xs /\ all_present (map ev (map rebuild fs)) = Some xs.
Proof.
  intros H. revert fs. induction H as [|c cs C _ IH]; cbn [map all_some]; intros fs E.
  - inversion E. exists []. split; reflexivity.
  - destruct (lin c) as [[k l]|] eqn:L; [|discriminate]. destruct (all_some (map lin cs)) as [gs|]; [|discriminate].
    inversion E; subst. destruct (IH gs eq_refl) as [xs [A B]]. destruct (C _ L) as [x [X S]].
    exists (Fin x :: xs). cbn [map all_present]. pose proof (rebuild_is k l x S) as K. rewrite X, A, K, B. split; reflexivity.
Qed.
Lemma lin_is t : linear t.
Proof.
  by_term t.
  - intros f E. cbn [lin] in E. destruct (existsb (Nat.eqb node_) whole) eqn:W; [|discriminate].
    destruct (all_some (map lin l)) as [fs|] eqn:A; [|discriminate]. inversion E; subst.
    destruct (all_lin _ _ H A) as [xs [P Q]].
    apply existsb_exists in W as [n [I N]]. apply Nat.eqb_eq in N. subst n.
    destruct (whole_are node_ xs I) as [x X]. exists x. cbn [eval fst snd sum_is]. rewrite P, X. split; auto.
    exists x, 0. repeat split; auto; [now rewrite Q|ring].
  - destruct t; auto; intros f E; cbn [lin] in E; try discriminate.
    + destruct (Z.eqb_spec exponent 0) as [->|_]; inversion E; subst. exists (IZR mantissa). split; reflexivity.
    + inversion E; subst. destruct (axes_are n) as [x X]. exists x. cbn [eval fst snd sum_is]. split; auto.
      exists x, 0. repeat split; auto; ring.
  - repeat split; intros f E; cbn [lin] in E; try discriminate.
    destruct (lin t) as [g|] eqn:L; [|discriminate]. inversion E; subst. destruct (IHt _ L) as [x [X S]].
    exists (- x). cbn [eval]. rewrite X. split; auto. replace (- x) with (IZR (-1) * x) by (cbn; ring). now apply scale_is.
  - repeat split; intros f E; cbn [lin] in E; try discriminate.
    + destruct (lin t1) as [g|] eqn:L; [|discriminate]. destruct (lin t2) as [h|] eqn:M; [|discriminate]. inversion E; subst.
      destruct (IHt1 _ L) as [x [X S]]. destruct (IHt2 _ M) as [y [Y T]]. exists (x + y). cbn [eval]. rewrite X, Y.
      split; auto. now apply plus_is.
    + destruct (lin t1) as [[c [|q g]]|] eqn:L; [|discriminate|discriminate]. destruct (lin t2) as [h|] eqn:M; [|discriminate].
      inversion E; subst. destruct (IHt1 _ L) as [x [X S]]. destruct (IHt2 _ M) as [y [Y T]]. cbn [fst snd sum_is] in S. subst x.
      exists (IZR c * y). cbn [eval]. rewrite X, Y. split; auto. now apply scale_is.
  - intros f E. discriminate.
Qed.
Lemma spelled_sound t : ev (spelled t) = ev t.
Proof.
  unfold spelled. destruct (lin t) as [[k l]|] eqn:N.
  - destruct (lin_is t _ N) as [x [X S]]. rewrite X. now apply rebuild_is.
  - destruct t; auto. destruct t1; auto. destruct (lin t1_1) as [[k l]|] eqn:L; auto. destruct (lin t1_2) as [[h m]|] eqn:M; auto.
    destruct (term_eq_dec (rebuild (k, l)) (rebuild (h, m))) as [E|]; auto.
    destruct (lin_is _ _ L) as [x [X S]]. destruct (lin_is _ _ M) as [y [Y T]].
    pose proof (rebuild_is k l x S) as P. pose proof (rebuild_is h m y T) as Q. rewrite E, Q in P. inversion P; subst.
    cbn [eval]. rewrite X, Y. cbn. destruct (Req_EM_T x x); [reflexivity|congruence].
Qed.
Theorem canon_sound t : ev (canon t) = ev t.
Proof. apply everywhere_sound, spelled_sound. Qed.
End Sound.
End Forms.
