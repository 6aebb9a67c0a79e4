// Exports: a badge for a README, the feed of regressions, a job's results as JUnit, CTRF or Outpost JSON.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { validate as ctrfValidate } from 'ctrf';
import { fakeSha, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, workflowOf } from '../github/vendors.mjs';
import { OUTPOSTCTL, Outpost, notBuilt, until } from './lib/outpost.mjs';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const CHIP = 'Ascend/pytorch';
const QUIET = 'torch-spyre/torch-spyre';
const HOSTILE = 'Chip </title><script>&"\']]>';
const triggers = { push: { branches: ['main'] } };
const accelerators = [
  { name: 'chip', title: HOSTILE, level: 'L2', trust: 'anyone', triggers, runners: [{ name: 'ci', github: { repository: CHIP } }] },
  { name: 'idle', title: 'Idle', level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'ci', github: { repository: 'intel/idle' } }] },
  { name: 'quiet', title: 'Quiet', level: 'L1', trust: 'anyone', triggers, runners: [{ name: 'ci', github: { repository: QUIET } }] },
];
const tests = (status) => [
  { suite: 'model', name: 'llama3 <b>&"\']]>\u202e|@everyone', status, dtype: 'bf16', duration: 12.5, message: 'expected 1 < 2 & "3"', trace: 'a\n]]>\tb', file: 'test/a.py', line: 3 },
  { suite: 'model', name: 'llama3 <b>&"\']]>\u202e|@everyone', status: 'PASS', dtype: 'fp32', number: { value: 31.2, unit: 'tokens/s' } },
  { suite: 'unit', name: 'lost', status: 'MISS', message: 'the machine\u0001\u001b[31m went away' },
];

// Throws if the XML is not well-formed, by an independent parser.
const wellFormed = (text) => execFileSync('python3', ['-c', 'import sys, xml.dom.minidom; xml.dom.minidom.parseString(sys.stdin.buffer.read())'], { input: text, stdio: ['pipe', 'ignore', 'inherit'] });

describe('badges, the feed and documents', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let token;
  let tip;
  let last; // the newest reported job

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({ rig, accelerators });
    token = (await outpost.ctl('token', 'issue', 'chip')).stdout.trim();
  });
  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  const pushed = async (name, status) => {
    const before_ = tip ?? fakeSha('before all');
    tip = fakeSha(name);
    await rig.deliver('push', push({ before: before_, after: tip, message: name }));
    const view = await outpost.waitForApi(`commits/${tip}`, (v) => v.accelerators.some((a) => a.name === 'chip' && a.dispatches.length > 0), { timeout: 60_000 });
    const id = view.accelerators.find((a) => a.name === 'chip').dispatches[0].id;
    const workflow = workflowOf({ workflow: 'ci', job: 'test', run_id: name, conclusion: status === 'PASS' ? 'success' : 'failure', tests: status === 'PASS' ? tests('PASS').slice(0, 2) : tests(status) }, 'completed');
    const answer = await post(`${outpost.url}/api/v1/dispatches/${id}/jobs`, token, workflow);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    last = answer.body.job;
  };
  const badge = (name) => outpost.get(`/badge/${name}.svg`);
  const title = ({ text }) => /<title>([^]*?)<\/title>/.exec(text)[1].replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

  test('a badge shows the state of an accelerator', async () => {
    assert.match(title(await badge('idle')), /^Idle: unknown$/);
    await pushed('good', 'PASS');
    await until(async () => /: passing 100 %$/.test(title(await badge('chip'))), { timeout: 60_000 });
    await pushed('bad', 'FAIL');
    await until(async () => /: failing since 1 min$/.test(title(await badge('chip'))), { timeout: 60_000 });
    const answer = await badge('chip');
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-type'], 'image/svg+xml; charset=utf-8');
    assert.equal(answer.headers['cache-control'], 'public, max-age=300');
    assert.match(title(answer), /^Chip <\/title><script>&"'\]\]>: failing/);
    assert.doesNotMatch(answer.text, /<script|\u202e/);
    wellFormed(answer.text);
    const again = await outpost.get('/badge/chip.svg', { headers: { 'if-none-match': answer.headers.etag } });
    assert.deepEqual([again.status, again.text], [304, '']);
  });

  test('the badge of an accelerator at L1 equals the badge of an unknown one', async () => {
    const [nobody, quiet, noSvg] = [await badge('nobody'), await badge('quiet'), await outpost.get('/badge/chip')];
    for (const answer of [nobody, quiet, noSvg]) {
      assert.equal(answer.status, 404);
      assert.equal(title(answer), 'accelerator: unknown');
    }
    assert.equal(nobody.text, quiet.text);
  });

  test('the feed has an entry when an accelerator turns red and when it is green again', async () => {
    const feed = async () => {
      const answer = await outpost.get('/feed.xml');
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['content-type'], 'application/atom+xml; charset=utf-8');
      wellFormed(answer.text);
      return { ...answer, entries: answer.text.split('<entry>').slice(1) };
    };
    const issue = `https://github.com/${CHIP}/issues/1`;
    const red = await until(async () => { const now = await feed(); return now.text.includes(issue) && now; }, { timeout: 60_000, what: 'the feed names the issue' });
    assert.equal(red.entries.length, 1);
    assert.match(red.entries[0], /is red on main<\/title>/);
    assert.ok(red.entries[0].includes(`${outpost.url}/commits/${tip}`));
    assert.match(red.entries[0], /Red: model\/llama3 /);
    assert.doesNotMatch(red.text, /<script|quiet/);
    const [, id] = /<id>(tag:127\.0\.0\.1,2026:red\/\d+)<\/id>/.exec(red.entries[0]);
    const same = await outpost.get('/feed.xml', { headers: { 'if-none-match': red.headers.etag } });
    assert.equal(same.status, 304);
    const bad = last;
    await pushed('mended', 'PASS');
    const green = await until(async () => { const now = await feed(); return now.entries.length === 2 && now; }, { timeout: 60_000 });
    assert.match(green.entries[0], /is green again on main<\/title>/);
    assert.ok(green.entries[1].includes(id), 'an entry keeps its id');
    await outpost.restart();
    assert.equal((await feed()).text, green.text);
    last = bad;
  });

  test('a job\'s results are exported in three formats', async () => {
    const schema = JSON.parse(await fs.readFile(path.join(root, 'docs/report.schema.json'), 'utf8'));
    const isReport = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema);
    const dir = await fs.mkdtemp(path.join(outpost.dir, 'out-'));
    const summaries = {};
    for (const format of ['outpost', 'junit', 'ctrf']) {
      const answer = await outpost.get(`/api/v1/jobs/${last}?format=${format}`);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['content-type'], `application/${format === 'junit' ? 'xml' : 'json'}; charset=utf-8`);
      assert.equal(answer.headers['content-disposition'], `attachment; filename="outpost-job-${last}-${format}.${format === 'junit' ? 'xml' : 'json'}"`);
      assert.equal(answer.headers['access-control-allow-origin'], '*');
      if (format === 'outpost') assert.ok(isReport(answer.json), JSON.stringify(isReport.errors));
      if (format === 'ctrf') assert.deepEqual(ctrfValidate(answer.json).errors ?? [], []);
      if (format === 'junit') wellFormed(answer.text);
      const page = await outpost.get(`/jobs/${last}?format=${format}`);
      assert.equal(page.text, answer.text);
      assert.equal((await outpost.get(`/api/v1/jobs/${last}?format=${format}`, { headers: { 'if-none-match': answer.headers.etag } })).status, 304);
      const file = path.join(dir, format);
      await fs.writeFile(file, answer.text);
      const child = await outpost.ctl('--json', 'report', 'validate', file);
      assert.equal(child.code, 0, child.stderr);
      summaries[format] = JSON.parse(child.stdout);
      assert.equal(summaries[format].format, format);
      assert.deepEqual([summaries[format].counts, summaries[format].red], [summaries.outpost.counts, summaries.outpost.red]);
    }
    assert.deepEqual(summaries.outpost.counts, { FAIL: 1, ERROR: 0, MISS: 1, PASS: 1, DONE: 0, SKIP: 0 });
  });

  test('an unknown format is 400, and an unknown job is 404', async () => {
    const wrong = await outpost.get(`/api/v1/jobs/${last}?format=tap`);
    assert.equal(wrong.status, 400);
    for (const word of ['format', 'outpost', 'junit', 'ctrf']) assert.ok(wrong.json.error.includes(word), wrong.json.error);
    assert.equal((await outpost.get('/api/v1/jobs/99999?format=junit')).status, 404);
  });
});
