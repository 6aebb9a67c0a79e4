// Report files in a vendor's shell: the schema and outpostctl agree, and one PUT sends a report.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { OUTPOSTCTL } from './lib/outpost.mjs';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const reports = path.join(root, 'tests/data/reports');
const notBuilt = existsSync(OUTPOSTCTL) ? false : 'outpostctl is not built';

const readJson = async (file) => JSON.parse(await fs.readFile(file, 'utf8'));

// Without the caller's environment variables.
async function ctl(args, env = {}) {
  const child = spawn(OUTPOSTCTL, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const text = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) child[stream].setEncoding('utf8').on('data', (data) => { text[stream] += data; });
  const [code] = await once(child, 'close');
  return { code, ...text };
}

describe('docs/report.schema.json', () => {
  let validate;
  let cases;

  before(async () => {
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true });
    validate = ajv.compile(await readJson(path.join(root, 'docs/report.schema.json')));
    cases = await readJson(path.join(reports, 'outpost-cases.json'));
  });

  test('it accepts the examples', async () => {
    assert.equal(validate(await readJson(path.join(reports, 'outpost.json'))), true, JSON.stringify(validate.errors));
    const page = await fs.readFile(path.join(root, 'docs/report.md'), 'utf8');
    const examples = [...page.matchAll(/```json\n(\{"schema"[^]*?)```/g)].map(([, text]) => JSON.parse(text));
    assert.ok(examples.length > 0);
    for (const example of examples) assert.equal(validate(example), true, JSON.stringify(validate.errors));
  });

  // docs/report-examples, which vendors begin with.
  test('it and outpostctl accept the complete examples without a hint', async () => {
    const folder = path.join(root, 'docs/report-examples');
    const names = await fs.readdir(folder);
    const page = await fs.readFile(path.join(root, 'docs/report.md'), 'utf8');
    const systems = new Set();
    assert.ok(names.length >= 4);
    for (const name of names) {
      const file = path.join(folder, name);
      const example = await readJson(file);
      assert.equal(validate(example), true, `${name}: ${JSON.stringify(validate.errors)}`);
      assert.ok(page.includes(`(report-examples/${name})`), `${name} is not shown`);
      if (name.startsWith('models-')) systems.add(example.environment.os);
      if (notBuilt) continue;
      const { code, stdout, stderr } = await ctl(['report', 'validate', file, '--json']);
      assert.equal(code, 0, stderr);
      const summary = JSON.parse(stdout);
      assert.deepEqual([summary.format, summary.tests, summary.hints], ['outpost', example.tests.length, []], name);
    }
    assert.equal(systems.size, 2);
  });

  test('it agrees with the parser on the table of documents', () => {
    assert.ok(cases.length > 100);
    for (const { what, document, error } of cases) assert.equal(validate(document), error === undefined, `${what}: ${JSON.stringify(validate.errors)}`);
  });

  test('outpostctl accepts the samples of every format', { skip: notBuilt }, async () => {
    for (const name of await fs.readdir(reports)) {
      if (name === 'outpost-cases.json') continue;
      const { code, stderr } = await ctl(['report', 'validate', path.join(reports, name)]);
      assert.equal(code, 0, stderr);
    }
  });
});

describe('outpostctl report', { skip: notBuilt }, () => {
  let dir;
  let server;
  let url;
  const seen = [];
  let answer;

  before(async () => {
    dir = await fs.mkdtemp(path.join(os.tmpdir(), 'report-'));
    server = http.createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      seen.push({ method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${server.address().port}`;
  });
  after(async () => {
    server?.close();
    await fs.rm(dir, { recursive: true, force: true });
  });

  const write = async (name, text) => {
    const file = path.join(dir, name);
    await fs.writeFile(file, text);
    return file;
  };
  const validate = (...args) => ctl(['report', 'validate', ...args]);

  test('validate prints a summary', async () => {
    const { code, stdout } = await validate(path.join(reports, 'outpost.json'));
    assert.equal(code, 0);
    assert.match(stdout, /outpost\.json: Outpost report, 4 tests\n/);
    assert.match(stdout, /✓ +1 passed\n +✗ +1 failed\n +• +1 measured\n +– +1 skipped\n/);
    assert.match(stdout, /✗ unit\/test_add\n +1 != 2\n/);
    assert.match(stdout, /device +Ascend 910B\n/);
    assert.doesNotMatch(stdout, /hint|\x1b/);
  });

  test('validate --json prints the counts', async () => {
    const { code, stdout } = await validate(path.join(reports, 'pytest.xml'), '--json');
    const summary = JSON.parse(stdout);
    assert.equal(code, 0);
    assert.deepEqual(summary.counts, { FAIL: 4, ERROR: 2, MISS: 0, PASS: 5, DONE: 0, SKIP: 2 });
    assert.deepEqual([summary.ok, summary.format, summary.tests, summary.cut, summary.environment, summary.red.length], [true, 'junit', 13, 0, null, 6]);
    assert.match(summary.hints[0], /'pytest' is not one of build, unit, model, benchmark or integration/);
  });

  test('validate gives hints for duplicates, cut cases, no passed test and no environment', async () => {
    const test_ = { suite: 'unit', name: 'a', status: 'SKIP' };
    const { hints } = JSON.parse((await validate(await write('hints.json', JSON.stringify({ schema: 1, cut: 2, tests: [test_, test_, { ...test_, dtype: 'bf16' }] })), '--json')).stdout);
    assert.equal(hints.length, 4);
    assert.match(hints[0], /^1 entries have the same name as another, such as 'unit\/a'/);
    assert.match(hints[1], /^2 cases are cut/);
    assert.match(hints[2], /^no test passed/);
    assert.match(hints[3], /^no environment/);
  });

  test('validate names the place of an error and exits with 1', async () => {
    const file = await write('wrong.json', '{"schema":1,"tests":[{"suite":"unit","name":"a","status":"OK"}]}');
    const plain = await validate(file);
    assert.deepEqual([plain.code, plain.stdout], [1, '']);
    assert.equal(plain.stderr, `${file}: tests[0].status must be FAIL, ERROR, MISS, PASS, DONE or SKIP\n`);
    const json = await validate(file, '--json');
    assert.equal(json.code, 1);
    assert.equal(JSON.parse(json.stdout).ok, false);
    assert.match((await validate(await write('cut.xml', '<testsuite>\n<testcase name="a"/>'))).stderr, /cut\.xml: line 2: not valid XML: .*was the file cut off\?/);
    assert.match((await validate(await write('empty', ''))).stderr, /empty: line 1: the report is empty/);
    assert.match((await validate(path.join(dir, 'absent'))).stderr, /absent: No such file/);
    assert.match((await validate('--format', 'ctrf', path.join(reports, 'gtest.xml'))).stderr, /gtest\.xml: line 1: not valid JSON/);
  });

  test('validate prints no control characters of a report', async () => {
    const file = await write('hostile.json', JSON.stringify({ schema: 1, environment: { device: 'x\u001b[2Jy' }, tests: [{ suite: 's\u001b[31m', name: 'n\u009b\u202e', status: 'FAIL', message: '\u001b]0;title\u0007' }] }));
    const { code, stdout } = await validate(file);
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u202e]/);
  });

  test('wrong usage exits with 2', async () => {
    for (const [wrong, ...args] of [
      ['', 'validate'], ["unexpected argument 'b'", 'validate', 'a', 'b'], ['--format tap: must be one of junit, ctrf, outpost', 'validate', '--format', 'tap', 'a'], ["unexpected argument '--what'", 'validate', '--what', 'a'],
      ['', 'push', 'a'], ['--job 0: must be a whole number, 1 or more', 'push', '--job', '0', 'a'], ['--job x: must be a whole number, 1 or more', 'push', '--job', 'x', 'a'], ['', 'push', '--job', '1'],
    ]) {
      const { code, stderr } = await ctl(['report', ...args]);
      assert.equal(code, 2, args.join(' '));
      const message = wrong ? `outpostctl: ${wrong}\n` : '';
      assert.equal(stderr.slice(0, message.length), message);
      assert.match(stderr.slice(message.length), /^Usage: outpostctl .*report /);
    }
  });

  test('push sends the file unchanged', async () => {
    const file = path.join(reports, 'outpost.json');
    answer = { status: 200, body: { ok: true, tests: 4, cut: 0 } };
    const { code, stdout, stderr } = await ctl(['report', 'push', '--job', '42', file, '--url', `${url}/`], { OUTPOST_TOKEN: 'secret-token' });
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'job 42: 4 tests\n');
    const { method, url: target, headers, body } = seen.at(-1);
    assert.deepEqual([method, target, headers.authorization, headers['content-type']], ['PUT', '/api/v1/jobs/42/report', 'Bearer secret-token', 'application/json']);
    assert.equal(body, await fs.readFile(file, 'utf8'));
  });

  test('push takes the address from the environment or the configuration, and the token from a file', async () => {
    const file = path.join(reports, 'gtest.xml');
    const token = await write('token', 'from-a-file\n');
    const config = await write('outpost.yml', `public_url: ${url}\nstate_dir: nowhere\n`);
    answer = { status: 200, body: { ok: true, tests: 7, cut: 3 } };
    for (const [args, env] of [[[], { OUTPOST_URL: url }], [['-c', config], {}]]) {
      const { code, stdout, stderr } = await ctl([...args, 'report', 'push', '--job', '7', '--token-file', token, file], { ...env, OUTPOST_TOKEN: 'not this one' });
      assert.equal(code, 0, stderr);
      assert.equal(stdout, 'job 7: 7 tests, 3 cut\n');
      assert.equal(seen.at(-1).headers.authorization, 'Bearer from-a-file');
      assert.equal(seen.at(-1).headers['content-type'], 'application/xml');
    }
  });

  test('push prints the reason of a refusal and sends no invalid report', async () => {
    const good = path.join(reports, 'outpost.json');
    const push = (env, ...args) => ctl(['-c', path.join(dir, 'absent.yml'), 'report', 'push', '--job', '1', ...args], env);
    const token = { OUTPOST_TOKEN: 'secret-token' };
    answer = { status: 409, body: { detail: 'job 1 has another report' } };
    assert.match((await push(token, good, '--url', url)).stderr, /job 1: job 1 has another report \(HTTP 409\)/);
    answer = { status: 503, body: { detail: 'busy' } };
    assert.match((await push(token, good, '--url', url)).stderr, /busy \(HTTP 503\); try again later/);
    const before_ = seen.length;
    for (const [result, why] of [
      [await push({}, good, '--url', url), /no token/],
      [await push({ OUTPOST_TOKEN: 'two words' }, good, '--url', url), /one word/],
      [await push({ OUTPOST_TOKEN: 'a\nX-Header: b' }, good, '--url', url), /one word/],
      [await push(token, good), /no address of the service: .*absent\.yml/],
      [await push(token, good, '--url', 'http://outpost.example.org'), /must be an https URL/],
      [await push(token, await write('bad.json', '{}'), '--url', url), /bad\.json: schema is missing/],
    ]) {
      assert.equal(result.code, 1);
      assert.match(result.stderr, why);
      assert.doesNotMatch(result.stderr, /secret-token/);
    }
    assert.equal(seen.length, before_);
  });
});
