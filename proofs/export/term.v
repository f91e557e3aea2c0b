(* The printed form of a scalar term: one constructor a row of the op table, and its value. *)
From Coq Require Import Reals ZArith List.
From Tang Require Import export.xr.
Import ListNotations.

Inductive term :=
  | lit (mantissa exponent : Z)                       (* mantissa * 2^exponent: every finite double, exactly *)
  | inf | ninf | nan
  | yes | no                                          (* boolean literals *)
  | v (n : nat)                                       (* a variable; in a combine 2c is the left component c, 2c+1 the right *)
  | ax (n : nat)                                      (* a coordinate of the point *)
  | rd (node : nat) (at_ : list term)                 (* a read of a node at coordinates *)
  | add (a b : term) | mul (a b : term) | neg (a : term) | recip (a : term) | sqrt_ (a : term)
  | sin_ (a : term) | atan2_ (a b : term) | exp2_ (a : term) | log2_ (a : term) | floor_ (a : term)
  | max_ (a b : term) | min_ (a b : term) | is_nan (a : term) | ratio_ (a b : term)
  | less_ (a b : term) | equal_ (a b : term) | and_ (a b : term) | or_ (a b : term) | not_ (a : term)
  | div_ (a b : term) | mod_ (a b : term) | real_ (a : term) | index_ (a : term)
  | select (c a b : term) | only_ (g a : term) | or_else_ (a b : term).

(* f at every subterm, operands first. *)
Section Everywhere.
Context (f : term -> term).
Fixpoint everywhere (t : term) : term :=
  f match t with
  | lit _ _ | inf | ninf | nan | yes | no | v _ | ax _ => t
  | rd n at_ => rd n (map everywhere at_)
  | add a b => add (everywhere a) (everywhere b) | mul a b => mul (everywhere a) (everywhere b)
  | neg a => neg (everywhere a) | recip a => recip (everywhere a) | sqrt_ a => sqrt_ (everywhere a)
  | sin_ a => sin_ (everywhere a) | atan2_ a b => atan2_ (everywhere a) (everywhere b)
  | exp2_ a => exp2_ (everywhere a) | log2_ a => log2_ (everywhere a) | floor_ a => floor_ (everywhere a)
  | max_ a b => max_ (everywhere a) (everywhere b) | min_ a b => min_ (everywhere a) (everywhere b)
  | is_nan a => is_nan (everywhere a) | ratio_ a b => ratio_ (everywhere a) (everywhere b)
  | less_ a b => less_ (everywhere a) (everywhere b) | equal_ a b => equal_ (everywhere a) (everywhere b)
  | and_ a b => and_ (everywhere a) (everywhere b) | or_ a b => or_ (everywhere a) (everywhere b)
  | not_ a => not_ (everywhere a) | div_ a b => div_ (everywhere a) (everywhere b) | mod_ a b => mod_ (everywhere a) (everywhere b)
  | real_ a => real_ (everywhere a) | index_ a => index_ (everywhere a)
  | select c a b => select (everywhere c) (everywhere a) (everywhere b)
  | only_ g a => only_ (everywhere g) (everywhere a) | or_else_ a b => or_else_ (everywhere a) (everywhere b)
  end.
End Everywhere.

Section Eval.
Context (vars : nat -> option xr) (axes : nat -> option xr) (read : nat -> list xr -> option xr).
(* Absent operands make a strict operation absent. *)
Definition lift1 (f : xr -> xr) (a : option xr) : option xr := match a with Some x => Some (f x) | None => None end.
Definition lift2 (f : xr -> xr -> xr) (a b : option xr) : option xr :=
  match a, b with Some x, Some y => Some (f x y) | _, _ => None end.
Definition truth2 (f : bool -> bool -> bool) (a b : xr) : xr := xbool (f (xtrue a) (xtrue b)).
Definition power2 (e : Z) : R := if (e <? 0)%Z then / IZR (2 ^ (- e)) else IZR (2 ^ e).
Definition literal (m e : Z) : R := if (e =? 0)%Z then IZR m else (IZR m * power2 e)%R.
Fixpoint all_present (l : list (option xr)) : option (list xr) :=
  match l with
  | [] => Some []
  | Some x :: r => match all_present r with Some xs => Some (x :: xs) | None => None end
  | None :: _ => None
  end.
Fixpoint eval (t : term) : option xr :=
  match t with
  | lit m e => Some (Fin (literal m e))
  | inf => Some Pinf | ninf => Some Minf | nan => Some Nan
  | yes => Some (xbool true) | no => Some (xbool false)
  | v n => vars n | ax n => axes n
  | rd n cs => match all_present (map eval cs) with Some xs => read n xs | None => None end
  | add a b => lift2 xadd (eval a) (eval b) | mul a b => lift2 xmul (eval a) (eval b)
  | neg a => lift1 xneg (eval a) | recip a => lift1 xrecip (eval a) | sqrt_ a => lift1 xsqrt (eval a)
  | sin_ a => lift1 xsin (eval a) | atan2_ a b => lift2 xatan2 (eval a) (eval b)
  | exp2_ a => lift1 xexp2 (eval a) | log2_ a => lift1 xlog2 (eval a) | floor_ a => lift1 xfloor (eval a)
  | max_ a b => lift2 xmax (eval a) (eval b) | min_ a b => lift2 xmin (eval a) (eval b)
  | is_nan a => lift1 (fun x => xbool (xisnan x)) (eval a) | ratio_ a b => lift2 xratio (eval a) (eval b)
  | less_ a b => lift2 (fun x y => xbool (xless x y)) (eval a) (eval b)
  | equal_ a b => lift2 (fun x y => xbool (xequal x y)) (eval a) (eval b)
  | and_ a b => lift2 (truth2 andb) (eval a) (eval b) | or_ a b => lift2 (truth2 orb) (eval a) (eval b)
  | not_ a => lift1 (fun x => xbool (negb (xtrue x))) (eval a)
  | div_ a b => lift2 xdiv (eval a) (eval b) | mod_ a b => lift2 xmod (eval a) (eval b)
  | real_ a => lift1 xreal (eval a) | index_ a => lift1 xindex (eval a)
  | select c a b => match eval c with Some x => if xtrue x then eval a else eval b | None => None end
  | only_ g a => match eval g with Some x => if xtrue x then eval a else None | None => None end
  | or_else_ a b => match eval a with Some x => Some x | None => eval b end
  end.
End Eval.

(* What a variable ranges over. *)
Inductive kind :=
  | real        (* any extended real, NaN included *)
  | finite      (* a real number *)
  | bottom      (* a real number or -inf: the carrier of a max *)
  | top         (* a real number or +inf: the carrier of a min *)
  | extended    (* a real number, -inf or +inf *)
  | index       (* an integer (a real number; that it is whole is not used) *)
  | place       (* an index in 0 .. 2^63-1: the carrier of an arg-max's index *)
  | count       (* a non-negative real number *)
  | boolean
  | partial.    (* may be absent, else any extended real *)
Definition INT64_MAX : Z := 9223372036854775807.
Definition in_kind (k : kind) (x : option xr) : Prop :=
  match k, x with
  | partial, (None | Some (Fin _ | Pinf | Minf | Nan)) => True
  | real, Some (Fin _ | Pinf | Minf | Nan) => True
  | (finite | index), Some (Fin _) => True
  | bottom, Some (Fin _ | Minf) => True
  | top, Some (Fin _ | Pinf) => True
  | extended, Some (Fin _ | Pinf | Minf) => True
  | place, Some (Fin x) => (0 <= x <= IZR INT64_MAX)%R
  | count, Some (Fin x) => (0 <= x)%R
  | boolean, Some (Tf _) => True
  | _, _ => False
  end.
Arguments lit (mantissa exponent)%Z_scope.
Arguments v n%nat_scope.
Arguments ax n%nat_scope.
Arguments rd node%nat_scope at_%list_scope.
