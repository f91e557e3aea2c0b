(* Fusion: splicing a map into its reader, for any partial index functions: guarded, strided and gathered views. *)
From Coq Require Import List Bool.
From Tang Require Import fold.partial fold.monoid.
Import ListNotations.

(* A view sends a point to a source coordinate, or nowhere (its guard fails). It may read an index tensor:
   nothing below looks inside it. A map node is a partial function of its points: its support. *)
Definition view A B := A -> option B.
Definition compose {A B C} (w : view B C) (v : view A B) : view A C :=
  fun a => match v a with Some b => w b | None => None end.
Definition read {A B V} (t : B -> option V) (v : view A B) (a : A) : option V :=
  match v a with Some b => t b | None => None end.
(* A gathered view: the coordinate is the value of an index tensor at the point. *)
Definition gather {A B C} (index : B -> option C) (v : view A B) : view A C := read index v.

Theorem view_compose_assoc {A B C D} (x : view C D) (w : view B C) (v : view A B) a :
  compose x (compose w v) a = compose (compose x w) v a.
Proof. unfold compose. destruct (v a); reflexivity. Qed.
Theorem view_compose_id {A B} (v : view A B) a : compose (@Some B) v a = v a /\ compose v (@Some A) a = v a.
Proof. unfold compose. destruct (v a); auto. Qed.
(* Reading through a view of a view is reading through their composition. *)
Theorem read_compose {A B C V} (t : C -> option V) (w : view B C) (v : view A B) a :
  read (fun b => read t w b) v a = read t (compose w v) a.
Proof. unfold read, compose. destruct (v a); reflexivity. Qed.
Theorem gather_compose {A B C D} (index : C -> option D) (w : view B C) (v : view A B) a :
  compose (gather index w) v a = gather index (compose w v) a.
Proof. unfold gather, compose, read. destruct (v a); reflexivity. Qed.

Section Fusion.
Context {M K U V : Type} (D : K -> Type).
(* The producer: a map over points M that reads sources k through views, each with its own pad or none. *)
Context (src : forall k, D k -> option U) (w : forall k, view M (D k)) (pad : K -> option U).
(* Its body sees the reads as partial values, so strictness, only, or_else and select are all allowed in it. *)
Context (body : (K -> option U) -> option V).
Hypothesis body_ext : forall a b, (forall k, a k = b k) -> body a = body b.
Context (domain : M -> bool).
Definition padded_read {A} (k : K) (v : view A (D k)) (a : A) : option U :=
  match v a with Some d => src k d | None => pad k end.
Definition producer (m : M) : option V := only (domain m) (body (fun k => padded_read k (w k) m)).

(* The reader: it reads the producer at point a through v; q is its pad, None when there is none. *)
Context {A : Type} (v : view A M) (q : option V).
Definition reader_read (a : A) : option V := match v a with Some m => producer m | None => q end.
(* Spliced: the body with composed views, under the producer's domain, the outer guard kept. *)
Definition in_domain (a : A) : bool := match v a with Some m => domain m | None => false end.
Definition spliced (a : A) : option V := body (fun k => padded_read k (compose (w k) v) a).
Definition fused_read (a : A) : option V :=
  match v a with Some _ => only (in_domain a) (spliced a) | None => q end.

Theorem fusion_guarded a : reader_read a = fused_read a.
Proof.
  unfold reader_read, fused_read, producer, in_domain, spliced. destruct (v a) eqn:E; auto.
  f_equal. apply body_ext. intro k. unfold padded_read, compose. now rewrite E.
Qed.

(* The outer guard may go iff, where it fails, every inner read misses and the body of the inner pads is q.
   With a composed view the inner reads miss by definition; an implementation that extends the inner view
   past the outer guard ([w'] below) has to show it. *)
Context (w' : forall k, view A (D k)).
Definition extended (a : A) : option V :=
  only (match v a with Some m => domain m | None => true end) (body (fun k => padded_read k (w' k) a)).
Theorem fusion_drop_guard :
  (forall a m k, v a = Some m -> w' k a = w k m) ->
  (forall a k, v a = None -> w' k a = None) ->
  body pad = q ->
  forall a, reader_read a = extended a.
Proof.
  intros Agree Miss Pads a. unfold reader_read, extended, producer. destruct (v a) eqn:E.
  - f_equal. apply body_ext. intro k. unfold padded_read. now rewrite (Agree a m k E).
  - simpl. rewrite <- Pads. apply body_ext. intro k. unfold padded_read. now rewrite (Miss a k E).
Qed.
End Fusion.

(* Body of the pads = the outer pad is not enough when the inner tensor is longer: relu(x(i+1)). *)
Section Counterexample.
Let x (j : nat) : option nat := Some 7.                                 (* the inner tensor reaches past the map *)
Let map_points : view nat nat := fun i => if Nat.ltb i 3 then Some i else None.
Let relu (r : unit -> option nat) : option nat := match r tt with Some a => Some (max 0 a) | None => None end.
Theorem fusion_guard_needed :
  relu (fun _ => Some 0) = Some 0 /\
  reader_read (fun _ => nat) (fun _ => x) (fun _ i => Some (S i)) (fun _ => Some 0) relu (fun _ => true)
    map_points (Some 0) 3
  <> extended (fun _ => nat) (fun _ => x) (fun _ => Some 0) relu (fun _ => true) map_points (fun _ i => Some (S i)) 3.
Proof. split; [reflexivity|]. unfold reader_read, extended, padded_read, relu, map_points. simpl. discriminate. Qed.
End Counterexample.

(* Fusion inside a fold: every term is rewritten alike, so the fold is. *)
Theorem fusion_fold {I V W} (m : monoid V) (points : list I) (f : I -> option W -> option V)
  (before after : I -> option W) :
  (forall i, In i points -> before i = after i) ->
  fold m (map (fun i => f i (before i)) points) = fold m (map (fun i => f i (after i)) points).
Proof. intros H. f_equal. apply map_ext_in. intros i Hi. now rewrite H. Qed.

(* A fold read through a view: its point axes are substituted, in the lift and in the domain; the fold axes stay.
   Where the view goes nowhere the read is absent. *)
Theorem fold_fusion_view {P R A V} (m : monoid V) (dom : P -> R -> bool) (lift : P -> R -> option V)
  (points : P -> list R) (v : view A P) a :
  read (fun p => Some (fold m (map (fun r => only (dom p r) (lift p r)) (points p)))) v a =
  match v a with
  | None => None
  | Some p => Some (fold m (map (fun r =>
      only (match v a with Some p => dom p r | None => false end)
           (match v a with Some p => lift p r | None => None end)) (points p)))
  end.
Proof. unfold read. destruct (v a); reflexivity. Qed.
