# Every benchmark in order, then the table: docs/results/cpu.md and cpu.json.
# usage: bench.sh BUILD [--quick]
set -eu
build=$1
quick=${2:-}
here=$(dirname "$0")/..
out=$build/results
mkdir -p "$out"
rm -f "$out"/*.json
chmod 700 "$out"
cache=$build/bench-cache
first=
[ "$(id -u)" = 0 ] && first="nice -n -10"  # other work on the machine waits
bench() {  # NAME CORE THREADS SECTIONS..
  name=$1 core=$2 threads=$3
  shift 3
  if [ "$core" = default ]; then set -- env -u OPENBLAS_CORETYPE $first "$build/bench_programs" "$@"
  else set -- env "OPENBLAS_CORETYPE=$core" $first "$build/bench_programs" "$@"; fi
  "$@" --threads "$threads" --cache "$cache" $quick --json "$out/$name.json"
}
threads="1"
[ "$(nproc)" -gt 1 ] && threads="1 2"
for t in $threads; do
  for core in default SkylakeX Zen; do
    [ "$core" != SkylakeX ] || grep -q avx512f /proc/cpuinfo || continue
    bench "matmul-$core-$t" "$core" "$t" matmul
    [ "$core" = SkylakeX ] || bench "attention-$core-$t" "$core" "$t" attention backward
  done
  python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  $first "$python" "$here/bench/programs/torch_peers.py" "$t" > "$out/torch-$t.json" || rm -f "$out/torch-$t.json"
  bench "training-$t" default "$t" training
  bench "streams-$t" default "$t" streams
  bench "figure-$t" default "$t" figure
done
bench small default 1 small sorted
bench compile default 1 compile
mkdir -p "$here/docs/results"
"$build/bench_programs" report "$here/docs/results/cpu" $(ls -tr "$out"/*.json)
