// docs/comments/NAME.png from NAME.md: GitHub's renderer, GitHub's style, Chromium. Called by `make comments`; wants the packages
// cmark-gfm and chromium-headless-shell.
//   node tools/comments.mjs [NAME…]
import { execFile } from 'node:child_process';
import { promises as fs } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const folder = path.join(root, 'docs/comments');
const WIDTH = 920;
const HEIGHT_MAX = 2400; // of a picture: what is longer is cut, as on a screen

const EXTENSIONS = ['table', 'autolink', 'strikethrough', 'tasklist'].flatMap((name) => ['-e', name]);

// Folds are shut on GitHub; `open` is not written, so a picture shows what a reader sees first.
function page(html, style) {
  return `<!doctype html><meta charset="utf-8"><style>${style}
body { margin: 0; background: #fff; }
.markdown-body { box-sizing: border-box; width: ${WIDTH}px; padding: 16px 24px; font-size: 14px;
  font-family: "Liberation Sans", "DejaVu Sans", sans-serif; }
</style><article class="markdown-body">${html}</article>`;
}

async function chromium(scratch, extra, file) {
  return run('chromium-headless-shell', ['--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--force-device-scale-factor=1',
    `--user-data-dir=${path.join(scratch, 'profile')}`, ...extra, `file://${file}`], { timeout: 60_000, maxBuffer: 1 << 24 });
}

// Chromium's screenshot has the window's height: so the page is asked for its own first.
async function heightOf(scratch, file) {
  const asking = path.join(scratch, 'asking.html');
  const html = await fs.readFile(file, 'utf8');
  await fs.writeFile(asking, `${html}<script>document.title = String(document.querySelector('article').offsetHeight)</script>`);
  const { stdout } = await chromium(scratch, [`--window-size=${WIDTH},800`, '--dump-dom'], asking);
  return Math.min(HEIGHT_MAX, Number(/<title>(\d+)<\/title>/.exec(stdout)[1]));
}

async function draw(scratch, style, name) {
  const { stdout } = await run('cmark-gfm', ['--unsafe', ...EXTENSIONS, path.join(folder, `${name}.md`)], { maxBuffer: 1 << 24 });
  const file = path.join(scratch, 'page.html');
  await fs.writeFile(file, page(stdout, style));
  const height = await heightOf(scratch, file);
  const picture = path.join(folder, `${name}.png`);
  await chromium(scratch, [`--window-size=${WIDTH},${height}`, `--screenshot=${picture}`], file);
  console.log(`${name}.png ${WIDTH}x${height} ${(await fs.stat(picture)).size} bytes`);
}

const scratch = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-comments-'));
try {
  const style = await fs.readFile(path.join(root, 'node_modules/github-markdown-css/github-markdown-light.css'), 'utf8');
  const all = (await fs.readdir(folder)).filter((file) => file.endsWith('.md') && file !== 'README.md').map((file) => file.slice(0, -3));
  for (const name of process.argv.length > 2 ? process.argv.slice(2) : all.sort()) await draw(scratch, style, name);
} finally {
  await fs.rm(scratch, { recursive: true, force: true });
}
