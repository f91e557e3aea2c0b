(* Sorted keys: the terms whose key is x form the segment start(x) <= t < start(x + 1), start counting smaller keys. *)
From Coq Require Import List Arith Lia Bool.
From Tang Require Import fold.partial fold.monoid fold.pieces.
Import ListNotations.

Section Segment.
Context (key : nat -> nat) (n : nat).
Hypothesis sorted : forall s t, s <= t -> t < n -> key s <= key t.
Fixpoint smaller (m x : nat) : nat := match m with O => O | S m => smaller m x + (if key m <? x then 1 else 0) end.
Definition start (x : nat) : nat := smaller n x.
Lemma smaller_le m x : smaller m x <= m.
Proof. induction m as [|m IH]; simpl; [lia|]. destruct (key m <? x); lia. Qed.
Lemma smaller_all m x : (forall t, t < m -> key t < x) -> smaller m x = m.
Proof.
  induction m as [|m IH]; simpl; intros H; auto. rewrite IH by (intros; apply H; lia).
  destruct (Nat.ltb_spec (key m) x); [lia|]. specialize (H m). lia.
Qed.
Lemma below_start m x t : m <= n -> t < m -> (t < smaller m x <-> key t < x).
Proof.
  induction m as [|m IH]; simpl; intros M T; [lia|]. pose proof (smaller_le m x).
  destruct (Nat.ltb_spec (key m) x) as [L|L].
  - rewrite (smaller_all m x) by (intros s S; pose proof (sorted s m); lia).
    pose proof (sorted t m). split; intros; lia.
  - destruct (Nat.eq_dec t m) as [->|N]; [split; lia|]. rewrite Nat.add_0_r. apply IH; lia.
Qed.
Theorem key_segment x t : t < n -> (key t = x <-> start x <= t < start (S x)).
Proof.
  intros T. pose proof (below_start n x t (le_n n) T). pose proof (below_start n (S x) t (le_n n) T).
  unfold start. split; lia.
Qed.
(* A gated sum over all terms becomes a sum over the segment: scatter-add with sorted keys. *)
Theorem segment_sound {V} (m : monoid V) (term : nat -> option V) x :
  fold m (over term (fun t => key t =? x) (seq 0 n)) =
  fold m (over term (fun t => (start x <=? t) && (t <? start (S x))) (seq 0 n)).
Proof.
  unfold over. f_equal. apply map_ext_in. intros t T. apply in_seq in T.
  pose proof (key_segment x t ltac:(lia)) as K. f_equal.
  destruct (Nat.eqb_spec (key t) x), (Nat.leb_spec (start x) t), (Nat.ltb_spec t (start (S x))); simpl; auto; lia.
Qed.
End Segment.
