(* The extended reals of the laws: R with +-inf and NaN, one zero; and what each real operation gives there. *)
From Coq Require Import Reals Lra ZArith Bool.
From Tang Require Import grad.scalar.
Open Scope R_scope.

(* A boolean is not a number: it travels beside them, and a real operation on it is NaN (never type-checked here). *)
Inductive xr := Fin (x : R) | Pinf | Minf | Nan | Tf (b : bool).
Definition sign_inf (x : R) (pos neg : xr) : xr :=          (* x * inf: the zero case has no value *)
  if Rlt_dec 0 x then pos else if Rlt_dec x 0 then neg else Nan.
Definition xadd (a b : xr) : xr :=
  match a, b with
  | Fin x, Fin y => Fin (x + y)
  | Pinf, (Fin _ | Pinf) | Fin _, Pinf => Pinf
  | Minf, (Fin _ | Minf) | Fin _, Minf => Minf
  | _, _ => Nan
  end.
Definition xneg (a : xr) : xr := match a with Fin x => Fin (- x) | Pinf => Minf | Minf => Pinf | _ => Nan end.
Definition xmul (a b : xr) : xr :=
  match a, b with
  | Fin x, Fin y => Fin (x * y)
  | Pinf, Pinf | Minf, Minf => Pinf
  | Pinf, Minf | Minf, Pinf => Minf
  | Fin x, Pinf | Pinf, Fin x => sign_inf x Pinf Minf
  | Fin x, Minf | Minf, Fin x => sign_inf x Minf Pinf
  | _, _ => Nan
  end.
(* One zero, so 1/0 has no sign and is NaN here: no rule may rest on what a device gives for it. *)
Definition xrecip (a : xr) : xr :=
  match a with Fin x => if Req_EM_T x 0 then Nan else Fin (/ x) | Pinf | Minf => Fin 0 | _ => Nan end.
Definition xsqrt (a : xr) : xr :=
  match a with Fin x => if Rlt_dec x 0 then Nan else Fin (sqrt x) | Pinf => Pinf | _ => Nan end.
Definition xsin (a : xr) : xr := match a with Fin x => Fin (sin x) | _ => Nan end.
(* Defined on finite operands only; IEEE also gives values at infinities, which rules may not use. *)
Definition xatan2 (a b : xr) : xr := match a, b with Fin x, Fin y => Fin (atan2 x y) | _, _ => Nan end.
Definition xexp2 (a : xr) : xr :=
  match a with Fin x => Fin (exp2 x) | Pinf => Pinf | Minf => Fin 0 | _ => Nan end.
Definition xlog2 (a : xr) : xr :=
  match a with
  | Fin x => if Rlt_dec 0 x then Fin (log2 x) else if Rlt_dec x 0 then Nan else Minf
  | Pinf => Pinf | _ => Nan
  end.
Definition xfloor (a : xr) : xr :=
  match a with Fin x => Fin (IZR (Int_part x)) | Pinf => Pinf | Minf => Minf | _ => Nan end.
Definition xless (a b : xr) : bool :=
  match a, b with
  | Fin x, Fin y => if Rlt_dec x y then true else false
  | Minf, (Fin _ | Pinf) | Fin _, Pinf => true
  | Tf x, Tf y => andb (negb x) y
  | _, _ => false
  end.
Definition xequal (a b : xr) : bool :=
  match a, b with
  | Fin x, Fin y => if Req_EM_T x y then true else false
  | Pinf, Pinf | Minf, Minf => true
  | Tf x, Tf y => Bool.eqb x y
  | _, _ => false
  end.
Definition xisnan (a : xr) : bool := match a with Nan => true | _ => false end.
(* max and min propagate NaN. *)
Definition xmax (a b : xr) : xr :=
  match a, b with Nan, _ | _, Nan => Nan | _, _ => if xless a b then b else a end.
Definition xmin (a b : xr) : xr :=
  match a, b with Nan, _ | _, Nan => Nan | _, _ => if xless b a then b else a end.
Definition xratio (a l : xr) : xr :=                        (* 0 when nothing was folded *)
  match l with
  | Fin y => if Req_EM_T y 0 then Fin 0 else xmul a (Fin (/ y))
  | Pinf | Minf => xmul a (Fin 0) | _ => Nan
  end.
Definition xbool (b : bool) : xr := Tf b.
Definition xtrue (a : xr) : bool := match a with Tf b => b | _ => false end.
Definition xreal (a : xr) : xr := match a with Tf b => Fin (if b then 1 else 0) | x => x end.
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
