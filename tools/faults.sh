# Many processes on one tuning cache, killed at random, bits flipped under them: no wrong value, no hang.
# usage: faults.sh TEST_TUNE [PROCESSES ROUNDS]
set -eu
TANG_TUNE_PROCESSES=${2:-16} TANG_TUNE_ROUNDS=${3:-1000} "$1" --gtest_filter='tune_store.many_processes*'
