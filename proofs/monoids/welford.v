(* Welford: (count, mean, squared deviations); None is the empty state. The fold is the two-pass variance. *)
From Coq Require Import Reals Lra List.
From Tang Require Import fold.monoid sums.rsum.
Import ListNotations.
Open Scope R_scope.

Definition wst : Type := option (R * R * R).
Definition wc (a b : wst) : wst :=
  match a, b with
  | None, x => x | x, None => x
  | Some (n1, u1, q1), Some (n2, u2, q2) =>
    let n := n1 + n2 in let d := u2 - u1 in
    Some (n, u1 + d * (n2 / n), q1 + q2 + d * d * (n1 * n2 / n))
  end.
Definition wok (a : wst) : Prop := match a with None => True | Some (n, _, _) => 0 < n end.
Theorem welford_assoc a b c : wok a -> wok b -> wok c -> wc a (wc b c) = wc (wc a b) c.
Proof.
  destruct a as [[[? ?] ?]|], b as [[[? ?] ?]|], c as [[[? ?] ?]|]; simpl; auto. intros.
  f_equal. f_equal; [f_equal|]; field; lra.
Qed.
Theorem welford_comm a b : wok a -> wok b -> wc a b = wc b a.
Proof.
  destruct a as [[[? ?] ?]|], b as [[[? ?] ?]|]; simpl; auto. intros.
  f_equal. f_equal; [f_equal|]; field; lra.
Qed.
Definition welford_monoid : monoid wst.
Proof.
  refine {| ok := wok; op := wc; e := None |}; simpl; auto.
  - destruct x as [[[? ?] ?]|], y as [[[? ?] ?]|]; simpl; auto. intros; lra.
  - destruct x as [[[? ?] ?]|]; auto.
  - apply welford_assoc.
Defined.
Theorem welford_commutative : commutative welford_monoid.
Proof. intros a b. apply welford_comm. Qed.

Definition obs (x : R) : option wst := Some (Some (1, x, 0)).
Definition count (xs : list R) : R := rsum (fun _ => 1) xs.
Definition stats (xs : list R) (s : wst) : Prop := match s with
  | None => xs = []
  | Some (n, u, q) => n = count xs /\ 0 < n /\ u * n = rsum (fun x => x) xs /\
                      q = rsum (fun x => (x - u) * (x - u)) xs
  end.
Lemma deviations u v xs : rsum (fun x => (x - v) * (x - v)) xs =
  rsum (fun x => (x - u) * (x - u)) xs + 2 * (u - v) * (rsum (fun x => x) xs - u * count xs) + (u - v) * (u - v) * count xs.
Proof. unfold count. induction xs; simpl; [ring|]. rewrite IHxs. ring. Qed.
Theorem welford_two_pass xs : stats xs (fold welford_monoid (map obs xs)).
Proof.
  induction xs as [|x xs IH]; [reflexivity|].
  change (map obs (x :: xs)) with ([obs x] ++ map obs xs). rewrite fold_app.
  - unfold fold at 1; simpl. destruct (fold welford_monoid (map obs xs)) as [[[n u] q]|]; simpl in *.
    + destruct IH as [N [P [U Q]]].
      set (m := x + (u - x) * (n / (1 + n))).
      assert (M : m * (1 + n) = x + u * n) by (unfold m; field; lra).
      split; [unfold count in *; simpl; lra|]. split; [lra|]. split; [rewrite M, U; reflexivity|].
      rewrite (deviations u m xs), <- Q, <- U, <- N. 
      assert (E1 : x - m = - (u - x) * (n / (1 + n))) by (unfold m; ring).
      assert (E2 : u - m = (u - x) / (1 + n)) by (unfold m; field; lra).
      rewrite E1, E2. field. lra.
    + subst xs. unfold count. simpl. repeat split; try lra.
  - intros y [H|[]]. inversion H. simpl. lra.
  - intros y H. apply in_map_iff in H as [z [H _]]. inversion H. simpl. lra.
Qed.
