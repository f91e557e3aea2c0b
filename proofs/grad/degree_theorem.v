(* A graph whose roots have degree 0 has a loss that does not depend on the stabilizing max: its gradient is 0. *)
From Coq Require Import Reals Lra Lia List ZArith QArith Qreals Bool Arith.
From Coquelicot Require Import Coquelicot.
From Tang Require Import grad.scalar grad.calculus sums.rsum grad.degree grad.degree_forms grad.degree_sound grad.degree_body.
Import ListNotations.
Open Scope R_scope.

Local Opaque Qred.

Section Sound.
Context (free : nat -> nat -> point -> option R) (op : nat -> R -> R -> R) (other : nat -> list (option R) -> option R).
Context (dom : nat -> point -> list point) (c : list Z -> R).
Notation val := (value free op).
Notation logs := (logs_ok free op).
Notation moved := (moved c).
Notation tracked := (tracked c).

Lemma present_moved k (f g : point -> option R) (r : R -> R) ps :
  (forall p, In p ps -> match f p, g p with Some x, Some y => y = r x | None, None => True | _, _ => k end) -> k = False ->
  present (map g ps) = map r (present (map f ps)).
Proof.
  intros H ->. induction ps as [|p ps IH]; simpl; auto. pose proof (H p (or_introl eq_refl)) as P.
  destruct (f p), (g p); try contradiction; simpl; rewrite IH by (intros; apply H; right; auto); congruence.
Qed.
Lemma rsum_scaled k xs : rsum (fun x => x) (map (fun x => x * k) xs) = rsum (fun x => x) xs * k.
Proof. induction xs as [|x xs IH]; simpl; [ring|]. rewrite IH. ring. Qed.
Lemma maximum_scale k xs : 0 < k -> maximum (map (fun x => x * k) xs) = maximum xs * k.
Proof.
  intros K. destruct xs as [|x xs]; simpl; [ring|]. induction xs as [|y xs IH]; simpl; auto. now rewrite IH, Rmax_scale.
Qed.
Lemma maximum_shift k xs : xs <> [] -> maximum (map (fun x => x + k) xs) = maximum xs + k.
Proof.
  intros N. destruct xs as [|x xs]; [congruence|]. simpl. clear N.
  induction xs as [|y xs IH]; simpl; auto. now rewrite IH, Rmax_shift.
Qed.
Lemma minimum_scale k xs : 0 < k -> minimum (map (fun x => x * k) xs) = minimum xs * k.
Proof.
  intros K. unfold minimum. rewrite map_map. rewrite (map_ext _ (fun x => Ropp x * k)) by (intro; ring).
  rewrite <- (map_map Ropp (fun x => x * k)), maximum_scale by auto. ring.
Qed.
Lemma minimum_shift k xs : xs <> [] -> minimum (map (fun x => x + k) xs) = minimum xs + k.
Proof.
  intros N. unfold minimum. rewrite map_map. rewrite (map_ext _ (fun x => Ropp x + - k)) by (intro; ring).
  rewrite <- (map_map Ropp (fun x => x + - k)), maximum_shift by (destruct xs; simpl; congruence). ring.
Qed.
Lemma visited_row n nd xs p v : In p (visited dom n nd xs) -> (how nd = Map \/ view_below (points nd) v = true) ->
  at_view p v = at_view (of_coords xs) v.
Proof.
  unfold visited. intros H [M|D].
  - rewrite M in H. destruct H as [<-|[]]. reflexivity.
  - assert (E : p = of_coords xs \/ exists q, extend (points nd) (of_coords xs) q = p).
    { destruct (how nd); [left; now destruct H as [<-|[]]|..]; right; apply in_map_iff in H as [q [Q _]]; now exists q. }
    destruct E as [->|[q <-]]; auto. apply (view_below_sound (points nd)); auto.
    intros a A. unfold extend. destruct (Nat.ltb_spec a (points nd)); auto; lia.
Qed.
Notation terms := (terms free op dom).
Lemma node_sound table vals vals' n nd d xs : tracked table vals vals' ->
  (forall p, In p (visited dom n nd xs) -> logs n vals p (lift nd)) ->
  (extreme (how nd) = true -> present (terms n nd vals xs) <> []) ->
  node_degree table nd = Some d ->
  moved d (of_coords xs) (fold_value free op other dom n nd vals xs) (fold_value free op other dom n nd vals' xs).
Proof.
  intros T L N E. unfold node_degree in E.
  destruct (degree_of table (lift nd)) as [e|] eqn:D; [|now destruct (how nd)].
  assert (B : forall p, In p (visited dom n nd xs) -> moved e p (val n vals p (lift nd)) (val n vals' p (lift nd))).
  { intros p Hp. eapply body_sound; eauto. }
  unfold fold_value, degree.terms in *. set (ps := visited dom n nd xs) in *.
  destruct e as [|q v|q v].
  - assert (d = Inv) by (destruct (how nd); congruence). subst d.
    replace (map (fun p => val n vals' p (lift nd)) ps) with (map (fun p => val n vals p (lift nd)) ps).
    + destruct (folded other (how nd) _); simpl; auto.
    + apply map_ext_in. intros p Hp. specialize (B p Hp).
      destruct (val n vals p (lift nd)), (val n vals' p (lift nd)); simpl in B; try contradiction; congruence.
  - assert (S : d = Scale q v /\ (how nd = Map \/ view_below (points nd) v = true)).
    { destruct (how nd); try destruct (view_below (points nd) v); inversion E; auto. }
    destruct S as [-> V]. set (k := exp2 (Q2R q * c (at_view (of_coords xs) v))).
    assert (P : present (map (fun p => val n vals' p (lift nd)) ps) =
                map (fun x => x * k) (present (map (fun p => val n vals p (lift nd)) ps))).
    { apply (present_moved False); auto. intros p Hp. specialize (B p Hp). unfold k. rewrite <- (visited_row n nd xs p v Hp V).
      destruct (val n vals p (lift nd)), (val n vals' p (lift nd)); simpl in B; auto. }
    pose proof (exp2_gt (Q2R q * c (at_view (of_coords xs) v))) as K. fold k in K.
    destruct (how nd) eqn:W; simpl; rewrite ?P.
    + unfold ps, visited in *. rewrite W in *. simpl. apply B. now left.
    + apply rsum_scaled.
    + now apply maximum_scale.
    + now apply minimum_scale.
    + discriminate E.
  - assert (S : d = Shift q v /\ (how nd = Map \/ (extreme (how nd) = true /\ view_below (points nd) v = true))).
    { destruct (how nd); try destruct (view_below (points nd) v); inversion E; auto. }
    destruct S as [-> V]. set (k := Q2R q * c (at_view (of_coords xs) v)).
    assert (P : present (map (fun p => val n vals' p (lift nd)) ps) =
                map (fun x => x + k) (present (map (fun p => val n vals p (lift nd)) ps))).
    { apply (present_moved False); auto. intros p Hp. specialize (B p Hp). unfold k.
      rewrite <- (visited_row n nd xs p v Hp ltac:(tauto)).
      destruct (val n vals p (lift nd)), (val n vals' p (lift nd)); simpl in B; auto. }
    destruct (how nd) eqn:W; simpl; rewrite ?P.
    + unfold ps, visited in *. rewrite W in *. simpl. apply B. now left.
    + discriminate E.
    + apply maximum_shift. now apply N.
    + apply minimum_shift. now apply N.
    + discriminate E.
Qed.
Theorem degrees_sound nodes : forall n table vals vals', tracked table vals vals' ->
  run_ok free op other dom n nodes vals ->
  tracked (degrees n nodes table) (run free op other dom n nodes vals) (run free op other dom n nodes vals').
Proof.
  induction nodes as [|nd r IH]; intros n table vals vals' T K; simpl; auto.
  destruct K as [L [N K]]. apply IH; auto. intros m d xs E. unfold put, set in *.
  destruct (Nat.eqb_spec m n) as [->|M]; [|now apply T].
  eapply node_sound; eauto.
Qed.
End Sound.

Section Loss.
Context (free : nat -> nat -> point -> option R) (op : nat -> R -> R -> R) (other : nat -> list (option R) -> option R).
Context (dom : nat -> point -> list point).
Context (P : nat) (nodes : list node) (m : list Z -> R).     (* the value of the max, row by row *)
Definition initial (m : list Z -> R) : values :=
  fun k xs => Some (match k with O => m (at_view (of_coords xs) (identity_view P)) | _ => 0 end).
Definition root (r : nat) (xs : list Z) (m : list Z -> R) : option R := run free op other dom 1 nodes (initial m) r xs.

(* Whatever is added to the max, in any row, the roots do not change, nor where they exist. *)
Theorem max_is_stabilizing roots : max_eliminated P nodes roots = true ->
  run_ok free op other dom 1 nodes (initial m) ->
  forall c r xs, In r roots -> root r xs (fun row => m row + c row) = root r xs m.
Proof.
  intros H K c r xs R. unfold max_eliminated in H. rewrite forallb_forall in H. specialize (H r R).
  assert (T : tracked c (start P) (initial m) (initial (fun row => m row + c row))).
  { intros k d ys E. unfold start in E. inversion E; subst d. destruct k; simpl; auto.
    unfold Q2R; simpl. replace (1 * / 1) with 1 by field. ring. }
  pose proof (degrees_sound free op other dom c nodes 1 _ _ _ T K) as S.
  destruct (degrees 1 nodes (start P) r) as [[| |]|] eqn:E; try discriminate.
  specialize (S r Inv xs E). unfold root. unfold moved, moves in S.
  destruct (run _ _ _ _ _ _ (initial m) r xs), (run _ _ _ _ _ _ _ r xs); try contradiction; congruence.
Qed.
(* So the gradient through the max is zero: in the direction of any one row, and of any combination of rows. *)
Definition number (o : option R) : R := match o with Some x => x | None => 0 end.
Theorem zero_gradient_of_max roots : max_eliminated P nodes roots = true ->
  run_ok free op other dom 1 nodes (initial m) ->
  forall direction r xs, In r roots -> is_derive (fun t => number (root r xs (fun row => m row + t * direction row))) 0 0.
Proof.
  intros H K direction r xs R. apply (is_derive_ext (fun _ => number (root r xs m))).
  - intro t. f_equal. symmetry. now apply (max_is_stabilizing roots H K (fun row => t * direction row)).
  - apply (is_derive_const (V := R_NormedModule)).
Qed.
End Loss.

(* A shift of all rows at once is not enough: sum_i e^{s_i - m_i} over rows i against the same sum has degree 0
   under a uniform shift, and still depends on each row. The row test refuses it. *)
Section Rows.
Let weights := Node 1 Map (Exp2 (Add (Free 0) (Neg (Read 0 [Form [(0%nat, 1%Z)] 0])))).
Let over_rows := Node 0 Sum (Read 1 [Form [(0%nat, 1%Z)] 0]).
Let share := Node 1 Map (Mul (Read 1 [Form [(0%nat, 1%Z)] 0]) (Recip (Read 2 []))).
Theorem fold_over_rows_refused : max_eliminated 1 [weights; over_rows; share] [3%nat] = false.
Proof. reflexivity. Qed.
End Rows.
