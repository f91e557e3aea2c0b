# The stages of `make test`, fast ones first, each with a time budget in seconds. Closing line: N passed, N failed.
# usage: test.sh BUILD JOBS
set -u
build=$1
jobs=$2
passed=0
failed=0
stage() {  # name budget command..
  name=$1
  budget=$2
  shift 2
  start=$(date +%s)
  log="$build-$name.log"
  if timeout "$budget" "$@" > "$log" 2>&1; then status=ok; else status="FAILED ($?)"; fi
  took=$(($(date +%s) - start))
  n=$(grep -oE '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -1)
  [ -n "$n" ] || n=$(sed -nE 's/^([0-9]+)% tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\3 \2/p' "$log" | tail -1 | awk 'NF==2 { print $1-$2 " passed, " $2 " failed" }')
  if [ -n "$n" ]; then
    p=${n%% passed*}
    f=${n##*, }
    f=${f%% failed*}
  elif [ "$status" = ok ]; then p=1 f=0
  else p=0 f=1; fi
  [ "$status" = ok ] || [ "$f" -gt 0 ] || f=1
  passed=$((passed + p))
  failed=$((failed + f))
  printf '%-10s %-12s %5d passed %3d failed   %4d s of %d\n' "$name" "$status" "$p" "$f" "$took" "$budget"
  [ "$status" = ok ] || { grep -E 'error|FAILED|Failure|failed|differs|Error' "$log" | head -40; tail -40 "$log"; }
}
stage check     120 python3 tools/check.py
stage configure 120 cmake -S . -B "$build" -G Ninja -DTANG_TESTS=ON -DTANG_UNITY=ALL
stage build    1500 ninja -k 0 -C "$build" -j "$jobs" all tang_demo
stage tests     1500 ctest --test-dir "$build" -j "$jobs" --output-on-failure --timeout 480
stage portable  600 sh tools/portable.sh "$jobs" "$build"
stage demo      180 sh tools/demo.sh "$build/tang_demo" "$build/demo" "$build/cache"
stage examples  180 sh tools/examples.sh "$build/tang" "$build/cache"
stage proofs    600 make -C proofs -j "$jobs" check
stage exported  600 make -C proofs exported TANG="$(realpath "$build")/tang"
echo
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
