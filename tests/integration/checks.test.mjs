// Check runs on GitHub: which ones exist at each level, the effect of labels, their conclusions, and that a crash or a lost
// answer never makes two for one job.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { startIssuer } from '../github/oidc.mjs';
import { WAIT_MS } from '../github/patience.mjs';
import { pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startDispatchVendor, startWebhookVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const RUNS = `/repos/${UPSTREAM}/check-runs`;
const CREATE = { method: 'POST', path: RUNS };

const one = (status, name, more = {}) => ({ suite: 'model', name, status, duration: 1, ...more });
const job = (conclusion, tests, more = {}) => ({ workflow: 'ci', job: 'test', conclusion, tests, ...more });
const PASSES = job('success', [one('PASS', 'llama3')]);
const FAILS = job('failure', [one('FAIL', 'Qwen', { message: 'expected 1 | got 2 @pytorch/owners <b>' })]);

function device(name, level, repository = `vendor/${name}`) {
  return { name, title: name.toUpperCase(), level, triggers: { pull_request: {}, push: { branches: ['main'] } }, runners: [{ name: 'ci', github: { repository } }] };
}

class Stage {
  vendors = [];
  number = 100;

  async start({ accelerators, scripts, config = {}, secrets, more = [] }) {
    [this.rig, this.issuer] = await Promise.all([startRig({ repositories: [UPSTREAM, ...Object.keys(scripts)].map((name) => ({ name })) }), startIssuer()]);
    this.outpost = await Outpost.start({ rig: this.rig, issuer: this.issuer, accelerators: [...accelerators, ...more], secrets,
      config: { comment: { enabled: false }, ...config } });
    for (const [repository, script] of Object.entries(scripts))
      this.vendors.push(startDispatchVendor({ rigUrl: this.rig.url, tokenUrl: this.issuer.tokenUrl,
        callbackUrl: `${this.outpost.url}/github/callback`, repository, script }));
  }

  async close() {
    await Promise.all(this.vendors.map((vendor) => vendor.stop()));
    await this.outpost?.close();
    await Promise.all([this.issuer?.close(), this.rig?.close()]);
  }

  async send(action, pull, options) {
    const { status_code: code } = await this.rig.deliver('pull_request', pullRequestOf(action, pull, options));
    assert.equal(code, 202);
  }

  async open(options = {}) {
    const pull = this.rig.openPull(UPSTREAM, { number: ++this.number, ...options });
    await this.send('opened', pull, { labels: options.labels });
    return pull;
  }

  // The newest check run of each name, as GitHub shows them: {name: {status, conclusion, …}}.
  shown(pull) {
    return Object.fromEntries(this.rig.checkRuns(UPSTREAM, pull.headSha).sort((a, b) => a.id - b.id).map((run) => [run.name, run]));
  }

  wait(pull, fits, what) {
    return until(() => { const shown = this.shown(pull); return fits(shown) && shown; }, { timeout: 60_000, what });
  }

  writes(after = 0) {
    return this.rig.requests({ after }).filter(({ method, path }) => method !== 'GET' && path.startsWith(RUNS));
  }

  get lastSeq() { return this.rig.requests().at(-1)?.seq ?? 0; }
}

const GREEN = 'crcr/vendor/green/ci/test';
const RED = 'crcr/vendor/red/ci/test';
const LABELLED = 'crcr/vendor/labelled/ci/test';
const LAB = 'outpost/lab-chip/lab/suite';
const isWhole = (runs) => [GREEN, RED, LAB, 'outpost'].every((name) => runs[name]?.conclusion);

describe('check runs', { skip: notBuilt }, () => {
  const stage = new Stage();
  let lab;

  before(async () => {
    lab = await startWebhookVendor({ secret: SECRET, script: [job('success', [one('PASS', 'bert')], { workflow: 'lab', job: 'suite' })] });
    await stage.start({
      accelerators: [device('green', 'L4'), device('red', 'L4'), device('labelled', 'L3'), device('shown', 'L2'), device('silent', 'L1')],
      more: [{ name: 'lab-chip', title: 'Lab Chip', level: 'L4', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
      secrets: { 'lab-chip': { hook: SECRET } },
      scripts: { 'vendor/green': [PASSES], 'vendor/red': [FAILS], 'vendor/labelled': [FAILS], 'vendor/shown': [FAILS], 'vendor/silent': [FAILS] },
    });
  });
  after(async () => { await stage.close(); await lab?.stop(); });
  afterEach(() => stage.rig.clearFaults());

  test('L4 has one check run per job, L3 only with a label, L2 and L1 none', async () => {
    const pull = await stage.open();
    const shown = await stage.wait(pull, isWhole);
    assert.deepEqual(Object.keys(shown).sort(), [GREEN, RED, 'outpost', 'outpost/lab-chip/lab/suite'].sort());
    assert.deepEqual([shown[GREEN].conclusion, shown[RED].conclusion, shown['outpost/lab-chip/lab/suite'].conclusion], ['success', 'failure', 'success']);
    assert.match(shown[GREEN].externalId, new RegExp(`^\\d+:${pull.number}$`));
    const view = await stage.outpost.api(`pulls/${pull.number}`);
    const red = view.accelerators.find(({ name }) => name === 'red').jobs[0];
    assert.equal(shown[RED].detailsUrl, `${stage.outpost.url}/jobs/${red.id}`);
    assert.equal(shown[RED].output.title, '1 failure, not classified');
    assert.match(shown[RED].output.summary, /- ✗ `model\/Qwen`: `expected 1 \| got 2 @pytorch\/owners <b>` · UNCLASSIFIED/);
    assert.match(shown[RED].output.summary, /`@\S+ retest red`/);
    const verdict = shown.outpost;
    assert.deepEqual([verdict.status, verdict.conclusion, verdict.externalId], ['completed', 'neutral', `verdict:${pull.number}`]);
    const data = JSON.parse(/^```json\n(.*)\n```/s.exec(verdict.output.text)[1]);
    assert.deepEqual([data.head_sha, data.complete, data.verdict], [pull.headSha, true, 'unknown'], 'an unclassified failure does not pass');
    assert.ok(!data.accelerators.some(({ name }) => name === 'silent'));
  });

  for (const when of ['before', 'after']) {
    test(`an L3 label ${when} the run makes a check run`, async () => {
      const label = 'ciflow/crcr/labelled';
      const pull = await stage.open(when === 'before' ? { labels: [label] } : {});
      if (when === 'after') {
        await stage.wait(pull, (runs) => runs.outpost);
        assert.equal(stage.shown(pull)[LABELLED], undefined);
        await stage.send('labeled', pull, { label });
      }
      const shown = await stage.wait(pull, (runs) => runs[LABELLED]?.conclusion);
      assert.equal(shown[LABELLED].conclusion, 'neutral', 'L3 never fails');
      assert.equal(shown[LABELLED].output.title, '1 failure, not classified');
    });
  }

  test('an unchanged check run is not written again', async () => {
    const pull = await stage.open();
    await stage.wait(pull, isWhole);
    const seq = stage.lastSeq;
    await stage.send('labeled', pull, { label: 'unrelated' });
    const other = await stage.open(); // its check runs are written after those that the label would cause
    await stage.wait(other, (runs) => runs.outpost);
    const ids = stage.rig.checkRuns(UPSTREAM, pull.headSha).map(({ id }) => String(id));
    assert.deepEqual(stage.writes(seq).filter(({ path, body }) => ids.includes(path.split('/').at(-1)) || body.includes(pull.headSha)), []);
  });

  for (const [what, fault] of [['is lost', { kind: 'reset', when: 'after' }], ['is cut', { kind: 'truncate' }], ['is a server error', { kind: 'status', status: 502, when: 'after' }]]) {
    test(`a create whose answer ${what} makes no second check run`, async () => {
      stage.rig.fault({ ...fault, ...CREATE });
      const pull = await stage.open();
      await stage.wait(pull, isWhole);
      const names = stage.rig.checkRuns(UPSTREAM, pull.headSha).map(({ name }) => name);
      assert.deepEqual(names.sort(), [...new Set(names)].sort());
    });
  }

  test('after kill -9 during a create, Outpost finds the check run', async () => {
    const fault = stage.rig.fault({ kind: 'slow', ms: 3000, when: 'after', ...CREATE });
    const pull = await stage.open();
    await until(() => fault.struck > 0 && stage.rig.checkRuns(UPSTREAM, pull.headSha).length > 0, { timeout: 15_000 });
    await stage.outpost.kill();
    stage.rig.clearFaults();
    await stage.outpost.spawn();
    await stage.wait(pull, isWhole);
    const names = stage.rig.checkRuns(UPSTREAM, pull.headSha).map(({ name }) => name);
    assert.deepEqual(names.sort(), [...new Set(names)].sort());
  });

  test('a push has no check run', async () => {
    const sent = push({ before: 'b'.repeat(40) });
    await stage.rig.deliver('push', sent);
    await until(async () => (await stage.outpost.api(`commits/${sent.after}`)).verdicts.length >= 4, { timeout: 15_000 });
    const pull = await stage.open();
    await stage.wait(pull, (runs) => runs.outpost);
    assert.equal(stage.writes().filter(({ body }) => body?.includes(sent.after)).length, 0);
  });

  test('GitHub saw no violation', () => assert.deepEqual(stage.rig.violations(), []));
});

describe('check runs of long jobs', { skip: notBuilt }, () => {
  const stage = new Stage();
  const held = (script) => script.map((step) => ({ ...step, hold: WAIT_MS }));

  before(() => stage.start({
    accelerators: [device('slow', 'L4'), device('labelled', 'L3')],
    scripts: { 'vendor/slow': held([PASSES]), 'vendor/labelled': held([PASSES]) },
  }));
  after(() => stage.close());
  const SLOW = 'crcr/vendor/slow/ci/test';

  test('a check run is in progress until the end or a newer head, and a label during the run makes one', async () => {
    let pull = await stage.open();
    assert.equal((await stage.wait(pull, (runs) => runs[SLOW]))[SLOW].status, 'in_progress');
    const old = pull;
    pull = stage.rig.updatePull(UPSTREAM, pull.number, { headSha: 'e'.repeat(40) });
    await stage.send('synchronize', pull, { before: old.headSha });
    const closed = await stage.wait(old, (runs) => runs[SLOW].status === 'completed');
    assert.equal(closed[SLOW].conclusion, 'cancelled');
    await stage.wait(pull, (runs) => runs[SLOW]);
    assert.equal(stage.shown(pull)[LABELLED], undefined);

    const label = 'ciflow/crcr/labelled';
    await stage.send('labeled', pull, { label });
    await stage.wait(pull, (runs) => runs[LABELLED]?.status === 'in_progress');
    await stage.send('unlabeled', pull, { label, labels: [] });
    const after = await stage.wait(pull, (runs) => runs[LABELLED].status === 'completed');
    assert.deepEqual([after[LABELLED].conclusion, after[LABELLED].output.title], ['neutral', 'Not asked for any more']);
    await stage.send('closed', pull);
    const ended = await stage.wait(pull, (runs) => runs[SLOW].status === 'completed');
    assert.equal(ended[SLOW].conclusion, 'neutral');
    assert.deepEqual(stage.rig.violations(), []);
  });
});

describe('check runs as in CRCR', { skip: notBuilt }, () => {
  const stage = new Stage();
  const places = Array.from({ length: 120 }, (_, i) => one('FAIL', `case ${i}`, { message: `${i}`, file: `test/test_${i}.py`, line: i + 1 }));

  before(() => stage.start({
    accelerators: [device('labelled', 'L3'), device('many', 'L4')], config: { checks: { l3: 'failure' } },
    scripts: { 'vendor/labelled': [FAILS], 'vendor/many': [job('failure', places)] },
  }));
  after(() => stage.close());

  test('a check run at L3 fails if the operator allows it', async () => {
    const pull = await stage.open({ labels: ['ciflow/crcr/labelled'] });
    const shown = await stage.wait(pull, (runs) => runs[LABELLED]?.conclusion);
    assert.equal(shown[LABELLED].conclusion, 'failure');
  });

  test('120 annotations are sent in three requests without a duplicate', async () => {
    const pull = await stage.open();
    const name = 'crcr/vendor/many/ci/test';
    const shown = await stage.wait(pull, (runs) => runs.outpost && runs[name]?.conclusion);
    const sent = stage.writes().map(({ path, body }) => ({ path, ...JSON.parse(body) })).filter((body) => body.name === name && body.external_id.endsWith(`:${pull.number}`) && body.output.annotations);
    assert.deepEqual(sent.slice(0, 3).map(({ output }) => output.annotations.length), [50, 50, 20]);
    const places = shown[name].output.annotations.map(({ path, start_line: line }) => `${path}:${line}`);
    assert.deepEqual([places.length, new Set(places).size], [120, 120]);
    assert.deepEqual(stage.rig.violations(), []);
  });
});

describe('a check run whose last write is unknown', { skip: notBuilt }, () => {
  const stage = new Stage();
  const UPDATE = { method: 'PATCH', path: `${RUNS}/{id}` };
  const LIST = { method: 'GET', path: `/repos/${UPSTREAM}/commits/{sha}/check-runs` };
  const PLACED = 'crcr/vendor/placed/ci/test';

  before(() => stage.start({
    accelerators: [device('red', 'L4'), device('placed', 'L4')],
    scripts: { 'vendor/red': [FAILS], 'vendor/placed': [job('failure', [one('FAIL', 'bert', { file: 'test/test_bert.py', line: 7 })])] },
  }));
  after(() => stage.close());
  afterEach(() => stage.rig.clearFaults());

  // A check run with annotations is created again.
  for (const [what, red, name, strikes] of [['an update', 'Qwen', RED, (id) => ({ ...UPDATE, path: `${RUNS}/${id}` })], ['a new check run with annotations', 'bert', PLACED, () => CREATE]]) {
    test(`${what} that a kill cuts off is written back to the former text if its text is out of date`, async () => {
      const pull = await stage.open();
      const first = await stage.wait(pull, (runs) => [RED, PLACED].every((each) => runs[each]?.conclusion === 'failure') && runs.outpost);
      const fault = stage.rig.fault({ kind: 'hang', when: 'after', ...strikes(first[name].id) });
      const added = await stage.outpost.ctl('--json', 'known', 'add', '--test', `model/${red}`, '--url', 'https://github.com/pytorch/pytorch/issues/1');
      await stage.wait(pull, (runs) => runs[name].conclusion === 'neutral' && fault.struck > 0);
      await stage.outpost.kill();
      stage.rig.clearFaults();
      for (const request of [CREATE, UPDATE, LIST]) stage.rig.fault({ kind: 'status', status: 500, count: 1000, ...request });
      await stage.outpost.spawn();
      await stage.outpost.ctl('known', 'remove', String(JSON.parse(added.stdout).id));
      await stage.outpost.waitForApi(`pulls/${pull.number}`, (view) => view.verdicts.every(({ attribution }) => attribution !== 'KNOWN'), { timeout: 20_000, what: 'the failure is no longer KNOWN' });
      stage.rig.clearFaults();
      const shown = await stage.wait(pull, (runs) => runs[name].conclusion === 'failure');
      assert.equal(shown[name].output.title, '1 failure, not classified');
    });
  }
});

describe('annotations whose answers are lost', { skip: notBuilt }, () => {
  const stage = new Stage();
  const places = Array.from({ length: 120 }, (_, i) => one('FAIL', `case ${i}`, { message: `${i}`, file: `test/test_${i}.py`, line: i + 1 }));
  const name = 'crcr/vendor/many/ci/test';

  before(() => stage.start({ accelerators: [device('many', 'L4')], scripts: { 'vendor/many': [job('failure', places)] } }));
  after(() => stage.close());

  for (const [kind, skip] of [['reset', 0], ['reset', 1], ['close', 0], ['close', 1]]) {
    test(`${kind} after ${skip} good writes: each annotation arrives once`, async () => {
      const fault = stage.rig.fault({ kind, when: 'after', method: 'PATCH', path: `${RUNS}/{id}`, skip });
      const pull = await stage.open();
      const shown = await stage.wait(pull, (runs) => runs.outpost && runs[name]?.conclusion);
      const found = shown[name].output.annotations.map(({ path }) => path);
      assert.deepEqual([found.length, new Set(found).size, fault.struck], [120, 120, 1]);
      stage.rig.clearFaults();
    });
  }
});

describe('an App that may not write check runs', { skip: notBuilt }, () => {
  const stage = new Stage();

  before(() => stage.start({ accelerators: [device('green', 'L4')], scripts: { 'vendor/green': [PASSES] }, config: { comment: { enabled: true } } }));
  after(() => stage.close());

  test('logs the refusal once and still writes the comment', async () => {
    stage.rig.fault({ kind: 'status', status: 403, path: `/repos/${UPSTREAM}/commits/{sha}/check-runs`, count: 1000 });
    const pulls = [await stage.open(), await stage.open()];
    for (const pull of pulls)
      await until(() => stage.rig.comments(UPSTREAM, pull.number).length === 1, { timeout: 15_000 });
    await stage.outpost.waitForLog({ ev: 'checks_refused' });
    assert.equal(stage.outpost.log.filter(({ fields }) => fields.ev === 'checks_refused').length, 1);
    assert.equal(stage.writes().length, 0);
  });
});
