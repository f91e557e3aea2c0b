(* Affine recurrences S' = A S + B over matrices: composition, its monoid, the chunked and two-level forms. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Tang Require Import fold.monoid fold.scan.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Affine.
Variables (R : ringType) (n m : nat).
Definition map_ : Type := ('M[R]_n * 'M[R]_(n, m))%type.
Definition compose (f g : map_) : map_ := (g.1 *m f.1, g.1 *m f.2 + g.2).     (* first f, then g *)
Definition apply_ (f : map_) (S : 'M[R]_(n, m)) : 'M[R]_(n, m) := f.1 *m S + f.2.
Lemma compose_assoc f g h : compose f (compose g h) = compose (compose f g) h.
Proof. by rewrite /compose /= mulmxA mulmxDr mulmxA addrA. Qed.
Definition affine_matrix_monoid : monoid map_.
Proof.
refine (Monoid (fun _ => True) compose (1%:M, 0) _ I _ _ _) => //.
- by move=> [A B] _; rewrite /compose /= mulmx1 mulmx0 add0r.
- by move=> [A B] _; rewrite /compose /= !mul1mx addr0.
- by move=> f g h _ _ _; apply: compose_assoc.
Defined.
Lemma apply_unit S : apply_ (1%:M, 0) S = S.
Proof. by rewrite /apply_ /= mul1mx addr0. Qed.
Lemma apply_compose f g S : apply_ (compose f g) S = apply_ g (apply_ f S).
Proof. by rewrite /apply_ /= mulmxDr mulmxA addrA. Qed.
(* A chunk of steps is one affine map, and a scan has the two-level form. *)
Theorem affine_chunked fs S : run apply_ fs S = apply_ (fold affine_matrix_monoid (maps fs)) S.
Proof. by apply: (chunk_composes affine_matrix_monoid apply_ apply_unit (fun f g S _ _ => apply_compose f g S)). Qed.
Theorem affine_two_level segs S :
  scan apply_ (List.concat segs) S =
  List.concat (List.map (fun p => scan apply_ p.1 p.2)
    (List.combine segs (starts affine_matrix_monoid apply_ segs S))).
Proof. by apply: (two_level_scan affine_matrix_monoid apply_ apply_unit (fun f g S _ _ => apply_compose f g S)). Qed.
End Affine.

(* The delta rule S' = g S + u (y - z S): the corrections w = y - z S of a chunk solve a unit lower triangular system. *)
Section Delta.
Variables (R : comRingType) (n m : nat) (g : nat -> R) (u : nat -> 'cV[R]_n) (z : nat -> 'rV[R]_n) (y : nat -> 'rV[R]_m).
Variable S0 : 'M[R]_(n, m).
Fixpoint S (t : nat) : 'M[R]_(n, m) := if t is t'.+1 then g t' *: S t' + u t' *m (y t' - z t' *m S t') else S0.
Definition w (t : nat) : 'rV[R]_m := y t - z t *m S t.
(* How a state decays from step s to step t. *)
Definition decay (s t : nat) : R := \prod_(s <= r < t) g r.
Theorem delta_unrolled t : S t = decay 0 t *: S0 + \sum_(0 <= s < t) decay s.+1 t *: (u s *m w s).
Proof.
elim: t => [|t IH]; first by rewrite /decay !big_geq // scale1r addr0.
have D s : (s <= t)%N -> decay s t.+1 = g t * decay s t by move=> h; rewrite /decay big_nat_recr //= mulrC.
rewrite /= -/(w t) {1}IH scalerDr scalerA -D // -addrA; congr (_ + _).
have d1 : decay t.+1 t.+1 = 1 by rewrite /decay big_geq.
rewrite big_nat_recr //= scaler_sumr d1 scale1r; congr (_ + _).
by apply: eq_big_nat => s /andP [_ h]; rewrite scalerA -D.
Qed.
(* Row t of the system: w_t + sum_{s < t} (decay * z_t u_s) w_s = y_t - decay z_t S0. *)
Theorem delta_triangular t :
  w t + \sum_(0 <= s < t) decay s.+1 t *: (z t *m u s *m w s) = y t - decay 0 t *: (z t *m S0).
Proof.
rewrite {1}/w delta_unrolled mulmxDr -scalemxAr mulmx_sumr opprD addrA -addrA -[RHS]addr0; congr (_ + _).
apply/eqP; rewrite addrC subr_eq0; apply/eqP; apply: eq_bigr => s _.
by rewrite -scalemxAr mulmxA.
Qed.
End Delta.
