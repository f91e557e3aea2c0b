# The tile race and the floor's soundness, then docs/results/tune.md. Kernels are compiled first, so that what is timed has
# the machine to itself.
# usage: bench_tune.sh BUILD
set -eu
build=$1
here=$(dirname "$0")/..
out=$build/tune
mkdir -p "$out"
chmod 700 "$out"
threads="1"
[ "$(nproc)" -gt 1 ] && threads="1 2"
parts=
for t in $threads; do
  run="$build/bench_tune --threads $t --cache $build/bench-cache --probe $out/probe-$t.json"
  for what in race sound; do
    [ "$what-$t" = sound-2 ] && continue
    [ $what = sound ] || $run $what --compile-only
    $run $what --json "$out/$what-$t.json"
    parts="$parts $out/$what-$t.json"
  done
  parts="$parts $out/probe-$t.json"
done
# What changes of one term save, beside what was predicted of them before (bench_tune predict wrote that down).
run="$build/bench_tune intervene --threads 1 --cache $build/bench-cache --probe $out/probe-1.json"
$run --predicted "$here/bench/tune/predictions-cpu.json" --json "$out/interventions.json"
parts="$parts $out/interventions.json"
"$build/bench_tune" report "$here/docs/results/tune" $parts
# The page of an NVIDIA GPU, from what was measured there (bench/tune/cuda.cpp says how).
"$build/bench_tune_cuda" report "$here/docs/results/tune-h200.md" "$here"/docs/results/tune-h200/*.json "$here/bench/tune/predictions-h200.json"
