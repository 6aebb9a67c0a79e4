// Bundles the pages and writes them as C, which outpostd contains: node web/build.mjs OUT.c
// Each file's name contains a digest of its content, so that browsers may keep it for ever. Each page is a file of its
// own, loaded on demand, next to the files that all pages need.
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const LIMIT = 60 * 1024; // script and style of one page, compressed
const TYPES = { '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' };

const here = path.dirname(fileURLToPath(import.meta.url));
const [out] = process.argv.slice(2);

async function bundled() {
  const { outputFiles, metafile } = await build({
    entryPoints: { app: path.join(here, 'src/main.jsx') },
    bundle: true, splitting: true, entryNames: '[name]-[hash]', chunkNames: '[name]-[hash]', minify: true, metafile: true, absWorkingDir: here, format: 'esm', target: 'es2022', charset: 'utf8', legalComments: 'none',
    jsx: 'automatic', jsxImportSource: 'preact', outdir: path.dirname(path.resolve(out)), write: false, logLevel: 'warning',
  });
  const imports = new Map(Object.entries(metafile.outputs).map(([name, of]) => [path.basename(name), of.imports]));
  return { files: outputFiles.map(({ path: name, contents }) => ({ name: path.basename(name), bytes: Buffer.from(contents) })), imports };
}

function addFile(imports, name, names, isPending) {
  if (names.has(name)) return names;
  names.add(name);
  for (const { path: to, kind } of imports.get(name) ?? []) if (isPending(kind)) addFile(imports, path.basename(to), names, isPending);
  return names;
}

// The entry, first, and the files that it imports statically.
function filesOfEntry(imports) {
  return addFile(imports, [...imports.keys()].find((name) => /^app-.*js$/.test(name)), new Set(), (kind) => kind !== 'dynamic-import');
}

// The files of each page: those, one file that the entry loads, and all imports of this file.
function filesOfPages(imports) {
  const common = filesOfEntry(imports);
  const [entry] = common;
  return imports.get(entry).filter(({ kind }) => kind === 'dynamic-import').map(({ path: to }) => addFile(imports, path.basename(to), new Set(common), () => true));
}

const preload = (name) => `<link rel="modulepreload" href="/assets/${name}">`;

// The files that each page needs in addition to the entry before its first paint, by the page's name (src/web/page.c).
function preloadsOfPages(imports) {
  const common = filesOfEntry(imports);
  const [entry] = common;
  return imports.get(entry).filter(({ kind }) => kind === 'dynamic-import').map(({ path: to }) => {
    const names = [...addFile(imports, path.basename(to), new Set(common), (kind) => kind !== 'dynamic-import')];
    return [path.basename(to).replace(/-[^-]*\.js$/, ''), names.filter((name) => !common.has(name)).map(preload).join('\n')];
  });
}

const bytesOf = (buffer) => {
  const lines = [];
  for (let i = 0; i < buffer.length; i += 32) lines.push(`${[...buffer.subarray(i, i + 32)].join(',')},`);
  return lines.join('\n');
};

const icon = await fs.readFile(path.join(here, 'icon.svg'));
const { files: built, imports } = await bundled();
const files = [...built, { name: `icon-${createHash('sha256').update(icon).digest('hex').slice(0, 8)}.svg`, bytes: icon }];
let page = await fs.readFile(path.join(here, 'index.html'), 'utf8');
// Requested together with the entry, not after it.
const [, ...preloaded] = filesOfEntry(imports);
page = page.replace('{{preloaded}}', preloaded.map(preload).join('\n'));
const entries = [];
let text = '/* Made by web/build.mjs. */\n#include "web/assets.h"\n\n';
const sizes = new Map();
for (const [i, { name, bytes }] of files.entries()) {
  const ext = path.extname(name);
  const url = `/assets/${name}`;
  const gzipped = gzipSync(bytes, { level: 9 });
  page = page.replace(`{{${name.replace(/-[^-]*(?=\.)/, '')}}}`, url);
  sizes.set(name, gzipped.length);
  text += `static const unsigned char plain_${i}[] = {\n${bytesOf(bytes)}\n};\nstatic const unsigned char gzipped_${i}[] = {\n${bytesOf(gzipped)}\n};\n`;
  entries.push(`\t{"${url}", "${TYPES[ext]}", plain_${i}, sizeof(plain_${i}), gzipped_${i}, sizeof(gzipped_${i})},`);
}
text += `const struct web_asset WEB_ASSETS[] = {\n${entries.join('\n')}\n};\nconst size_t N_WEB_ASSETS = ${entries.length};\n`;
text += `const char WEB_PAGE[] = {\n${bytesOf(Buffer.from(page))}0};\n`;
text += `const struct web_preload WEB_PRELOADS[] = {\n${preloadsOfPages(imports).map(([name, links]) => `\t{${JSON.stringify(name)}, ${JSON.stringify(links)}},`).join('\n')}\n\t{0, 0}};\n`;
const style = [...sizes.keys()].find((name) => name.endsWith('.css'));
const heaviest = Math.max(...filesOfPages(imports).map((names) => [...names, style].reduce((sum, name) => sum + sizes.get(name), 0)));
if (heaviest > LIMIT) throw new Error(`a page's script and style are ${heaviest} bytes gzipped, more than ${LIMIT}`);
await fs.mkdir(path.dirname(out), { recursive: true });
await fs.writeFile(out, text);
