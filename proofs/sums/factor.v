(* Rules on sums of products over the reals: hoist, swap and factor, common factors, reuse of a product. *)
From Coq Require Import Reals Lra List Permutation.
From Tang Require Import sums.rsum.
Import ListNotations.
Open Scope R_scope.

(* `ratio(a, l)` of the op table: 0 when nothing was folded. *)
Definition ratio (a l : R) : R := if Req_EM_T l 0 then 0 else a / l.

(* For finite f (the infinite cases are in export/hoist.v). *)
Theorem hoist_invariant_real {I} (f : R) (g : I -> R) xs : rsum (fun r => f * g r) xs = f * rsum g xs.
Proof. apply rsum_scale_l. Qed.

(* Sum of e_j / l * v_j = ratio(sum of e_j * v_j, l), where l sums the same positive terms over the same domain. *)
Theorem hoist_divisor {I} (e v : I -> R) xs : (forall j, In j xs -> 0 < e j) ->
  rsum (fun j => e j / rsum e xs * v j) xs = ratio (rsum (fun j => e j * v j) xs) (rsum e xs).
Proof.
  intros P. unfold ratio. destruct (Req_EM_T (rsum e xs) 0) as [Z|N].
  - destruct xs as [|x xs]; [reflexivity|].
    pose proof (rsum_pos e (x :: xs) P ltac:(discriminate)). lra.
  - unfold Rdiv. rewrite (Rmult_comm (rsum _ _) (/ _)), <- rsum_scale_l. apply rsum_ext. intro; ring.
Qed.
(* With ratio in the body as well, as a builder writes it. *)
Theorem hoist_ratio {I} (e v : I -> R) l xs :
  rsum (fun j => ratio (e j) l * v j) xs = ratio (rsum (fun j => e j * v j) xs) l.
Proof.
  unfold ratio. destruct (Req_EM_T l 0) as [Z|N].
  - rewrite (rsum_ext _ (fun _ => 0)) by (intro; ring). apply rsum_zero.
  - unfold Rdiv. rewrite (Rmult_comm (rsum _ _) (/ _)), <- rsum_scale_l. apply rsum_ext. intro; ring.
Qed.

(* exp(A) / l = exp(A - log l) where exp(A) is literally a live term of l. *)
Theorem normalise_sound {I} (A : I -> R) xs i : In i xs ->
  let l := rsum (fun j => exp (A j)) xs in
  exp (A i) / l = exp (A i - ln l) /\ ratio (exp (A i)) l = exp (A i - ln l).
Proof.
  intros H l. assert (L : 0 < l).
  { apply rsum_pos; [intros; apply exp_pos|]. intros ->. destruct H. }
  assert (E : exp (A i) / l = exp (A i - ln l)).
  { unfold Rminus, Rdiv. rewrite exp_plus, exp_Ropp, exp_ln; auto. }
  split; auto. unfold ratio. destruct (Req_EM_T l 0); [lra|auto].
Qed.

(* sum_j (sum_d f(d) h(j,d)) v(j) = sum_d f(d) (sum_j h(j,d) v(j)), every fold with its own domain. *)
Theorem swap_folds_and_factor {J D} (f : D -> R) (h : J -> D -> R) (v : J -> R) (js : list J) (ds : list D) :
  rsum (fun j => rsum (fun d => f d * h j d) ds * v j) js = rsum (fun d => f d * rsum (fun j => h j d * v j) js) ds.
Proof.
  rewrite (rsum_ext _ (fun j => rsum (fun d => f d * h j d * v j) ds)) by (intro; symmetry; apply rsum_scale).
  rewrite rsum_swap. apply rsum_ext. intro d. rewrite <- rsum_scale_l. apply rsum_ext. intro; ring.
Qed.

(* Products as lists of factors, in any order. *)
Definition product (fs : list R) : R := fold_right Rmult 1 fs.
Lemma product_app a b : product (a ++ b) = product a * product b.
Proof. induction a; simpl; [ring|]. rewrite IHa; ring. Qed.
Lemma product_perm a b : Permutation a b -> product a = product b.
Proof.
  intros P; induction P; simpl; auto; [now rewrite IHP|ring|]. now rewrite IHP1.
Qed.
(* Common factors of a sum's terms come out. *)
Theorem factor_common {I} (common : list R) (factors rest : I -> list R) (terms : list I) :
  (forall t, In t terms -> Permutation (factors t) (common ++ rest t)) ->
  rsum (fun t => product (factors t)) terms = product common * rsum (fun t => product (rest t)) terms.
Proof.
  intros H. rewrite <- rsum_scale_l. apply rsum_ext_in. intros t Ht.
  now rewrite (product_perm _ _ (H t Ht)), product_app.
Qed.
(* A product that contains an output's own factors reads the output. *)
Theorem reuse_product (fs key rest : list R) out :
  out = product key -> Permutation fs (key ++ rest) -> product fs = out * product rest.
Proof. intros -> P. now rewrite (product_perm _ _ P), product_app. Qed.
(* The row statistic kept once: m + log l, so that readers carry one number. *)
Theorem keep_row a m l : 0 < l -> exp (a - m) / l = exp (a - (m + ln l)).
Proof.
  intros H. replace (a - (m + ln l)) with ((a - m) + - ln l) by ring.
  now rewrite exp_plus, exp_Ropp, exp_ln.
Qed.
