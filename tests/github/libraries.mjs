// Packages that consist of hundreds of modules, each bundled into one file with V8's compiled code beside it: to find, read and
// compile the modules takes each test file up to two seconds of the processor. build/rig/ keeps both; prepare.mjs makes them once.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = path.join(root, 'build/rig');

const SOURCES = {
  // Prism's mock and its reader of descriptions load 2,400 modules more. Most test files need neither. The schemas are GitHub's and
  // serve few requests, so it takes most of the time of a request to check them against their own schema and to optimize their code.
  prism: `
    for (const ajv of [require('ajv'), require('ajv/dist/2019'), require('ajv/dist/2020')]) {
      const Ajv = ajv.default;
      ajv.default = class extends Ajv {
        constructor(options) { super({ ...options, meta: false, validateSchema: false, code: { optimize: false } }); }
      };
    }
    exports.factory = require('@stoplight/prism-core').factory;
    exports.route = require('@stoplight/prism-http/dist/router/index.js').default;
    Object.assign(exports, require('@stoplight/prism-http/dist/validator/index.js'));`,
  wholePrism: "module.exports = require('@stoplight/prism-http');",
  yaml: "module.exports = require('yaml');",
};
export const LIBRARIES = Object.keys(SOURCES);

// Replaces the file at once, because another process may write it at the same time.
function replaceFile(file, content) {
  const own = `${file}.${process.pid}`;
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(own, content);
  fs.renameSync(own, file);
}

const readIfThere = (file) => (fs.existsSync(file) ? fs.readFileSync(file) : undefined);

function bundleOf(name, file) {
  if (!fs.existsSync(file)) {
    const { outputFiles: [{ contents }] } = require('esbuild').buildSync({
      stdin: { contents: SOURCES[name], resolveDir: root }, write: false, bundle: true, platform: 'node', format: 'cjs', target: 'node20', keepNames: true,
      legalComments: 'none', logLevel: 'error', alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' }, // its main file hides its modules from bundlers
    });
    replaceFile(file, contents);
  }
  return fs.readFileSync(file, 'utf8');
}

const loaded = new Map();

// Returns the exports of one of SOURCES.
export function library(name) {
  if (loaded.has(name)) return loaded.get(name);
  const lock = fs.readFileSync(path.join(root, 'package-lock.json'));
  const digest = createHash('sha256').update(SOURCES[name]).update(lock).digest('hex').slice(0, 16);
  const file = path.join(folder, `${name}-${digest}.cjs`), compiled = `${file}.${process.version}`;
  const cachedData = readIfThere(compiled);
  const script = new vm.Script(`(function (exports, require, module, __filename, __dirname) {${bundleOf(name, file)}\n})`, { filename: file, cachedData });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, file, folder);
  // At the exit it contains the functions that this process has called as well.
  if (!cachedData || script.cachedDataRejected) process.on('exit', () => replaceFile(compiled, script.createCachedData()));
  loaded.set(name, module.exports);
  return module.exports;
}
