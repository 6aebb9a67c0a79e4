// docs/openapi.json against the program: the description has each path, and each answer matches it.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { startIssuer } from '../github/oidc.mjs';
import { pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startDispatchVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const read = (file) => fs.readFile(path.join(root, file), 'utf8');
const document = JSON.parse(await read('docs/openapi.json'));
const UPSTREAM = 'pytorch/pytorch';
const SHA = 'd'.repeat(40);

const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true }));
ajv.addSchema(document, 'openapi');
const pointer = (...parts) => `openapi#/${parts.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`;
const resolve = (one) => one.$ref ? one.$ref.slice(2).split('/').reduce((at, part) => at[part], document) : one;

// The places where a value has fields that its schema does not name. The API may add fields, but must describe them.
function undescribed(value, schemas, where = '') {
  const all = schemas.flatMap(function open(one) {
    const s = resolve(one);
    return [s, ...[...s.allOf ?? [], ...s.oneOf ?? [], ...s.anyOf ?? []].flatMap(open)];
  });
  if (Array.isArray(value)) return value.flatMap((one) => undescribed(one, all.flatMap(({ items }) => items ?? []), `${where}[]`));
  if (!value || typeof value !== 'object' || !all.some(({ properties }) => properties)) return [];
  return Object.entries(value).flatMap(([key, one]) => {
    const found = all.flatMap(({ properties }) => properties?.[key] ?? []);
    return found.length ? undescribed(one, found, `${where}.${key}`) : [`${where}.${key}`];
  });
}

// The path template of an address.
function templateOf(address) {
  const { pathname } = new URL(address, 'http://x');
  const fits = Object.keys(document.paths).filter((one) => new RegExp(`^${one.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`).test(pathname));
  return fits.find((one) => !one.includes('{')) ?? fits[0];
}

test('the description is valid by OpenAPI\'s own schema', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  assert.ok(valid, JSON.stringify(errors, null, 1));
  for (const { get } of Object.values(document.paths)) assert.ok(get.summary.length < 80);
});

// So that an answer that lacks a field does not pass. A superseded change has no counts, a requirement is a suite or a test, and
// a vendor's analysis may be partial.
test('fields are required, with few exceptions', () => {
  const optional = new Set();
  const look = (schema, where) => {
    if (!schema || typeof schema !== 'object') return;
    for (const key of Object.keys(schema.properties ?? {})) if (!(schema.required ?? []).includes(key)) optional.add(`${where}.${key}`);
    for (const [key, value] of Object.entries(schema)) look(value, key === 'properties' || /^\d+$/.test(key) ? where : schema.properties ? where : `${where}.${key}`);
  };
  for (const [name, schema] of Object.entries(document.components.schemas)) look(schema, name);
  const names = [...new Set([...optional].map((one) => one.split('.')[0]))];
  assert.deepEqual(names.sort(), ['ChangeAccelerator', 'Job', 'Summary'], [...optional].join(' '));
});

test('each path that the program serves is described, and documented in docs/api.md', async () => {
  const served = new Set();
  for (const file of await fs.readdir(path.join(root, 'src/web'))) {
    const source = await read(`src/web/${file}`);
    for (const [, pattern] of source.matchAll(/\{ROUTE_\w+,\s*"([^"]+)"/g)) served.add(pattern);
    for (const [, pattern] of source.matchAll(/\.pattern = "([^"]+)"/g)) served.add(pattern);
  }
  for (const not of ['/assets/{name}', '/{nothing}']) served.delete(not);
  assert.deepEqual(Object.keys(document.paths).sort(), [...served].sort());
  const text = await read('docs/api.md');
  for (const one of served) if (one.startsWith('/api/')) assert.ok(text.includes(one), `${one} in docs/api.md`);
});

describe('each answer matches the description', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let outpost;
  let vendor;
  let view;

  // Requests an address, compares the answer with the description of its status, and returns it.
  async function ask(address, options) {
    const template = templateOf(address);
    assert.ok(template, `${address} is described`);
    const answer = await outpost.get(address, { timeout: 60_000, ...options });
    const { responses } = document.paths[template].get;
    const described = responses[answer.status];
    assert.ok(described, `${address}: ${answer.status} is described`);
    const { content } = resolve(described);
    if (!content) {
      assert.equal(answer.text, '', address);
      return answer;
    }
    const type = answer.headers['content-type'].split(';')[0];
    assert.ok(content[type], `${address}: ${type} is described`);
    if (!type.endsWith('json')) return answer;
    const at = described.$ref ? [...described.$ref.slice(2).split('/')] : ['paths', template, 'get', 'responses', String(answer.status)];
    const validate = ajv.getSchema(pointer(...at, 'content', type, 'schema'));
    assert.ok(validate(answer.json), `${address}: ${JSON.stringify(validate.errors?.slice(0, 5), null, 1)}\n${answer.text.slice(0, 2000)}`);
    if (!address.includes('format=')) assert.deepEqual([...new Set(undescribed(answer.json, [validate.schema]))], [], `${address}: undescribed fields`);
    return answer;
  }

  before(async () => {
    [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    outpost = await Outpost.start({
      rig, issuer,
      accelerators: [
        { name: 'npu', title: 'NPU', vendor: 'V', level: 'L2', links: { docs: 'https://v.example/docs' }, oncall: ['alice'],
          source: { git_url: 'https://git.example/npu.git', branch: 'main' },
          triggers: { pull_request: {}, push: { branches: ['main'] }, schedule: ['0 2 * * *'] }, tests: { must_pass: ['model/m1'] }, runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }],
          platform: { integration: 'out-of-tree', device: 'npu', summary: 'An NPU', extension: { package: 'torch_npu', import: 'torch_npu', autoload: false, url: 'https://v.example' }, versions: ['8.2'],
            install: [{ build: 'stable', torch: '2.9.1', os: 'linux', package: 'pip', platform: '8.2', language: 'python', commands: ['pip install torch'], note: 'a note' }],
            prepare: [{ title: 'Driver', text: 'Install it.', commands: ['./install'], url: 'https://v.example/driver' }], get_started: { text: 'Run it', code: 'import torch\nimport torch_npu\ntorch.ones(1, device="npu")' }, help: [{ title: 'Forum', url: 'https://v.example/help' }] } },
        { name: 'farm', title: 'Farm', level: 'L2', triggers: { pull_request: {} }, runners: [{ name: 'farm', pull: {} }] },
      ],
    });
    const tests = [...Array(5)].map((_, i) => ({ suite: i === 4 ? 'benchmark' : 'model', name: `m${i}`, status: i ? 'PASS' : 'FAIL', duration: 1.5, dtype: 'bf16', message: 'no', trace: 'a\nb', log_url: 'https://v.example/log', file: 'aten/a.cpp', line: 3, number: { value: 3.5, unit: 'tokens/s' } }));
    vendor = startDispatchVendor({ rigUrl: rig.url, tokenUrl: issuer.tokenUrl, callbackUrl: `${outpost.url}/github/callback`, repository: 'Ascend/pytorch', script: [{ workflow: 'npu', job: 'test', tests }] });
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 7 })));
    await rig.deliver('push', push({ after: SHA }));
    view = await outpost.waitForApi('pulls/7', (one) => one.verdicts.length === 5, { timeout: 60_000 });
    await outpost.waitForApi(`commits/${SHA}`, (one) => one.verdicts.length === 5, { timeout: 60_000 });
    const authorization = `Bearer ${await vendor.token()}`;
    const put = await outpost.request('PUT', `/api/v1/jobs/${view.accelerators.find(({ name }) => name === 'npu').jobs[0].id}/log`, { headers: { authorization }, body: 'a line\n' });
    assert.equal(put.status, 200);
    const report = { schema: 1, environment: { accelerator: 'npu', device: 'NPU 1', os: 'Ubuntu 22.04', torch: '2.9.1', extension: { name: 'torch_npu', version: '1' } }, tests: [{ suite: 'model', name: 'm9', status: 'PASS' }] };
    const sent = await outpost.request('PUT', `/api/v1/jobs/${(await outpost.api(`commits/${SHA}`)).accelerators[0].jobs[0].id}/report`, { headers: { authorization }, body: JSON.stringify(report) });
    assert.equal(sent.status, 200, sent.text);
    const self = await outpost.request('POST', '/github/callback', { headers: { authorization }, body: JSON.stringify({ event_type: 'nightly', delivery_id: SHA, payload: {},
      workflow: { schema_version: '1', status: 'completed', conclusion: 'failure', name: 'nightly', job_name: 'all', run_id: '77', run_attempt: 1, tests } }) });
    assert.equal(self.status, 200, self.text);
  });

  after(async () => {
    await vendor?.stop();
    await outpost?.close();
    await Promise.all([issuer?.close(), rig?.close()]);
  });

  test('200 answers match', async () => {
    const { id } = view.accelerators.find(({ name }) => name === 'npu').jobs[0];
    const asked = {
      '/api/v1/dashboard': ['/api/v1/dashboard'],
      '/api/v1/pulls/{n}': ['/api/v1/pulls/7', '/api/v1/pulls/7?limit=1'],
      '/api/v1/commits/{sha}': [`/api/v1/commits/${SHA}`],
      '/api/v1/accelerators': ['/api/v1/accelerators'],
      '/api/v1/accelerators/{name}': ['/api/v1/accelerators/npu', '/api/v1/accelerators/farm'],
      '/api/v1/accelerators/{name}/jobs': ['/api/v1/accelerators/npu/jobs', '/api/v1/accelerators/npu/jobs?limit=1'],
      '/api/v1/accelerators/{name}/numbers': ['/api/v1/accelerators/npu/numbers', '/api/v1/accelerators/npu/numbers?limit=1&days=7'],
      '/api/v1/jobs/{id}': [`/api/v1/jobs/${id}`, `/api/v1/jobs/${id}?limit=2`, ...['outpost', 'junit', 'ctrf'].map((format) => `/api/v1/jobs/${id}?format=${format}`)],
      '/api/v1/jobs/{id}/log': [`/api/v1/jobs/${id}/log`],
      '/api/v1/nightly': ['/api/v1/nightly', '/api/v1/nightly?limit=1&days=3'],
      '/api/v1/platforms': ['/api/v1/platforms'],
      '/api/v1/platforms/{name}': ['/api/v1/platforms/npu'],
      '/api/v1/known': ['/api/v1/known'],
      '/api/crcr/level-status': ['/api/crcr/level-status'],
      '/api/v1/status': ['/api/v1/status'],
      '/api/v1/events': [],
      '/badge/{file}': ['/badge/npu.svg'],
      '/feed.xml': ['/feed.xml'],
      '/healthz': ['/healthz'],
      '/readyz': ['/readyz'],
      '/metrics': ['/metrics'],
    };
    assert.deepEqual(Object.keys(asked).sort(), Object.keys(document.paths).sort(), 'the test requests each path');
    for (const address of Object.values(asked).flat()) assert.equal((await ask(address)).status, 200, address);
  });

  test('304 answers match', async () => {
    const { id } = view.accelerators.find(({ name }) => name === 'npu').jobs[0];
    for (const address of ['/api/v1/dashboard', '/api/v1/pulls/7', `/api/v1/commits/${SHA}`, '/api/v1/accelerators', '/api/v1/accelerators/npu', '/api/v1/accelerators/npu/jobs', '/api/v1/accelerators/npu/numbers',
      `/api/v1/jobs/${id}`, '/api/v1/nightly', '/api/v1/platforms', '/api/v1/platforms/npu', '/api/v1/known']) {
      await until(async () => {
        const { headers: { etag } } = await ask(address);
        return (await ask(address, { headers: { 'if-none-match': etag } })).status === 304;
      }, { timeout: 60_000, what: `${address} is 304` });
    }
  });

  test('400, 404 and range answers match', async () => {
    const { id } = view.accelerators.find(({ name }) => name === 'npu').jobs[0];
    for (const address of ['/api/v1/pulls/7?limit=0', `/api/v1/commits/${SHA}?status=x`, `/api/v1/jobs/${id}?cursor=x`, `/api/v1/jobs/${id}?format=x`, '/api/v1/accelerators/npu/jobs?limit=501', '/api/v1/accelerators/npu/numbers?days=x',
      '/api/v1/nightly?days=91', '/api/v1/nightly?state=x', '/api/v1/nightly?until=x', '/api/v1/events', '/api/v1/events?watch=x'])
      assert.equal((await ask(address)).status, 400, address);
    for (const address of ['/api/v1/pulls/999', '/api/v1/pulls/x', `/api/v1/commits/${'e'.repeat(40)}`, '/api/v1/commits/x', '/api/v1/accelerators/none', '/api/v1/accelerators/none/jobs', '/api/v1/accelerators/none/numbers', '/api/v1/jobs/999', '/api/v1/jobs/x',
      '/api/v1/jobs/999/log', '/api/v1/platforms/none', '/badge/none.svg'])
      assert.equal((await ask(address)).status, 404, address);
    const log = await ask(`/api/v1/jobs/${id}/log`, { headers: { range: 'bytes=2-3' } });
    assert.deepEqual([log.status, log.text], [206, 'li']);
    assert.equal((await ask(`/api/v1/jobs/${id}/log`, { headers: { range: 'bytes=99-' } })).status, 416);
  });
});
