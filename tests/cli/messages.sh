# What a newcomer types wrongly: each run ends with the status and the message that it should have, none by a signal.
# usage: messages.sh TANG SOURCE
set -u
tang=$1
source=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export TANG_CACHE_DIR=$dir/cache
failed=0

# says STATUS TEXT ARGUMENTS..: the status, and a part of what is said on stderr.
says() {
  status=$1 text=$2
  shift 2
  timeout 100 "$tang" "$@" > out 2> err < /dev/null
  got=$?
  if [ $got != "$status" ] || { [ -n "$text" ] && ! grep -qF -- "$text" err; }; then
    echo "FAILED: tang $*: status $got, not $status, or no '$text' in:"
    head -5 err
    failed=1
  fi
}

cp "$source/examples/gru.tang" .
printf 'input x[i: 4]\ny[i] = x[i]\n' > no_output.tang
printf 'input x[i: 1099511627776]\ny[i] = x[i] + 1\noutput y\n' > huge.tang
printf 'input x[i: 99999999999999999999]\ny[i] = x[i]\noutput y\n' > beyond.tang
printf 'input x[i: 4]\ny[i] = z[i]\noutput y\n' > unknown.tang
: > empty
mkdir folder
awk 'BEGIN { for (k = 0; k < 3000; ++k) printf "%c", 128 + k * 37 % 128 }' > garbage
seq 1 400 > numbers

# Files that are none: every command that reads one.
for verb in run verify explain bound tune why "emit c"; do
  says 1 "has no output" $verb empty
  says 1 "has no output" $verb no_output.tang
  says 1 "is a folder" $verb folder
  says 1 "no meaning here" $verb garbage
  says 1 "missing" $verb missing
  says 1 "did you mean" $verb unknown.tang
done
for file in empty garbage numbers folder missing; do
  says 1 "error" verify gru.tang --schedule $file
  says 1 "error" diff $file $file
  says 1 "error" cache import $file
  says 1 "error" run --model $file
done
for file in garbage numbers empty; do says 1 "error" fuzz --file $file; done
for file in empty folder missing; do says 1 "error" train $file --steps 1; done
says 1 "more" run garbage
[ "$(wc -l < err)" -lt 200 ] || { echo "FAILED: a garbled file fills the screen"; failed=1; }
[ "$(grep -c 'error: error' err)" = 0 ] || { echo "FAILED: 'error' twice"; failed=1; }

# Numbers that are none.
for number in nan -1 0 inf few; do
  says 1 "no number above 0" verify gru.tang --budget $number
  says 1 "no number above 0" run gru.tang --budget $number
  says 1 "no number above 0" tune gru.tang --seconds $number
  says 1 "no number above 0" bound gru.tang --bytes $number
done
for number in -3 0 100000 many; do says 1 "threads" run gru.tang --threads $number; done
says 1 "candidates" tune gru.tang --candidates -1
says 1 "tokens" run --model missing --tokens -5
says 1 "too large" emit c gru.tang --set seq=1099511627776
says 1 "sets no size" emit c gru.tang --set seq
says 1 "no symbol 'x'" emit c gru.tang --set x=1

# Sizes that no machine has.
for verb in run verify tune "emit c"; do says 1 "do not fit this machine" $verb huge.tang; done
says 0 "" explain huge.tang
says 1 "too large" run beyond.tang

# Words that are none.
says 1 "did you mean 'verify'" verfy gru.tang
says 1 "commands are" nonsense
says 1 "Usage" # nothing at all
says 1 "no target 'gpu'" run gru.tang --target gpu
says 1 "cannot write" emit c gru.tang -o empty/x

# A full disk, and a reader that leaves early.
if [ -c /dev/full ]; then
  for verb in version "--help" "explain gru.tang" "run gru.tang"; do
    "$tang" $verb > /dev/full 2> err
    [ $? = 1 ] && grep -q "cannot write the output" err || { echo "FAILED: tang $verb on a full disk"; failed=1; }
  done
fi
"$tang" explain gru.tang 2> err | true
grep -q "bug in tang\|terminate" err && { echo "FAILED: a reader that leaves"; failed=1; }
if [ "$(id -u)" != 0 ]; then
  : > secret && chmod 000 secret && says 1 "ermission denied" run secret
fi
exit $failed
