# `tang train` from outside: twenty steps lower the loss, the same seed gives the same curve, another one does not, less
# memory gives the same losses, and what cannot be done is said.
# usage: train.sh TANG SOURCE
set -eu
tang=$1
source=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "FAILED: $1"
  exit 1
}
small="--model 32 --layers 2 --heads 2 --context 32 --batch 4 --rate 1e-2 --letters 20 --threads 1 --cache $dir/cache"
train() { # NAME FLAGS..
  name=$1
  shift
  "$tang" train "$source/LICENSE" $small --steps 20 --json "$@" > "$dir/$name.json" 2> "$dir/said" || fail "$(cat "$dir/said")"
  sed -n '/"losses"/,/\]/p' "$dir/$name.json" > "$dir/$name"
  [ "$(grep -c '^  [0-9]' "$dir/$name")" = 20 ] || fail "not twenty losses"
}
number() { sed -n "s/^ \"$2\": \([0-9]*\).*/\1/p" "$dir/$1.json"; }
train one --out "$dir/out"
last=$(grep '^  [0-9]' "$dir/one" | tail -1 | tr -d ' ,')
first=$(grep '^  [0-9]' "$dir/one" | head -1 | tr -d ' ,')
echo "loss $first -> $last"
awk "BEGIN { exit !($first > 3.5 && $last < 3.1) }" || fail "loss $first -> $last"
grep -q "<polyline" "$dir/out/training.svg" || fail "no picture"
[ "$(wc -l < "$dir/out/training.csv")" = 21 ] || fail "no losses written"
train two
cmp -s "$dir/one" "$dir/two" || fail "the same seed, another curve"
train other --seed 2
if cmp -s "$dir/one" "$dir/other"; then fail "another seed, the same curve"; fi
train less --memory 1
cmp -s "$dir/one" "$dir/less" || fail "values computed again differ"
[ "$(number less computed_again)" -gt 0 ] || fail "nothing was computed again"
[ "$(number less arena_bytes)" -lt "$(number one arena_bytes)" ] || fail "no memory was saved"
train half --format f16
last=$(grep '^  [0-9]' "$dir/half" | tail -1 | tr -d ' ,')
awk "BEGIN { exit !($last < 3.1) }" || fail "f16: loss $last"
[ "$(number half scale)" -gt 1 ] || fail "no scale was chosen"
if "$tang" train "$source/LICENSE" --model 32 --heads 3 2> "$dir/said"; then fail "3 heads of 32"; fi
grep -q "3 heads in a model of 32" "$dir/said" || fail "no reason: $(cat "$dir/said")"
echo short > "$dir/short"
if "$tang" train "$dir/short" $small 2> "$dir/said"; then fail "five letters"; fi
grep -q "has 6 characters" "$dir/said" || fail "no reason: $(cat "$dir/said")"
echo "1 passed, 0 failed"
