(* The extended reals of the laws: R with +-inf and NaN, one zero; and what each real operation gives there. *)
From Coq Require Import Reals Lra ZArith.
From Tang Require Import grad.scalar.
Open Scope R_scope.

Inductive xr := Fin (x : R) | Pinf | Minf | Nan.
Definition sign_inf (x : R) (pos neg : xr) : xr :=          (* x * inf: the zero case has no value *)
  if Rlt_dec 0 x then pos else if Rlt_dec x 0 then neg else Nan.
Definition xadd (a b : xr) : xr :=
  match a, b with
  | Nan, _ | _, Nan => Nan
  | Fin x, Fin y => Fin (x + y)
  | Pinf, Minf | Minf, Pinf => Nan
  | Pinf, _ | _, Pinf => Pinf
  | Minf, _ | _, Minf => Minf
  end.
Definition xneg (a : xr) : xr := match a with Fin x => Fin (- x) | Pinf => Minf | Minf => Pinf | Nan => Nan end.
Definition xmul (a b : xr) : xr :=
  match a, b with
  | Nan, _ | _, Nan => Nan
  | Fin x, Fin y => Fin (x * y)
  | Pinf, Pinf | Minf, Minf => Pinf
  | Pinf, Minf | Minf, Pinf => Minf
  | Fin x, Pinf | Pinf, Fin x => sign_inf x Pinf Minf
  | Fin x, Minf | Minf, Fin x => sign_inf x Minf Pinf
  end.
(* One zero, so 1/0 has no sign and is NaN here: no rule may rest on what a device gives for it. *)
Definition xrecip (a : xr) : xr :=
  match a with Fin x => if Req_EM_T x 0 then Nan else Fin (/ x) | Pinf | Minf => Fin 0 | Nan => Nan end.
Definition xsqrt (a : xr) : xr :=
  match a with Fin x => if Rlt_dec x 0 then Nan else Fin (sqrt x) | Pinf => Pinf | _ => Nan end.
Definition xsin (a : xr) : xr := match a with Fin x => Fin (sin x) | _ => Nan end.
(* Defined on finite operands only; IEEE also gives values at infinities, which rules may not use. *)
Definition xatan2 (a b : xr) : xr := match a, b with Fin x, Fin y => Fin (atan2 x y) | _, _ => Nan end.
Definition xexp2 (a : xr) : xr :=
  match a with Fin x => Fin (exp2 x) | Pinf => Pinf | Minf => Fin 0 | Nan => Nan end.
Definition xlog2 (a : xr) : xr :=
  match a with
  | Fin x => if Rlt_dec 0 x then Fin (log2 x) else if Rlt_dec x 0 then Nan else Minf
  | Pinf => Pinf | _ => Nan
  end.
Definition xfloor (a : xr) : xr := match a with Fin x => Fin (IZR (Int_part x)) | e => e end.
Definition xless (a b : xr) : bool :=
  match a, b with
  | Nan, _ | _, Nan => false
  | Fin x, Fin y => if Rlt_dec x y then true else false
  | Minf, Minf => false | Minf, _ => true
  | Fin _, Pinf => true
  | _, _ => false
  end.
Definition xequal (a b : xr) : bool :=
  match a, b with
  | Fin x, Fin y => if Req_EM_T x y then true else false
  | Pinf, Pinf | Minf, Minf => true
  | _, _ => false
  end.
Definition xisnan (a : xr) : bool := match a with Nan => true | _ => false end.
(* max and min propagate NaN. *)
Definition xmax (a b : xr) : xr :=
  match a, b with Nan, _ | _, Nan => Nan | _, _ => if xless a b then b else a end.
Definition xmin (a b : xr) : xr :=
  match a, b with Nan, _ | _, Nan => Nan | _, _ => if xless b a then b else a end.
Definition xratio (a l : xr) : xr := if xequal l (Fin 0) then Fin 0 else xmul a (xrecip l).
(* Booleans travel as 1 and 0. *)
Definition xbool (b : bool) : xr := Fin (if b then 1 else 0).
Definition xtrue (a : xr) : bool := match a with Fin x => if Req_EM_T x 0 then false else true | _ => true end.
(* Integer division and remainder, floored; 0 for a divisor that is not positive, as in the op table. *)
Definition xdiv (a b : xr) : xr :=
  match a, b with Fin x, Fin y => Fin (if Rlt_dec 0 y then IZR (Int_part (x / y)) else 0) | _, _ => Nan end.
Definition xmod (a b : xr) : xr :=
  match a, b with Fin x, Fin y => Fin (if Rlt_dec 0 y then x - y * IZR (Int_part (x / y)) else 0) | _, _ => Nan end.
Definition xindex (a : xr) : xr :=                             (* real to index truncates; saturation is not modelled *)
  match a with
  | Fin x => Fin (if Rlt_dec x 0 then - IZR (Int_part (- x)) else IZR (Int_part x))
  | _ => Nan
  end.

(* Equal wherever the left side is not NaN. *)
Definition refines (a b : xr) : Prop := a = Nan \/ a = b.
