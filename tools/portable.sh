# The texts of tests/portable/texts.cpp from g++, clang++ and (where em++ is present) emscripten under node: the same bytes.
# Every room but the command line's builds with both g++ and clang++, the compiler's rooms with emscripten.
# usage: portable.sh [JOBS] [BUILD]      BUILD: a folder that g++ has built already. Closing line: N passed, N failed.
set -u
jobs=${1:-2}
built=${2:-}
libraries="grad tune fuzz bound prove"
out=build-portable
mkdir -p $out
passed=0
failed=0
verdict() {  # name command..
  name=$1
  shift
  if "$@" > "$out/verdict.log" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    grep -E 'error:|^[<>] ' -A 3 "$out/verdict.log" | head -40
    tail -10 "$out/verdict.log"
  fi
}
native() {  # name compiler folder
  { [ -f "$3/build.ninja" ] || cmake -S . -B "$3" -G Ninja -DTANG_TESTS=ON -DTANG_UNITY=ON -DCMAKE_CXX_COMPILER="$2" -DCMAKE_BUILD_TYPE=Release; } &&
    ninja -C "$3" -j "$jobs" tang_texts $libraries &&
    "$(find "$3" -name tang_texts -type f | head -1)" examples > "$out/$1.txt"
}
# The compiler rooms without devices, by a build file of our own: the find_package calls are for native libraries.
web() {
  export NODE_PATH=/usr/share/nodejs
  mkdir -p $out/web
  {
    echo 'rule cc'
    echo '  command = em++ -std=c++20 -O1 -fexceptions -DFMT_HEADER_ONLY $rooms -Iinclude -MD -MF $out.d -c $in -o $out'
    echo '  depfile = $out.d'
    echo '  deps = gcc'
    echo 'rule link'
    echo '  command = em++ -O1 -fexceptions $in -o $out -s ALLOW_MEMORY_GROWTH=1 -s NODERAWFS=1 -s EXIT_RUNTIME=1 -s TOTAL_STACK=16MB -s INITIAL_MEMORY=64MB'
    rooms=
    objects=
    for r in base expr target kernel ir text eval rewrite grad schedule plan models lower emit; do rooms="$rooms -I.rooms/$r"; done
    echo "rooms =$rooms"
    # Six files of a room at once, as the native build from nothing does; rewrite's files stay apart.
    for r in base expr target kernel ir text eval grad schedule plan lower emit models; do
      folder=src/$r
      [ -d $folder ] || folder=$r
      rm -f $out/web/$r-*.new
      k=0
      for f in $folder/*.cpp; do
        [ ${f##*/} != without.cpp ] || continue  # stands in for what is apart, and nothing is apart here
        echo "#include \"$PWD/$f\"" >> $out/web/$r-$((k / 6)).new
        k=$((k + 1))
      done
      for f in $out/web/$r-*.new; do
        cmp -s $f ${f%.new}.cpp || cp $f ${f%.new}.cpp
        objects="$objects ${f%.new}.cpp"
      done
    done
    for f in src/rewrite/*.cpp tests/portable/texts.cpp; do objects="$objects $f"; done
    linked=
    for f in $objects; do
      echo "build $out/web/o/$f.o: cc $f"
      linked="$linked $out/web/o/$f.o"
    done
    echo "build $out/web/texts.js: link$linked"
  } > $out/web/build.ninja
  ninja --quiet -f $out/web/build.ninja -j "$jobs" $out/web/texts.js && node --no-experimental-fetch $out/web/texts.js examples > $out/web.txt
}
verdict "g++ builds and prints" native gcc g++ "${built:-$out/gcc}"
verdict "clang++-14 builds and prints" native clang clang++-14 "$out/clang"
verdict "g++ and clang++ print the same" diff $out/gcc.txt $out/clang.txt
if command -v em++ > /dev/null && command -v node > /dev/null; then
  verdict "em++ builds and node prints" web
  verdict "g++ and emscripten print the same" diff $out/gcc.txt $out/web.txt
else
  echo "not present: em++ (Debian package emscripten) or node; their part did not run"
fi
[ -s $out/gcc.txt ] && wc -lc < $out/gcc.txt | awk '{ print $1 " lines, " $2 " bytes compared" }'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
