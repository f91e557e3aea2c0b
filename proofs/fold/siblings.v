(* Sibling folds of one space merge under the product monoid; a term is present in both or in neither. *)
From Coq Require Import List.
From Tang Require Import fold.partial fold.monoid.
Import ListNotations.

Definition product {V W} (m : monoid V) (n : monoid W) : monoid (V * W).
Proof.
  refine {| ok s := ok m (fst s) /\ ok n (snd s);
            op a b := (op m (fst a) (fst b), op n (snd a) (snd b));
            e := (e m, e n) |}.
  - intros [x y] [A B]; simpl in *. now rewrite !inj_ok.
  - split; apply e_ok.
  - intros a b [A B] [C D]; split; apply op_ok; auto.
  - intros [x y] [A B]; simpl in *. now rewrite !op_e_r.
  - intros a b c [A B] [C D] [E F]; simpl. f_equal; apply op_assoc; auto.
Defined.
Theorem product_commutative {V W} (m : monoid V) (n : monoid W) :
  commutative m -> commutative n -> commutative (product m n).
Proof. intros C D a b [A B] [E F]; simpl. f_equal; auto. Qed.

Theorem merge_siblings_sound {I V W} (m : monoid V) (n : monoid W) (dom : I -> bool) (f : I -> V) (g : I -> W) l :
  fold (product m n) (map (fun i => only (dom i) (Some (f i, g i))) l) =
  (fold m (map (fun i => only (dom i) (Some (f i))) l), fold n (map (fun i => only (dom i) (Some (g i))) l)).
Proof.
  unfold fold, fold_from. simpl e. generalize (e m) as s, (e n) as t.
  induction l as [|i l IH]; intros s t; simpl; auto.
  destruct (dom i); simpl; apply IH.
Qed.
