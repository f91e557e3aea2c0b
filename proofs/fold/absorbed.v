(* Instances of the absorbing theorem: sums (tiled matmul), online softmax (flash attention), count of max. *)
From Coq Require Import Reals Lra List FunctionalExtensionality.
From Tang Require Import fold.monoid fold.absorbing.
Import ListNotations.
Open Scope R_scope.

(* Sum: the base is trivial and nothing is rescaled. A chunk step is then acc + (contraction over the chunk). *)
Definition sum_absorb (C : Type) : absorb unit C.
Proof.
  refine {| okB _ := True; join _ _ := tt; bot := tt; act _ _ _ := 1 |}; auto; try (now intros []).
  intros; ring.
Defined.
(* A tiled matmul: chunk after chunk, each a short contraction added to the accumulator. *)
Section Matmul.
Context {K M N : Type} (f : M -> K -> R) (g : K -> N -> R).
Definition product_term (k : K) : option (state (B := unit) (C := M * N)) :=
  Some (tt, fun c => f (fst c) k * g k (snd c)).
Definition dot (ks : list K) i j : R := fold_left (fun s k => s + f i k * g k j) ks 0.
Theorem tiled_matmul (chunks : list (list K)) i j :
  snd (fold (absorbing (sum_absorb (M * N))) (map product_term (concat chunks))) (i, j) =
  fold_left (fun acc ks => acc + dot ks i j) chunks 0.
Proof.
  rewrite concat_map, absorbing_chunked.
  - assert (D : forall ks b, contract (sum_absorb (M * N)) (i, j) b (map product_term ks) = dot ks i j).
    { intros ks b. unfold contract, dot. generalize 0 as s. induction ks as [|k ks IH]; intros s; simpl; auto.
      rewrite IH. f_equal. ring. }
    change 0 with (snd (absorb_e (sum_absorb (M * N))) (i, j)).
    generalize (absorb_e (sum_absorb (M * N))) as s. induction chunks as [|ks cs IH]; intros s; simpl; auto.
    rewrite IH. f_equal. simpl. rewrite D. ring.
  - intros ts H. apply in_map_iff in H as [ks [<- _]]. intros x Hx.
    apply in_map_iff in Hx as [k [E _]]. inversion E. split; simpl; auto.
Qed.
End Matmul.

(* The max of scores with -inf as None. *)
Definition maxo (a b : option R) : option R :=
  match a, b with None, x => x | x, None => x | Some x, Some y => Some (Rmax x y) end.
Lemma softmax_act_1 x : exp (x - x) = 1.
Proof. replace (x - x) with 0 by ring. apply exp_0. Qed.
Lemma maxo_comm a b : maxo a b = maxo b a.
Proof. destruct a, b; simpl; auto. now rewrite Rmax_comm. Qed.
Lemma maxo_assoc a b c : maxo a (maxo b c) = maxo (maxo a b) c.
Proof. destruct a, b, c; simpl; auto. now rewrite Rmax_assoc. Qed.
Lemma maxo_idem a : maxo a a = a.
Proof. destruct a; simpl; auto. rewrite Rmax_left; auto. lra. Qed.

(* How a component moves from its own max to a later one; an element whose max is -inf contributes nothing. *)
Definition softmax_act (a b : option R) : R :=
  match a, b with Some x, Some y => exp (x - y) | _, _ => 0 end.
Definition softmax_absorb (C : Type) : absorb (option R) C.
Proof.
  refine {| okB _ := True; join := maxo; bot := None; act _ := softmax_act |}; auto.
  - intros; apply maxo_comm.
  - intros; apply maxo_idem.
  - intros; apply maxo_assoc.
  - intros _ [x|] _; simpl; auto. left. replace (x - x) with 0 by ring. apply exp_0.
  - intros _ [x|] y z _ _ _; simpl; [intros _|lra].
    destruct y as [y|], z as [z|]; simpl; rewrite <- exp_plus; f_equal; ring.
Defined.

Section Flash.
(* Flash attention: scores s, masked where None; columns c of the value rows and None for the row sum. *)
Context {J C : Type} (s : J -> option R) (v : J -> C -> R).
Definition row_term (j : J) : option (state (B := option R) (C := option C)) :=
  match s j with
  | Some x => Some (Some x, fun c => match c with Some c => v j c | None => 1 end)
  | None => None
  end.
Lemma row_ok js : all_ok (absorbing (softmax_absorb (option C))) (map row_term js).
Proof.
  intros x Hx. apply in_map_iff in Hx as [j [E _]]. unfold row_term in E.
  destruct (s j); inversion E. split; simpl; auto. intro c. left. apply softmax_act_1.
Qed.
(* Blocks of keys: the max of the block joins the running max, the state is rescaled once, P V is contracted. *)
Theorem flash_attention (blocks : list (list J)) :
  fold (absorbing (softmax_absorb (option C))) (map row_term (concat blocks)) =
  fold_left (fun st js => chunk_step (softmax_absorb (option C)) st (map row_term js)) blocks
    (absorb_e (softmax_absorb (option C))).
Proof.
  rewrite concat_map, absorbing_chunked.
  - generalize (absorb_e (softmax_absorb (option C))) as a. induction blocks as [|b bs IH]; intros a; simpl; auto.
  - intros ts H. apply in_map_iff in H as [js [<- _]]. apply row_ok.
Qed.
(* Stabilize: the max over live keys, and every sum of exp(s - max) * value, are the components of one fold. *)
Definition live_max (js : list J) : option R := fold_left (fun m j => maxo m (s j)) js None.
Definition stabilized (js : list J) (m : option R) (c : C) : R :=
  fold_left (fun a j => a + match s j, m with Some x, Some y => exp (x - y) * v j c | _, _ => 0 end) js 0.
Lemma base_is_max js : forall b, base_fold (softmax_absorb (option C)) b (map row_term js) = fold_left (fun m j => maxo m (s j)) js b.
Proof.
  induction js as [|j js IH]; intros b; simpl; auto. unfold base_fold in *. rewrite IH. f_equal.
  unfold row_term. destruct (s j); simpl; auto. destruct b; reflexivity.
Qed.
Theorem stabilize_sound js :
  let f := fold (absorbing (softmax_absorb (option C))) (map row_term js) in
  fst f = live_max js /\ forall c, snd f (Some c) = stabilized js (live_max js) c.
Proof.
  destruct (definition_form (softmax_absorb (option C)) _ (row_ok js)) as [B S]. simpl in B. rewrite base_is_max in B, S.
  split; auto. intro c. simpl in S. rewrite S. unfold contract, stabilized. fold (live_max js).
  generalize (live_max js) as m. intros m.
  assert (E : forall j, term_at (softmax_absorb (option C)) (Some c) m (row_term j) =
                        match s j, m with Some x, Some y => exp (x - y) * v j c | _, _ => 0 end).
  { intro j. unfold row_term. destruct (s j) as [x|]; simpl; auto. destruct m; simpl; ring. }
  generalize 0 at 1 4 as a. clear -E.
  induction js as [|j js IH]; intros a; cbn [map fold_left]; auto. rewrite E. apply IH.
Qed.
End Flash.

(* (max, how many terms attain it): act is 0 or 1, and four -inf scores count 4. *)
Definition same (a b : option R) : R :=
  match a, b with
  | None, None => 1 | Some x, Some y => if Req_EM_T x y then 1 else 0 | _, _ => 0
  end.
Definition count_absorb : absorb (option R) unit.
Proof.
  refine {| okB _ := True; join := maxo; bot := None; act _ := same |}; auto.
  - intros; apply maxo_comm.
  - intros; apply maxo_idem.
  - intros; apply maxo_assoc.
  - intros _ [x|] _; simpl; auto. destruct (Req_EM_T x x); auto.
  - intros _ x y z _ _ _ _. destruct x as [x|], y as [y|], z as [z|]; simpl;
      unfold Rmax; repeat match goal with
      | |- context [Rle_dec ?a ?b] =>
        lazymatch constr:(a + b) with context [Rle_dec] => fail | _ => destruct (Rle_dec a b) end
      end; repeat match goal with |- context [Req_EM_T ?a ?b] => destruct (Req_EM_T a b) end; lra.
Defined.
