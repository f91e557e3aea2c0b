(* The degree of every node, computed; and its meaning: the loss does not depend on a stabilizing max. *)
From Coq Require Import Reals Lra Lia List ZArith QArith Qreals Bool Arith.
From Coquelicot Require Import Coquelicot.
From Tang Require Import grad.scalar grad.calculus sums.rsum grad.degree grad.degree_forms.
Import ListNotations.
Open Scope R_scope.

Definition scale (d : Q) (row : view) : degree := if Qeq_bool d 0 then Inv else Scale d row.
Definition shift (d : Q) (row : view) : degree := if Qeq_bool d 0 then Inv else Shift d row.
Definition same (d e : Q) (v w : view) : bool := Qeq_bool d e && view_eqb v w.
Definition number (b : body) : option Q := match b with Num q => Some q | _ => None end.
(* A condition that is decided because values are numbers. *)
Definition known (c : body) : option bool :=
  match c with Finite _ => Some true | Not (Finite _) => Some false | _ => None end.
(* 0 is of every scale. *)
Definition zero (b : body) : bool := match b with Num q => Qeq_bool q 0 | _ => false end.
(* What two values have in common that move alike. *)
Definition alike (a b : body) (x y : degree) : option degree :=
  match x, y with
  | Inv, Inv => Some Inv
  | Scale d v, Inv => if zero b then Some (Scale d v) else None
  | Inv, Scale d v => if zero a then Some (Scale d v) else None
  | Scale d v, Scale e w => if same d e v w then Some (Scale d v) else None
  | Shift d v, Shift e w => if same d e v w then Some (Shift d v) else None
  | _, _ => None
  end.
(* Degree of a body from the degrees of the nodes it reads; None: not of either form. *)
Fixpoint degree_of (table : nat -> option degree) (b : body) : option degree :=
  match b with
  | Free _ | Num _ => Some Inv
  | Read m w =>
    match table m with
    | Some Inv => Some Inv
    | Some (Scale d row) => Some (Scale d (subst_view w row))
    | Some (Shift d row) => Some (Shift d (subst_view w row))
    | None => None
    end
  | Add a b =>
    match degree_of table a, degree_of table b with
    | Some (Shift d v), Some Inv | Some Inv, Some (Shift d v) => Some (Shift d v)
    | Some (Shift d v), Some (Shift e w) => if view_eqb v w then Some (shift (Qred (d + e)) v) else None
    | Some x, Some y => alike a b x y
    | _, _ => None
    end
  | Mul a b =>
    match degree_of table a, degree_of table b with
    | Some Inv, Some Inv => Some Inv
    | Some (Scale d v), Some Inv | Some Inv, Some (Scale d v) => Some (Scale d v)
    | Some (Scale d v), Some (Scale e w) => if view_eqb v w then Some (scale (Qred (d + e)) v) else None
    | Some (Shift d v), Some Inv =>
      match number b with Some q => Some (shift (Qred (d * q)) v) | None => None end
    | Some Inv, Some (Shift d v) =>
      match number a with Some q => Some (shift (Qred (d * q)) v) | None => None end
    | _, _ => None
    end
  | Neg a =>
    match degree_of table a with
    | Some (Shift d v) => Some (Shift (- d) v) | r => r
    end
  | Recip a =>
    match degree_of table a with
    | Some Inv => Some Inv | Some (Scale d v) => Some (Scale (- d) v) | _ => None
    end
  | Ratio a b =>
    match degree_of table a, degree_of table b with
    | Some Inv, Some Inv => Some Inv
    | Some (Scale d v), Some Inv => Some (Scale d v)
    | Some Inv, Some (Scale d v) => Some (Scale (- d) v)
    | Some (Scale d v), Some (Scale e w) => if view_eqb v w then Some (scale (Qred (d - e)) v) else None
    | _, _ => None
    end
  | Exp2 a =>
    match degree_of table a with
    | Some Inv => Some Inv | Some (Shift d v) => Some (Scale d v) | _ => None
    end
  | Log2 a =>
    match degree_of table a with
    | Some Inv => Some Inv | Some (Scale d v) => Some (Shift d v) | _ => None
    end
  | Sqrt a =>
    match degree_of table a with
    | Some Inv => Some Inv | Some (Scale d v) => Some (Scale (d * (1 # 2)) v) | _ => None
    end
  | Max a b | Min a b | Or_else a b =>
    match degree_of table a, degree_of table b with Some x, Some y => alike a b x y | _, _ => None end
  | Less a b | Equal a b =>
    match degree_of table a, degree_of table b with
    | Some x, Some y => match alike a b x y with Some _ => Some Inv | None => None end
    | _, _ => None
    end
  | Finite a => match degree_of table a with Some _ => Some Inv | None => None end
  | Not a => match degree_of table a with Some Inv => Some Inv | _ => None end
  | Op _ a b => match degree_of table a, degree_of table b with Some Inv, Some Inv => Some Inv | _, _ => None end
  | Select c a b =>
    match degree_of table c, known c with
    | Some Inv, Some true => degree_of table a
    | Some Inv, Some false => degree_of table b
    | Some Inv, None =>
      match degree_of table a, degree_of table b with Some x, Some y => alike a b x y | _, _ => None end
    | _, _ => None
    end
  | Only g a => match degree_of table g with Some Inv => degree_of table a | _ => None end
  end.
(* A fold keeps a degree only if its row does not depend on the folded axes; a sum keeps no shift. *)
Definition node_degree (table : nat -> option degree) (nd : node) : option degree :=
  match degree_of table (lift nd), how nd with
  | Some Inv, _ => Some Inv
  | r, Map => r
  | Some (Scale d v), (Sum | Maximum | Minimum) => if view_below (points nd) v then Some (Scale d v) else None
  | Some (Shift d v), (Maximum | Minimum) => if view_below (points nd) v then Some (Shift d v) else None
  | _, _ => None
  end.
Definition put (table : nat -> option degree) (n : nat) (d : option degree) : nat -> option degree :=
  fun k => if Nat.eqb k n then d else table k.
Fixpoint degrees (n : nat) (nodes : list node) (table : nat -> option degree) : nat -> option degree :=
  match nodes with [] => table | nd :: r => degrees (S n) r (put table n (node_degree table nd)) end.
(* Node 0 is the max over P point axes: m + c(row). Everything else starts free of it. *)
Definition identity_view (P : nat) : view := map (fun a => Form [(a, 1%Z)] 0) (seq 0 P).
Definition start (P : nat) : nat -> option degree :=
  fun k => Some (match k with O => Shift 1 (identity_view P) | _ => Inv end).
(* The compiler's claim about a graph: every root is free of the max. *)
Definition max_eliminated (P : nat) (nodes : list node) (roots : list nat) : bool :=
  let t := degrees 1 nodes (start P) in
  forallb (fun r => match t r with Some Inv => true | _ => false end) roots.

Section Sound.
Context (c : list Z -> R).                                   (* any shift, row by row *)
Definition moves (d : degree) (p : point) (x y : R) : Prop :=
  match d with
  | Inv => y = x
  | Scale q v => y = x * exp2 (Q2R q * c (at_view p v))
  | Shift q v => y = x + Q2R q * c (at_view p v)
  end.
(* Absence does not move. *)
Definition moved (d : degree) (p : point) (x y : option R) : Prop :=
  match x, y with Some x, Some y => moves d p x y | None, None => True | _, _ => False end.
Definition tracked (table : nat -> option degree) (vals vals' : values) : Prop :=
  forall m d xs, table m = Some d -> moved d (of_coords xs) (vals m xs) (vals' m xs).

Lemma exp2_add a b : exp2 (a + b) = exp2 a * exp2 b.
Proof. unfold exp2. now rewrite Rmult_plus_distr_r, exp_plus. Qed.
Lemma exp2_opp a : exp2 (- a) = / exp2 a.
Proof. unfold exp2. rewrite Ropp_mult_distr_l_reverse. apply exp_Ropp. Qed.
Lemma exp2_gt a : 0 < exp2 a. Proof. apply exp_pos. Qed.
Lemma exp2_zero : exp2 0 = 1. Proof. unfold exp2. rewrite Rmult_0_l. apply exp_0. Qed.
Lemma log2_scale x a : 0 < x -> log2 (x * exp2 a) = log2 x + a.
Proof.
  intros X. unfold log2, exp2. rewrite ln_mult, ln_exp by (auto using exp_pos). pose proof ln2_pos. field. lra.
Qed.
Lemma Rmax_scale x y k : 0 < k -> Rmax (x * k) (y * k) = Rmax x y * k.
Proof. intros K. unfold Rmax. destruct (Rle_dec x y), (Rle_dec (x * k) (y * k)); try lra; nra. Qed.
Lemma Rmax_shift x y k : Rmax (x + k) (y + k) = Rmax x y + k.
Proof. unfold Rmax. destruct (Rle_dec x y), (Rle_dec (x + k) (y + k)); lra. Qed.
Lemma Rmin_scale x y k : 0 < k -> Rmin (x * k) (y * k) = Rmin x y * k.
Proof. intros K. unfold Rmin. destruct (Rle_dec x y), (Rle_dec (x * k) (y * k)); try lra; nra. Qed.
Lemma Rmin_shift x y k : Rmin (x + k) (y + k) = Rmin x y + k.
Proof. unfold Rmin. destruct (Rle_dec x y), (Rle_dec (x + k) (y + k)); lra. Qed.
Lemma sqrt_scale x a : sqrt (x * exp2 (2 * a)) = sqrt x * exp2 a.
Proof.
  replace (2 * a) with (a + a) by ring. rewrite exp2_add. pose proof (exp2_gt a).
  destruct (Rle_dec 0 x) as [P|N].
  - rewrite sqrt_mult by nra. f_equal. apply sqrt_square. lra.
  - rewrite !sqrt_neg_0 by nra. ring.
Qed.
Lemma ratio_scale x y a b : ratio (x * exp2 a) (y * exp2 b) = ratio x y * exp2 (a - b).
Proof.
  unfold ratio. pose proof (exp2_gt a). pose proof (exp2_gt b). unfold Rminus. rewrite exp2_add, exp2_opp.
  destruct (Req_EM_T y 0) as [->|N], (Req_EM_T _ 0) as [E|E].
  - ring.
  - exfalso. apply E. ring.
  - exfalso. apply Rmult_integral in E as [E|E]; lra.
  - field. split; lra.
Qed.
Lemma moved_scale d v p x y : y = x * exp2 (Q2R d * c (at_view p v)) -> moves (scale (Qred d) v) p x y.
Proof.
  intros ->. unfold scale. destruct (Qeq_bool (Qred d) 0) eqn:E; simpl.
  - apply Qeq_bool_eq in E. rewrite Qred_correct in E. rewrite (Qeq_eqR _ _ E). unfold Q2R; simpl.
    replace (0 * / 1 * c (at_view p v)) with 0 by ring. rewrite exp2_zero. ring.
  - now rewrite (Qeq_eqR _ _ (Qred_correct d)).
Qed.
Lemma moved_shift d v p x y : y = x + Q2R d * c (at_view p v) -> moves (shift (Qred d) v) p x y.
Proof.
  intros ->. unfold shift. destruct (Qeq_bool (Qred d) 0) eqn:E; simpl.
  - apply Qeq_bool_eq in E. rewrite Qred_correct in E. rewrite (Qeq_eqR _ _ E). unfold Q2R; simpl. ring.
  - now rewrite (Qeq_eqR _ _ (Qred_correct d)).
Qed.
Lemma same_sound d e v w p : same d e v w = true -> Q2R e * c (at_view p w) = Q2R d * c (at_view p v).
Proof.
  intros H. apply andb_prop in H as [D V]. apply Qeq_bool_eq in D.
  now rewrite (Qeq_eqR _ _ D), (view_eqb_sound v w p V).
Qed.
Lemma alike_sound a b x y d p u u' w w' : alike a b x y = Some d -> moves x p u u' -> moves y p w w' ->
  (zero a = true -> u = 0) -> (zero b = true -> w = 0) -> moves d p u u' /\ moves d p w w'.
Proof.
  intros E U W A B. destruct x as [|q v|q v], y as [|q' v'|q' v']; simpl in E; try discriminate.
  - inversion E; subst d. auto.
  - destruct (zero a); inversion E; subst d. simpl in *. rewrite U, A by auto. split; [ring|auto].
  - destruct (zero b); inversion E; subst d. simpl in *. rewrite W, B by auto. split; [auto|ring].
  - destruct (same q q' v v') eqn:S; inversion E; subst d. simpl in *. rewrite (same_sound _ _ _ _ p S) in W. auto.
  - destruct (same q q' v v') eqn:S; inversion E; subst d. simpl in *. rewrite (same_sound _ _ _ _ p S) in W. auto.
Qed.
End Sound.
