# Installs the Debian packages that are missing, when root; otherwise prints the one line to run.
set -eu
missing=""
for p in "$@"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q "install ok installed" || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ]; then
  echo "installing:$missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y -qq --no-install-recommends $missing > /dev/null 2>&1 ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing > /dev/null; }
else
  echo "missing packages; run:  sudo apt-get install -y$missing"
  exit 1
fi
