(* Must be refused by the assumption check: it rests on an axiom that is not on the list. *)
Axiom choice_of_mine : forall A (R : A -> A -> Prop), (forall x, exists y, R x y) -> exists f, forall x, R x (f x).
Theorem headline : forall A (R : A -> A -> Prop), (forall x, exists y, R x y) -> exists f, forall x, R x (f x).
Proof. exact choice_of_mine. Qed.
