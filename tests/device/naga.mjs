// usage: node naga.mjs FOLDER IN OUT: naga (as WebAssembly, of the package in FOLDER) reads WGSL and writes its own back.
import fs from 'node:fs';
import {pathToFileURL} from 'node:url';
const [folder, input, output] = process.argv.slice(2);
const glue = await import(pathToFileURL(`${folder}/wgsl_wasm_transpiler_bg.js`));
const wasm = await WebAssembly.instantiate(fs.readFileSync(`${folder}/wgsl_wasm_transpiler_bg.wasm`), {'./wgsl_wasm_transpiler_bg.js': glue});
glue.__wbg_set_wasm(wasm.instance.exports);
if (wasm.instance.exports.__wbindgen_start) wasm.instance.exports.__wbindgen_start();
try {
  fs.writeFileSync(output, glue.compileShader(fs.readFileSync(input, 'utf8'), 'wgsl'));
} catch (e) {
  console.error(String(e));
  process.exit(1);
}
