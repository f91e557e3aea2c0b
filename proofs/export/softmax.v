(* The printed online softmax is the verified one: its combine, on states with -inf as the identity, is `cmb`. *)
From Coq Require Import Reals Lra ZArith List Bool.
From Tang Require Import grad.scalar export.xr export.term export.monoid export.solve monoids.softmax.
Import ListNotations.
Open Scope R_scope.

(* A state of `monoids/softmax` with one weighted sum, in base 2: m is in units of log2, as the compiler keeps it. *)
Definition base2 (s : option (R * R)) : list xr :=
  match s with None => [Minf; Fin 0] | Some (m, l) => [Fin m; Fin l] end.
Definition natural (s : option (R * R)) : st (C := Empty_set) :=
  match s with None => None | Some (m, l) => Some (m * ln 2, l, fun c : Empty_set => match c return R with end) end.
Definition act (c top : term) : term := select (equal_ c ninf) (lit 0 0) (exp2_ (add c (neg top))).
Definition printed : row := Row [bottom; finite] [ninf; lit 0 0]
  [max_ (v 0) (v 1); add (mul (act (v 0) (max_ (v 0) (v 1))) (v 2)) (mul (act (v 1) (max_ (v 0) (v 1))) (v 3))] true.
Lemma exp2_exp a b : exp2 (a + - b) = exp (a * ln 2 - b * ln 2).
Proof. unfold exp2. f_equal. ring. Qed.
Lemma max_scaled a b : Rmax (a * ln 2) (b * ln 2) = Rmax a b * ln 2.
Proof. pose proof ln2_pos. unfold Rmax. destruct (Rle_dec a b), (Rle_dec (a * ln 2) (b * ln 2)); try lra; nra. Qed.
Theorem printed_is_verified a b : exists c,
  join printed (base2 a) (base2 b) = base2 c /\ cmb (natural a) (natural b) = natural c.
Proof.
  destruct a as [[m l]|], b as [[n k]|].
  - exists (Some (Rmax m n, l * exp2 (m + - Rmax m n) + k * exp2 (n + - Rmax m n))). split.
    + cbv -[Rplus Rmult Ropp Rlt_dec Rle_dec exp2 IZR Rmax]. split_all; unfold Rmax; destruct (Rle_dec m n);
        try (exfalso; lra);
        repeat match goal with |- _ :: _ = _ :: _ => f_equal | |- Fin _ = Fin _ => f_equal end; try lra; try ring.
      assert (E : m = n) by lra. subst n. ring.
    + simpl. rewrite max_scaled. f_equal. f_equal; [f_equal; rewrite !exp2_exp; reflexivity|].
      apply FunctionalExtensionality.functional_extensionality. intros [].
  - exists (Some (m, l)). split; [|reflexivity].
    cbv -[Rplus Rmult Ropp Rlt_dec exp2 IZR]. do 3 f_equal. rewrite Rplus_opp_r, exp2_0. ring.
  - exists (Some (n, k)). split; [|reflexivity].
    cbv -[Rplus Rmult Ropp Rlt_dec exp2 IZR]. do 3 f_equal. rewrite Rplus_opp_r, exp2_0. ring.
  - exists None. split; [|reflexivity]. cbv -[Rplus Rmult Ropp Rlt_dec exp2 IZR]. do 3 f_equal. ring.
Qed.
