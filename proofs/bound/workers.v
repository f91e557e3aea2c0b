(* A floor of time: what a machine of workers takes at least to start given instructions and to bring given bytes.
   Time is counted in cycles of the highest clock. Assumed of the machine, as hypotheses: a scheduler starts one
   instruction a cycle at most; a lane starts its instructions in order; the one that waits for a load starts when its
   bytes are there; bytes come at no more than a rate. *)
From Coq Require Import List Arith Lia.
Import ListNotations.

(* Code as a graph: what may be started after an instruction, and where a lane may end. *)
Section Paths.
Context {V : Type} (next : V -> V -> Prop) (leaves : V -> Prop).
(* A run of a lane from an instruction to one at which it ends: how many it starts. *)
Inductive run : V -> nat -> Prop :=
| ends v : leaves v -> run v 1
| goes v w n : next v w -> run w n -> run v (S n).
(* The certificate: a number for each instruction that no edge and no end contradicts (device::below_every_path). *)
Context (left : V -> nat).
Hypothesis edge : forall v w, next v w -> left v <= S (left w).
Hypothesis last : forall v, leaves v -> left v <= 1.
Theorem potential_below_every_path v n : run v n -> left v <= n.
Proof.
  induction 1 as [v L|v w n E R IH].
  - exact (last v L).
  - pose proof (edge v w E). lia.
Qed.
End Paths.

(* A lane starts its instructions in order, at most one a cycle: `times` of those from the one that waits for a load on. *)
Section Order.
Fixpoint in_order (times : list nat) : Prop :=
  match times with
  | a :: (b :: _) as r => S a <= b /\ in_order r
  | _ => True
  end.
Lemma in_order_last d times : forall a, in_order (a :: times) -> a + length times <= last (a :: times) d.
Proof.
  induction times as [|b r IH]; intros a H.
  - simpl. lia.
  - destruct H as [L H]. specialize (IH b H). change (last (a :: b :: r) d) with (last (b :: r) d). simpl length. lia.
Qed.
(* Bytes are there at `arrives`; what waits for them and what follows it are `after` instructions at least. *)
Theorem what_follows_the_last_load a times arrives after :
  in_order (a :: times) -> arrives <= a -> after <= length (a :: times) -> arrives + after <= S (last (a :: times) a).
Proof. intros O A L. pose proof (in_order_last a times a O). simpl length in L. lia. Qed.
End Order.

(* Work is dealt to workers in any way. *)
Section Workers.
Definition total (f : nat -> nat) (l : list nat) := fold_right (fun x n => f x + n) 0 l.
Lemma total_add f g l : total (fun x => f x + g x) l = total f l + total g l.
Proof. induction l as [|x l IH]; simpl; auto. rewrite IH. lia. Qed.
Lemma total_below f m l : (forall x, In x l -> f x <= m) -> total f l <= length l * m.
Proof.
  induction l as [|x l IH]; simpl; intros H; auto. pose proof (H x (or_introl eq_refl)).
  pose proof (IH (fun y I => H y (or_intror I))). lia.
Qed.
Context (group : Type) (worker : group -> nat) (demand : group -> nat) (workers : list nat).
Definition load (l : list group) (p : nat) :=
  fold_right (fun g n => (if worker g =? p then demand g else 0) + n) 0 l.
Definition demands (l : list group) := fold_right (fun g n => demand g + n) 0 l.
Lemma dealt l : (forall g, In g l -> In (worker g) workers) -> demands l <= total (load l) workers.
Proof.
  induction l as [|g l IH]; intros H.
  - simpl. lia.
  - change (load (g :: l)) with (fun p => (if worker g =? p then demand g else 0) + load l p). rewrite total_add.
    assert (demand g <= total (fun p => if worker g =? p then demand g else 0) workers).
    { pose proof (H g (or_introl eq_refl)) as I. clear IH H. induction workers as [|p r IH]; [contradiction|].
      simpl. destruct (Nat.eqb_spec (worker g) p) as [E|N]; [lia|]. destruct I as [->|I]; [congruence|]. specialize (IH I). lia. }
    pose proof (IH (fun x I => H x (or_intror I))). simpl. lia.
Qed.
(* If no worker has started more than `rate` a cycle after `cycles`, that many workers have done no more than this:
   the floor of the busiest. *)
Theorem busiest_worker l rate cycles : (forall g, In g l -> In (worker g) workers) ->
  (forall p, In p workers -> load l p <= rate * cycles) -> demands l <= length workers * (rate * cycles).
Proof. intros D R. apply Nat.le_trans with (total (load l) workers); [now apply dealt|now apply total_below]. Qed.
End Workers.

(* So many subgroups, each with a run through the code: what they start is at least the certificate's number each. *)
Theorem subgroups_issue {V} (next : V -> V -> Prop) (leaves : V -> Prop) left (entry : V) (runs : list nat) :
  (forall v w, next v w -> left v <= S (left w)) -> (forall v, leaves v -> left v <= 1) ->
  (forall n, In n runs -> run next leaves entry n) -> length runs * left entry <= fold_right plus 0 runs.
Proof.
  intros E L. induction runs as [|n r IH]; intros H.
  - simpl. lia.
  - pose proof (potential_below_every_path next leaves left E L entry n (H n (or_introl eq_refl))).
    pose proof (IH (fun m I => H m (or_intror I))). simpl. lia.
Qed.
