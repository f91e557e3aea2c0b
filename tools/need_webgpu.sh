# Fetches what the WebGPU tests run on, into BUILD/webgpu: Dawn as a library (19 MB) and naga as WebAssembly (2.5 MB),
# pinned packages of the npm registry. Where npm is not installed the tests say 'not present'.
# usage: need_webgpu.sh BUILD
set -eu
folder="$1/webgpu"
[ -e "$folder/node_modules/bun-webgpu-linux-x64/libwebgpu_wrapper.so" ] &&
  [ -e "$folder/node_modules/wgsl-wasm-transpiler-bundler/package.json" ] && exit 0
command -v npm > /dev/null || { echo "no npm: the WebGPU tests will say 'not present'"; exit 0; }
mkdir -p "$folder"
npm install --prefix "$folder" --no-audit --no-fund --silent bun-webgpu-linux-x64@0.1.7 wgsl-wasm-transpiler-bundler@0.0.1 ||
  echo "the WebGPU library could not be fetched: its tests will say 'not present'"
