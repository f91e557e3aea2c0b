# Every example explains itself and verifies. usage: examples.sh TANG CACHE
set -u
passed=0
failed=0
for f in examples/*.tang; do
  for verb in explain verify; do
    if "$1" $verb "$f" $([ $verb = verify ] && echo --budget 2e-3 --cache "$2") > /dev/null; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "failed: tang $verb $f"
    fi
  done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
