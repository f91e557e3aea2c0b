(* Must be refused by lint.py: a variable outside a closed section becomes an axiom. *)
Section Closed.
Variable n : nat.
End Closed.
Variable m : nat.
