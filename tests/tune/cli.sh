# The verbs from outside: a program is tuned, kept, replayed from its text and from the cache; what does not apply is said.
# usage: cli.sh TANG SOURCE
set -eu
tang=$1
source=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "FAILED: $1"
  exit 1
}
file=$source/examples/gru.tang
cache="--cache $dir/cache"
"$tang" tune "$file" $cache --seconds 20 --candidates 2 -o "$dir/gru.tangsched" --report "$dir/report" > "$dir/tuned" 2> "$dir/progress"
grep -q "best" "$dir/progress" || fail "no progress on stderr"
grep -q "checked against the f64 oracle" "$dir/tuned" || fail "not checked"
grep -q "<svg" "$dir/report/gru-scatter.svg" || fail "no picture"
[ "$("$tang" tune "$file" $cache --json 2> /dev/null | grep -c '"from_cache": true')" = 1 ] || fail "tuned twice"
plain=$("$tang" run "$file" --cache "$dir/other" 2> /dev/null | head -1)
replayed=$("$tang" run "$file" $cache --schedule "$dir/gru.tangsched" --locked 2> "$dir/said" | head -1)
grep -q "restored schedule: largest error" "$dir/said" || fail "not verified on restore"
[ "${plain%%:*}" = "${replayed%%:*}" ] || fail "another output"
# A new process with a full cache reaches its first kernel in less than 100 ms: the best of five, for others use the machine.
best=100000
for k in 1 2 3 4 5; do
  "$tang" run "$file" $cache > /dev/null 2> "$dir/said"
  grep -q "tuned schedule from the cache" "$dir/said" || fail "the cache was not asked"
  grep -q " 0 compiler runs" "$dir/said" || fail "compiled again"
  us=$(sed -n 's/first kernel after \([0-9]*\)\.\([0-9]\).*/\1\2/p' "$dir/said")
  [ "$us" -ge "$best" ] || best=$us
done
echo "first kernel after $((best / 10)).$((best % 10)) ms"
[ "$best" -lt 1000 ] || fail "the first kernel came late"
# What does not apply.
if "$tang" run "$source/examples/attention.tang" $cache --schedule "$dir/gru.tangsched" 2> "$dir/said"; then fail "a schedule of another graph was taken"; fi
grep -q "for another graph" "$dir/said" || fail "no reason: $(cat "$dir/said")"
echo "group \"nobody\" rows 4" >> "$dir/gru.tangsched"
if "$tang" run "$file" $cache --schedule "$dir/gru.tangsched" 2> "$dir/said"; then fail "a group of nobody was taken"; fi
grep -q "'nobody'" "$dir/said" || fail "no name: $(cat "$dir/said")"
# The cache as text, and without a folder to use.
"$tang" cache export "$dir/rows" $cache
"$tang" cache import "$dir/rows" --cache "$dir/second" | grep -q " 0 damaged" || fail "import"
"$tang" cache ls $cache | tail -1 | grep -q "rows in" || fail "ls"
"$tang" cache gc --most 0 --cache "$dir/second" | grep -q "rows removed" || fail "gc"
"$tang" run "$file" --cache /proc/nothing > /dev/null 2> "$dir/said" || fail "a cache that cannot be used stopped the program"
[ "$(grep -c "cache" "$dir/said")" = 1 ] || fail "not one message: $(cat "$dir/said")"
"$tang" why "$file" $cache | grep -q "bound by" || fail "why"
"$tang" probe -o "$dir/probe.json" $cache
grep -q "tang.probe/1" "$dir/probe.json" || fail "probe"
echo "1 passed, 0 failed"
