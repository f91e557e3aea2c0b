(* The read-guard law for the plain folds over R with +-inf and NaN: sum and max; a padded product leaves the domain. *)
From Coq Require Import Reals Lra List Bool.
From Tang Require Import fold.partial fold.monoid fold.pieces fold.guard export.xr export.hoist.
Import ListNotations.
Open Scope R_scope.

Ltac by_cases := intros; repeat match goal with x : xr |- _ => destruct x end; simpl in *; try contradiction;
  unfold xmax, xmin, xless in *; repeat match goal with |- context [Rlt_dec ?a ?b] => destruct (Rlt_dec a b) end;
  simpl; try reflexivity; try discriminate; try (f_equal; lra); try (exfalso; lra); auto.
Definition xsum_monoid : monoid xr.
Proof. refine {| ok := number; op := xadd; e := Fin 0 |}; by_cases. Defined.
Definition xmax_monoid : monoid xr.
Proof. refine {| ok := number; op := xmax; e := Minf |}; by_cases. Defined.

Section Law.
Context {I A : Type} (g : I -> bool) (reads : I -> A) (pads : A) (lift : I -> A -> option xr) (l : list I).
Theorem guard_to_absence_sum :
  (forall i x, g i = false -> lift i pads = Some x -> x = Fin 0 \/ x = Nan) ->
  refines (fold xsum_monoid (map (padded g reads pads lift) l)) (fold xsum_monoid (map (absent g reads lift) l)).
Proof.
  intros H. unfold refines.
  assert (G := fun a b c d => guard_to_absence xsum_monoid (fun x => x = Nan) a b c g reads pads lift d l). simpl in G.
  destruct (G ltac:(by_cases) ltac:(by_cases) ltac:(by_cases) ltac:(by_cases)) as [N|E]; auto.
  intros i x Hg Hx. destruct (H i x Hg Hx) as [-> | ->]; simpl; auto. right. f_equal. lra.
Qed.
Theorem guard_to_absence_max :
  (forall i x, g i = false -> lift i pads = Some x -> x = Minf \/ x = Nan) ->
  refines (fold xmax_monoid (map (padded g reads pads lift) l)) (fold xmax_monoid (map (absent g reads lift) l)).
Proof.
  intros H. unfold refines.
  assert (G := fun a b c d => guard_to_absence xmax_monoid (fun x => x = Nan) a b c g reads pads lift d l). simpl in G.
  destruct (G ltac:(by_cases) ltac:(by_cases) ltac:(by_cases) ltac:(by_cases)) as [N|E]; auto.
  intros i x Hg Hx. destruct (H i x Hg Hx) as [-> | ->]; simpl; auto.
Qed.
End Law.
