(* Certificates of the traffic program: feasibility and equal objectives, decided in exact integers, and a derivation of
   the inequality that the cover stands for. *)
From Coq Require Import Reals Lra Lia List ZArith QArith Qreals Bool Arith.
From Tang Require Export bound.lattice.
From Tang Require Import sums.rsum bound.duality.
Import ListNotations.
Open Scope R_scope.

(* Atom 0 is the memory size M; the others are extents and weights. A form is sum_k c_k log_M(atom_k), as the list
   of its coefficients: [c] is the constant c, because log_M(M) = 1. *)
Definition form := list Q.
Record certificate := Certificate {
  atoms : list Z;                      (* M first; all at least 1, M at least 2 *)
  extents : list form;                 (* beta_i: log-extent of loop i *)
  arrays : list (matrix * form);       (* the view of array j over the loops, mu_j: log-capacity *)
  subgroups : list matrix;             (* a basis of each subgroup whose ranks the cover has to pay *)
  cover_s : list Q; cover_t : list Q;  (* the cover: s_j, t_i *)
  tile : list form;                    (* the tile exponents x_h, one a subgroup *)
  proof : derivation                   (* of the inequality with these s and t *)
}.
Fixpoint add_form (f g : form) : form :=
  match f, g with [], g => g | f, [] => f | a :: f, b :: g => Qred (a + b) :: add_form f g end.
Definition scale_form (q : Q) (f : form) : form := map (fun a => Qred (q * a)) f.
Definition sub_form (f g : form) : form := add_form f (scale_form (-1) g).
Definition sum_forms (l : list form) : form := fold_right add_form [] l.
Definition zero_form (f : form) : bool := forallb (fun a => Qeq_bool a 0) f.
(* f >= 0 iff the product of atom^(D c) is at least 1, D a common denominator. *)
Definition denominator (f : form) : positive := fold_right (fun a d => Z.to_pos (Z.lcm (Zpos (Qden a)) (Zpos d))) 1%positive f.
Definition power (D : positive) (a : Q) : Z := Qnum a * (Zpos D / Zpos (Qden a)).
Definition divides (D : positive) (f : form) : bool := forallb (fun a => Z.eqb (Zpos D mod Zpos (Qden a)) 0) f.
Fixpoint products (As : list Z) (ns : list Z) : Z * Z :=
  match As, ns with
  | A :: As, n :: ns => let (p, q) := products As ns in
    if (0 <=? n)%Z then (A ^ n * p, q)%Z else (p, A ^ (- n) * q)%Z
  | _, _ => (1, 1)%Z
  end.
Definition nonneg (As : list Z) (f : form) : bool :=
  let D := denominator f in
  divides D f && (let (p, q) := products As (map (power D) f) in Z.leb q p).
Definition views c := map fst (arrays c).
Definition loops_of c := seq 0 (length (extents c)).
Definition arrays_of c := seq 0 (length (arrays c)).
Definition rows_of c := seq 0 (length (subgroups c)).
Definition beta c i := nth i (extents c) [].
Definition mu c j := snd (nth j (arrays c) ([], [])).
Definition x c h := nth h (tile c) [].
Definition s c j := nth j (cover_s c) 0%Q.
Definition t c i := nth i (cover_t c) 0%Q.
(* The rank of subgroup h, of its image in array j, and of its image in loop i. *)
Definition rank_of c h := rank (nth h (subgroups c) []).
Definition in_array c j h := rank (image (nth j (views c) []) (nth h (subgroups c) [])).
Definition in_loop (c : certificate) (i h : nat) := rank (image [unit_row i] (nth h (subgroups c) [])).
Definition times (n : nat) (q : Q) : Q := inject_Z (Z.of_nat n) * q.
Definition Qsum (l : list Q) : Q := fold_right (fun a b => Qred (a + b)) 0%Q l.
Definition part c (rank : nat -> nat) : form :=
  sum_forms (map (fun h => scale_form (inject_Z (Z.of_nat (rank h))) (x c h)) (rows_of c)).
Definition value_of_tile c := part c (rank_of c).
Definition value_of_cover c := add_form (sum_forms (map (fun j => scale_form (s c j) (mu c j)) (arrays_of c)))
                                        (sum_forms (map (fun i => scale_form (t c i) (beta c i)) (loops_of c))).
Definition check (c : certificate) : bool :=
  match atoms c with M :: _ => Z.leb 2 M | [] => false end && forallb (Z.leb 1) (atoms c) &&
  derives (length (extents c)) (views c) (cover_s c) (cover_t c) (proof c) &&
  forallb (fun h => Qle_bool (inject_Z (Z.of_nat (rank_of c h)))
    (Qsum (map (fun j => times (in_array c j h) (s c j)) (arrays_of c)) +
     Qsum (map (fun i => times (in_loop c i h) (t c i)) (loops_of c)))) (rows_of c) &&
  forallb (fun h => nonneg (atoms c) (x c h)) (rows_of c) &&
  forallb (fun i => nonneg (atoms c) (sub_form (beta c i) (part c (in_loop c i)))) (loops_of c) &&
  forallb (fun j => nonneg (atoms c) (sub_form (mu c j) (part c (in_array c j)))) (arrays_of c) &&
  zero_form (sub_form (value_of_tile c) (value_of_cover c)).

(* The meaning of a form. *)
Definition log_M (As : list Z) (A : Z) : R := ln (IZR A) / ln (IZR (hd 2%Z As)).
Fixpoint sum_logs (As : list Z) (f : form) : R :=
  match As, f with A :: As, a :: f => Q2R a * ln (IZR A) + sum_logs As f | _, _ => 0 end.
Definition meaning (As : list Z) (f : form) : R := sum_logs As f / ln (IZR (hd 2%Z As)).

Local Opaque Qred.
Lemma Qred_R q : Q2R (Qred q) = Q2R q.
Proof. apply Qeq_eqR, Qred_correct. Qed.
Lemma Q2R_zero : Q2R 0 = 0. Proof. unfold Q2R; simpl; lra. Qed.
Lemma sum_logs_nil As : sum_logs As [] = 0. Proof. destruct As; reflexivity. Qed.
Lemma sum_logs_add As : forall f g, sum_logs As (add_form f g) = sum_logs As f + sum_logs As g.
Proof.
  induction As as [|A As IH]; intros [|a f] [|b g]; simpl; try lra. rewrite IH, Qred_R, Q2R_plus. ring.
Qed.
Lemma sum_logs_scale As q : forall f, sum_logs As (scale_form q f) = Q2R q * sum_logs As f.
Proof. induction As as [|A As IH]; intros [|a f]; simpl; try lra. rewrite IH, Qred_R, Q2R_mult. ring. Qed.
Lemma sum_logs_zero As : forall f, zero_form f = true -> sum_logs As f = 0.
Proof.
  induction As as [|A As IH]; intros [|a f]; simpl; auto. intros H. apply andb_prop in H as [E H].
  apply Qeq_bool_eq in E. rewrite (Qeq_eqR _ _ E), Q2R_zero, IH by auto. ring.
Qed.
Lemma power_exact D a : (Zpos D mod Zpos (Qden a) = 0)%Z -> IZR (power D a) = IZR (Zpos D) * Q2R a.
Proof.
  intros E. unfold power, Q2R. rewrite mult_IZR.
  pose proof (Z_div_mod_eq_full (Zpos D) (Zpos (Qden a))) as H. rewrite E, Z.add_0_r in H.
  assert (N : IZR (Zpos (Qden a)) <> 0) by (apply not_0_IZR; lia).
  apply (f_equal IZR) in H. rewrite mult_IZR in H. rewrite H. field. exact N.
Qed.
Lemma ln_power A n : (1 <= A)%Z -> (0 <= n)%Z -> ln (IZR (A ^ n)) = IZR n * ln (IZR A).
Proof.
  intros P N. rewrite <- (Z2Nat.id n N). generalize (Z.to_nat n) as k. induction k as [|k IH].
  - simpl. rewrite ln_1. ring.
  - rewrite Nat2Z.inj_succ, Z.pow_succ_r, mult_IZR, ln_mult, IH, succ_IZR by
      (try apply IZR_lt; try lia; apply Z.pow_pos_nonneg; lia). ring.
Qed.
Lemma products_sound As : forall ns, forallb (Z.leb 1) As = true ->
  let (p, q) := products As ns in
  (1 <= p)%Z /\ (1 <= q)%Z /\
  ln (IZR p) - ln (IZR q) = fold_right (fun t s => IZR (snd t) * ln (IZR (fst t)) + s) 0 (combine As ns).
Proof.
  induction As as [|A As IH]; intros [|n ns] H; simpl; try (rewrite ln_1; repeat split; try lia; lra).
  apply andb_prop in H as [A1 H]. apply Z.leb_le in A1. specialize (IH ns H).
  destruct (products As ns) as [p q]. destruct IH as [P [Q E]].
  destruct (Z.leb_spec 0 n) as [N|N].
  - assert (W : (1 <= A ^ n)%Z) by (pose proof (Z.pow_pos_nonneg A n); lia).
    split; [nia|]. split; auto. rewrite mult_IZR, ln_mult, ln_power by (try apply IZR_lt; lia). lra.
  - assert (W : (1 <= A ^ (- n))%Z) by (pose proof (Z.pow_pos_nonneg A (- n)); lia).
    split; auto. split; [nia|]. rewrite mult_IZR, ln_mult, ln_power by (try apply IZR_lt; lia).
    rewrite opp_IZR. lra.
Qed.
Lemma powers_sum D As : forall f, divides D f = true ->
  fold_right (fun t s => IZR (snd t) * ln (IZR (fst t)) + s) 0 (combine As (map (power D) f)) = IZR (Zpos D) * sum_logs As f.
Proof.
  induction As as [|A As IH]; intros [|a f] H; simpl; try ring. simpl in H. apply andb_prop in H as [E H].
  apply Z.eqb_eq in E. rewrite IH, power_exact by auto. ring.
Qed.
Lemma nonneg_sound As f : forallb (Z.leb 1) As = true -> nonneg As f = true -> 0 <= sum_logs As f.
Proof.
  intros A H. unfold nonneg in H. apply andb_prop in H as [D H].
  pose proof (products_sound As (map (power (denominator f)) f) A) as P.
  destruct (products _ _) as [p q]. destruct P as [P [Q E]]. apply Z.leb_le in H.
  rewrite powers_sum in E by auto.
  assert (L : ln (IZR q) <= ln (IZR p)).
  { destruct (Z.eq_dec q p) as [->|N]; [lra|]. left. apply ln_increasing; apply IZR_lt; lia. }
  assert (K : 0 < IZR (Zpos (denominator f))) by (apply IZR_lt; lia). nra.
Qed.

Section Sound.
Context (c : certificate).
Hypothesis ok : check c = true.
Notation L := (sum_logs (atoms c)).
Lemma L_sum {I} (f : I -> form) l : L (sum_forms (map f l)) = rsum (fun i => L (f i)) l.
Proof. induction l as [|i l IH]; simpl; [apply sum_logs_nil|]. now rewrite sum_logs_add, IH. Qed.
Lemma L_sub f g : L (sub_form f g) = L f - L g.
Proof. unfold sub_form. rewrite sum_logs_add, sum_logs_scale. unfold Q2R; simpl. lra. Qed.
Lemma Qsum_R {I} (f : I -> Q) l : Q2R (Qsum (map f l)) = rsum (fun i => Q2R (f i)) l.
Proof. induction l as [|i l IH]; simpl; [apply Q2R_zero|]. now rewrite Qred_R, Q2R_plus, IH. Qed.
Lemma Qle_R a b : Qle_bool a b = true -> Q2R a <= Q2R b.
Proof. intros H. apply Qle_Rle, Qle_bool_iff, H. Qed.

Lemma L_part rank : L (part c rank) = rsum (fun h => INR (rank h) * L (x c h)) (rows_of c).
Proof.
  unfold part. rewrite L_sum. apply rsum_ext. intro h. rewrite sum_logs_scale. f_equal.
  unfold Q2R. simpl. rewrite INR_IZR_INZ. lra.
Qed.
Lemma times_R n q : Q2R (times n q) = Q2R q * INR n.
Proof. unfold times. rewrite Q2R_mult, INR_IZR_INZ. unfold Q2R at 1. simpl. lra. Qed.
Lemma at_least_zero (l : list Q) : forallb (Qle_bool 0) l = true -> forall k, 0 <= Q2R (nth k l 0%Q).
Proof.
  rewrite forallb_forall. intros H k. destruct (Nat.lt_ge_cases k (length l)).
  - rewrite <- Q2R_zero. apply Qle_R, H, nth_In. auto.
  - rewrite nth_overflow by auto. rewrite Q2R_zero. lra.
Qed.

(* In units of ln M: everything below is the program multiplied by ln M > 0. *)
Definition tile_is (y : nat -> R) : Prop :=
  (forall h, In h (rows_of c) -> 0 <= y h) /\
  (forall i, In i (loops_of c) -> rsum (fun h => INR (in_loop c i h) * y h) (rows_of c) <= L (beta c i)) /\
  (forall j, In j (arrays_of c) -> rsum (fun h => INR (in_array c j h) * y h) (rows_of c) <= L (mu c j)).
Definition cover_is (s t : nat -> R) : Prop :=
  (forall j, In j (arrays_of c) -> 0 <= s j) /\ (forall i, In i (loops_of c) -> 0 <= t i) /\
  (forall h, In h (rows_of c) -> INR (rank_of c h) <= rsum (fun j => s j * INR (in_array c j h)) (arrays_of c) +
                                                     rsum (fun i => t i * INR (in_loop c i h)) (loops_of c)).
Definition volume (y : nat -> R) : R := rsum (fun h => INR (rank_of c h) * y h) (rows_of c).
Definition price (s t : nat -> R) : R :=
  rsum (fun j => s j * L (mu c j)) (arrays_of c) + rsum (fun i => t i * L (beta c i)) (loops_of c).
Lemma check_facts : tile_is (fun h => L (x c h)) /\ cover_is (fun j => Q2R (s c j)) (fun i => Q2R (t c i)) /\
  volume (fun h => L (x c h)) = price (fun j => Q2R (s c j)) (fun i => Q2R (t c i)).
Proof.
  pose proof ok as H. unfold check in H.
  apply andb_prop in H as [H Z]. apply andb_prop in H as [H A]. apply andb_prop in H as [H B]. apply andb_prop in H as [H X].
  apply andb_prop in H as [H C]. apply andb_prop in H as [H D]. apply andb_prop in H as [_ Pos].
  assert (Sp : forallb (Qle_bool 0) (cover_s c) = true /\ forallb (Qle_bool 0) (cover_t c) = true).
  { unfold derives in D. repeat (apply andb_prop in D as [D ?]). auto. }
  destruct Sp as [Sp Tp]. rewrite forallb_forall in A, B, C, X.
  split; [split; [|split]|split; [split; [|split]|]].
  - intros h I. apply nonneg_sound; auto.
  - intros i I. pose proof (nonneg_sound _ _ Pos (B i I)) as N. rewrite L_sub, L_part in N. lra.
  - intros j I. pose proof (nonneg_sound _ _ Pos (A j I)) as N. rewrite L_sub, L_part in N. lra.
  - intros j _. now apply at_least_zero.
  - intros i _. now apply at_least_zero.
  - intros h I. pose proof (Qle_R _ _ (C h I)) as K. rewrite Q2R_plus, !Qsum_R in K.
    rewrite (rsum_ext (fun j => Q2R (times _ _)) (fun j => Q2R (s c j) * INR (in_array c j h))) in K by (intro; apply times_R).
    rewrite (rsum_ext (fun i => Q2R (times _ _)) (fun i => Q2R (t c i) * INR (in_loop c i h))) in K by (intro; apply times_R).
    replace (Q2R (inject_Z (Z.of_nat (rank_of c h)))) with (INR (rank_of c h)) in K; auto.
    unfold Q2R; simpl. rewrite INR_IZR_INZ. lra.
  - pose proof (sum_logs_zero (atoms c) _ Z) as E. rewrite L_sub in E.
    unfold value_of_tile, value_of_cover in E. rewrite sum_logs_add, !L_sum, L_part in E.
    rewrite (rsum_ext (fun j => L (scale_form _ _)) (fun j => Q2R (s c j) * L (mu c j))) in E by (intro; apply sum_logs_scale).
    rewrite (rsum_ext (fun i => L (scale_form _ _)) (fun i => Q2R (t c i) * L (beta c i))) in E by (intro; apply sum_logs_scale).
    unfold volume, price. lra.
Qed.
Lemma duality y s' t' : tile_is y -> cover_is s' t' -> volume y <= price s' t'.
Proof.
  intros [Y [B M]] [S [T C]]. unfold volume, price.
  now apply (weak_duality_ranks (rows_of c) (loops_of c) (arrays_of c) (fun h => INR (rank_of c h))
    (fun j h => INR (in_array c j h)) (fun i h => INR (in_loop c i h))).
Qed.
(* The tile is the best tile, and the cover the best cover: strong duality, with the proof of both. *)
Theorem lp_certificate_tile y : tile_is y -> volume y <= volume (fun h => L (x c h)).
Proof. intros Y. destruct check_facts as [_ [C E]]. rewrite E. now apply duality. Qed.
Theorem lp_certificate_cover s' t' : cover_is s' t' ->
  price (fun j => Q2R (s c j)) (fun i => Q2R (t c i)) <= price s' t'.
Proof. intros C. destruct check_facts as [Y [_ E]]. rewrite <- E. now apply duality. Qed.

(* The bound itself: points of the loops' space that touch at most touched_j values of view j, and values_i values of
   loop i, are at most prod touched_j^s_j prod values_i^t_i. *)
Section Points.
Context (E : list vector) (touched values : nat -> list vector).
Hypothesis distinct : NoDup E.
Hypothesis dimension : forall p, In p E -> length p = length (extents c).
Hypothesis some : E <> [].
Hypothesis all_touched : forall j p, (j < length (arrays c))%nat -> In p E -> In (view (nth j (views c) []) p) (touched j).
Hypothesis all_values : forall i p, (i < length (extents c))%nat -> In p E -> In (view [unit_row i] p) (values i).
Theorem lp_certificate_inequality : ln (INR (length E)) <=
  rsum (fun j => Q2R (s c j) * ln (INR (length (touched j)))) (arrays_of c) +
  rsum (fun i => Q2R (t c i) * ln (INR (length (values i)))) (loops_of c).
Proof.
  pose proof ok as H. unfold check in H. do 5 (apply andb_prop in H as [H _]). apply andb_prop in H as [_ D].
  assert (N : length (views c) = length (arrays c)) by apply map_length.
  unfold arrays_of, loops_of. rewrite <- N.
  apply (lattice_inequality _ _ _ _ _ D E distinct dimension some touched values); auto.
  intros j p J. rewrite N in J. auto.
Qed.
(* No set of points that fits, each array in its capacity and each loop in its extent, is larger than the tile. *)
Theorem lp_certificate_volume :
  (forall j, In j (arrays_of c) -> ln (INR (length (touched j))) <= L (mu c j)) ->
  (forall i, In i (loops_of c) -> ln (INR (length (values i))) <= L (beta c i)) ->
  ln (INR (length E)) <= volume (fun h => L (x c h)).
Proof.
  intros T V. destruct check_facts as [_ [[S [P _]] Eq]]. rewrite Eq.
  eapply Rle_trans; [exact lp_certificate_inequality|].
  apply Rplus_le_compat; apply rsum_le; intros k K; (apply Rmult_le_compat_l; [auto|]); auto.
Qed.
End Points.
End Sound.
Ltac prove_certificate := first
  [ solve [ vm_compute; reflexivity ] | fail 1 "tang: not proved: certificate" ].
