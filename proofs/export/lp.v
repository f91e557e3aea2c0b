(* Certificates of the traffic program: feasibility and equal objectives, decided in exact integers. *)
From Coq Require Import Reals Lra Lia List ZArith QArith Qreals Bool Arith.
From Tang Require Import sums.rsum bound.duality.
Import ListNotations.
Open Scope R_scope.

(* Atom 0 is the memory size M; the others are extents and weights. A form is sum_k c_k log_M(atom_k), as the list
   of its coefficients: [c] is the constant c, because log_M(M) = 1. *)
Definition form := list Q.
Record certificate := Certificate {
  atoms : list Z;                      (* M first; all at least 1, M at least 2 *)
  extents : list form;                 (* beta_i: log-extent of loop i *)
  arrays : list (list nat * form);     (* loops that array j depends on, mu_j: log-capacity *)
  cover_s : list Q; cover_t : list Q;  (* the cover: s_j, t_i *)
  tile : list form                     (* the tile exponents x_i *)
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
Definition reads (c : certificate) (j i : nat) : bool := existsb (Nat.eqb i) (fst (nth j (arrays c) ([], []))).
Definition loops_of c := seq 0 (length (extents c)).
Definition arrays_of c := seq 0 (length (arrays c)).
Definition beta c i := nth i (extents c) [].
Definition mu c j := snd (nth j (arrays c) ([], [])).
Definition x c i := nth i (tile c) [].
Definition s c j := nth j (cover_s c) 0%Q.
Definition t c i := nth i (cover_t c) 0%Q.
Definition Qsum (l : list Q) : Q := fold_right (fun a b => Qred (a + b)) 0%Q l.
Definition value_of_tile c := sum_forms (map (x c) (loops_of c)).
Definition value_of_cover c := add_form (sum_forms (map (fun j => scale_form (s c j) (mu c j)) (arrays_of c)))
                                        (sum_forms (map (fun i => scale_form (t c i) (beta c i)) (loops_of c))).
Definition check (c : certificate) : bool :=
  match atoms c with M :: _ => Z.leb 2 M | [] => false end && forallb (Z.leb 1) (atoms c) &&
  forallb (fun j => Qle_bool 0 (s c j)) (arrays_of c) && forallb (fun i => Qle_bool 0 (t c i)) (loops_of c) &&
  forallb (fun i => Qle_bool 1 (Qsum (map (fun j => if reads c j i then s c j else 0%Q) (arrays_of c)) + t c i)) (loops_of c) &&
  forallb (fun i => nonneg (atoms c) (x c i)) (loops_of c) &&
  forallb (fun i => nonneg (atoms c) (sub_form (beta c i) (x c i))) (loops_of c) &&
  forallb (fun j => nonneg (atoms c) (sub_form (mu c j)
     (sum_forms (map (fun i => if reads c j i then x c i else []) (loops_of c))))) (arrays_of c) &&
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

(* In units of ln M: everything below is the program multiplied by ln M > 0. *)
Definition facts : Prop :=
  (forall i, In i (loops_of c) -> 0 <= L (x c i) <= L (beta c i)) /\
  (forall j, In j (arrays_of c) -> rsum (fun i => if reads c j i then L (x c i) else 0) (loops_of c) <= L (mu c j)) /\
  (forall j, In j (arrays_of c) -> 0 <= Q2R (s c j)) /\ (forall i, In i (loops_of c) -> 0 <= Q2R (t c i)) /\
  (forall i, In i (loops_of c) -> 1 <= rsum (fun j => if reads c j i then Q2R (s c j) else 0) (arrays_of c) + Q2R (t c i)) /\
  rsum (fun i => L (x c i)) (loops_of c) =
    rsum (fun j => Q2R (s c j) * L (mu c j)) (arrays_of c) + rsum (fun i => Q2R (t c i) * L (beta c i)) (loops_of c).
Lemma check_facts : facts.
Proof.
  pose proof ok as H. unfold check in H. repeat (apply andb_prop in H as [H ?]).
  rewrite forallb_forall in *|-.
  assert (A : forallb (Z.leb 1) (atoms c) = true) by (apply forallb_forall; assumption).
  unfold facts. repeat split.
  - apply nonneg_sound; auto.
  - pose proof (nonneg_sound _ _ A (H2 i ltac:(assumption))) as N. rewrite L_sub in N. lra.
  - intros j J. pose proof (nonneg_sound _ _ A (H1 j J)) as N. rewrite L_sub, L_sum in N.
    assert (E : rsum (fun i => L (if reads c j i then x c i else [])) (loops_of c) =
                rsum (fun i => if reads c j i then L (x c i) else 0) (loops_of c)).
    { apply rsum_ext. intro i. destruct (reads c j i); auto. apply sum_logs_nil. }
    lra.
  - intros j J. rewrite <- Q2R_zero. apply Qle_R; auto.
  - intros i I. rewrite <- Q2R_zero. apply Qle_R; auto.
  - intros i I. pose proof (Qle_R _ _ (H4 i I)) as C. rewrite Q2R_plus, Qsum_R in C.
    assert (E : rsum (fun j => Q2R (if reads c j i then s c j else 0%Q)) (arrays_of c) =
                rsum (fun j => if reads c j i then Q2R (s c j) else 0) (arrays_of c)).
    { apply rsum_ext. intro j. destruct (reads c j i); auto. apply Q2R_zero. }
    rewrite E in C. unfold Q2R in C at 1; simpl in C. lra.
  - pose proof (sum_logs_zero (atoms c) _ H0) as Z. rewrite L_sub in Z.
    unfold value_of_tile, value_of_cover in Z. rewrite sum_logs_add, !L_sum in Z.
    rewrite (rsum_ext (fun j => L (scale_form _ _)) (fun j => Q2R (s c j) * L (mu c j))) in Z by (intro; apply sum_logs_scale).
    rewrite (rsum_ext (fun i => L (scale_form _ _)) (fun i => Q2R (t c i) * L (beta c i))) in Z by (intro; apply sum_logs_scale).
    lra.
Qed.
(* The tile is the best tile, and the cover the best cover: strong duality, with the proof of both. *)
Theorem lp_certificate_tile (y : nat -> R) :
  (forall i, In i (loops_of c) -> 0 <= y i <= L (beta c i)) ->
  (forall j, In j (arrays_of c) -> rsum (fun i => if reads c j i then y i else 0) (loops_of c) <= L (mu c j)) ->
  rsum y (loops_of c) <= rsum (fun i => L (x c i)) (loops_of c).
Proof.
  intros Y F. destruct check_facts as [X [FX [S [T [C E]]]]]. rewrite E.
  apply (weak_duality _ _ (reads c)); auto; intros i I; apply Y; auto.
Qed.
Theorem lp_certificate_cover (s' t' : nat -> R) :
  (forall j, In j (arrays_of c) -> 0 <= s' j) -> (forall i, In i (loops_of c) -> 0 <= t' i) ->
  (forall i, In i (loops_of c) -> 1 <= rsum (fun j => if reads c j i then s' j else 0) (arrays_of c) + t' i) ->
  rsum (fun j => Q2R (s c j) * L (mu c j)) (arrays_of c) + rsum (fun i => Q2R (t c i) * L (beta c i)) (loops_of c) <=
  rsum (fun j => s' j * L (mu c j)) (arrays_of c) + rsum (fun i => t' i * L (beta c i)) (loops_of c).
Proof.
  intros S T C. destruct check_facts as [X [FX [S0 [T0 [C0 E]]]]]. rewrite <- E.
  apply (weak_duality _ _ (reads c)); auto; intros i I; apply X; auto.
Qed.
End Sound.
Ltac prove_certificate := first
  [ solve [ vm_compute; reflexivity ] | fail 1 "tang: not proved: certificate" ].
