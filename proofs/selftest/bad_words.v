(* Must be refused by lint.py: an assumption outside a section. *)
Axiom everything : forall P : Prop, P.
Theorem false : False.
Proof. apply everything. Qed.
