// Machines that claim work by the protocol of docs/runner-protocol.md without outpost-runner: which machine gets which work,
// waiting claims and heartbeats, and the end of leases.
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Clock } from '../history/clock.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';

const UPSTREAM = 'pytorch/pytorch';
const LONG = { timeout: 15_000 };

// An accelerator with one pull runner. Each test has its own, so that it gets no work of another test.
const chip = (name, pull = {}, more = {}) => ({
  name, title: name, level: 'L2', runners: [{ name: 'farm', pull: { labels: [], max_parallel: 5, ...pull } }], triggers: { pull_request: { label: 'required' } }, ...more,
});

class Work {
  static next = 100;

  constructor(rig, outpost) {
    Object.assign(this, { rig, outpost });
  }

  // Opens a pull request that only this accelerator tests.
  async open(accelerator) {
    const number = Work.next++;
    const pull = this.rig.openPull(UPSTREAM, { number, labels: [`ciflow/crcr/${accelerator}`] });
    await this.deliver('opened', pull);
    return pull;
  }

  // Pushes a new head.
  async push(pull) {
    const next = this.rig.updatePull(UPSTREAM, pull.number, { headSha: randomBytes(20).toString('hex') });
    await this.deliver('synchronize', next, { before: pull.headSha });
    return next;
  }

  async deliver(action, pull, options) {
    assert.equal((await this.rig.deliver('pull_request', pullRequestOf(action, pull, options))).status_code, 202);
  }

  // Waits until the accelerator's part of /api/v1/pulls/N fits, and returns it.
  async of(pull, accelerator, fits) {
    const view = await this.outpost.waitForApi(`pulls/${pull.number}`, (json) => {
      const one = json.accelerators.find(({ name }) => name === accelerator);
      return one?.dispatches.length > 0 && fits(one, json);
    }, LONG);
    return view.accelerators.find(({ name }) => name === accelerator);
  }

  queued(pull, accelerator) {
    return this.of(pull, accelerator, ({ dispatches }) => dispatches[0].state === 'queued');
  }

  state(pull, accelerator, state) {
    return this.of(pull, accelerator, ({ dispatches }) => dispatches[0].state === state);
  }
}

const metric = async (outpost, name) => Number((await outpost.get('/metrics')).text.match(new RegExp(`^${name} (\\d+)$`, 'm'))[1]);
const waiting = (outpost, n, name = 'outpost_claims_waiting') => until(async () => await metric(outpost, name) === n, { what: `${name} is ${n}` });

describe('machines that claim work', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let work;
  const machine = (name, accelerator, options) => Puller.add(outpost, name, accelerator, options);

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({
      rig,
      accelerators: [
        ...['one', 'woken', 'again', 'back', 'cancelled', 'order', 'gone', 'mine', 'theirs', 'twice', 'crowd'].map((name) => chip(name)),
        chip('narrow', { max_parallel: 1 }),
        chip('silent', {}, { level: 'L1' }),
        chip('summary', {}, { visibility: 'summary' }),
        { ...chip('labels'), runners: [
          { name: 'big', pull: { labels: ['gpu', 'big'], max_parallel: 5 } }, { name: 'small', pull: { labels: ['gpu'], max_parallel: 5 } },
        ] },
      ],
      config: { comment: { enabled: false } },
    });
    work = new Work(rig, outpost);
  });

  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  test('a machine claims a lease, sends a heartbeat and reports the end', async () => {
    const npu = await machine('npu-1', 'one');
    assert.equal((await npu.claim()).status, 204);
    const pull = await work.open('one');
    await work.queued(pull, 'one');
    assert.match((await outpost.ctl('dispatches', '--pr', String(pull.number))).stdout, /one .*queued .*waits for a machine that has the runner's labels/);
    const { status, json: lease } = await npu.claim();
    assert.equal(status, 200);
    assert.deepEqual([lease.accelerator, lease.runner, lease.attempt, lease.lease_ms, lease.visibility, lease.run_id], ['one', 'farm', 1, 60_000, 'public', lease.dispatch_id]);
    const { change } = lease;
    assert.deepEqual([change.kind, change.repository, change.number, change.head_sha, change.base_ref, change.change_url],
      ['pull_request', UPSTREAM, pull.number, pull.headSha, 'main', `${outpost.url}/pulls/${pull.number}`]);
    assert.equal((await npu.claim()).status, 204); // another claim does not get the same work
    const running = await work.state(pull, 'one', 'running');
    assert.deepEqual(running.jobs.map(({ workflow, name, status: word }) => [workflow, name, word]), [['farm', 'tests', 'in_progress']]);
    const beat = await npu.renew(lease);
    assert.deepEqual([beat.status, beat.json.lease, beat.json.lease_ms], [200, 'active', 60_000]);
    const end = await npu.finish(lease, { tests: [{ suite: 'model', name: 'llama3', status: 'PASS' }] });
    assert.deepEqual([end.status, end.json.job], [200, lease.job_id]);
    const done = await work.state(pull, 'one', 'done');
    assert.deepEqual([done.jobs.length, done.jobs[0].conclusion, String(done.jobs[0].id)], [1, 'success', String(lease.job_id)]);
    assert.equal((await npu.claim()).status, 204);
    assert.notEqual((await npu.renew(lease)).json.lease, 'active');
  });

  test('a webhook wakes the claim that has waited longest', async () => {
    const [first, second] = await Promise.all([machine('first', 'woken'), machine('second', 'woken')]);
    const long = first.take({ wait: 30 });
    await waiting(outpost, 1);
    const cut = new AbortController();
    const other = second.claim({ wait: 30, signal: cut.signal }).catch(() => 'cut');
    await waiting(outpost, 2);
    const pull = await work.open('woken');
    const lease = await long;
    assert.equal(lease.change.number, pull.number);
    await waiting(outpost, 1);
    cut.abort();
    assert.equal(await other, 'cut');
    await waiting(outpost, 0); // a claim that disconnected does not count
    assert.equal((await first.finish(lease)).status, 200);
  });

  test('a machine that disconnected gets no work, and the next one does', async () => {
    const [left, stays] = await Promise.all([machine('left', 'gone'), machine('stays', 'gone')]);
    const cut = new AbortController();
    const lost = left.claim({ wait: 30, signal: cut.signal }).catch(() => 'cut');
    await waiting(outpost, 1);
    cut.abort();
    await lost;
    await waiting(outpost, 0);
    const pull = await work.open('gone');
    await work.queued(pull, 'gone');
    assert.equal((await stays.take()).change.number, pull.number);
  });

  test('a repeated claim_id gets the same lease, for a lost answer', async () => {
    const npu = await machine('npu-1', 'again');
    const pull = await work.open('again');
    await work.queued(pull, 'again');
    const id = randomUUID();
    const lease = await npu.take({ id });
    assert.deepEqual(await npu.take({ id }), lease);
    assert.equal((await npu.claim()).status, 204);
    // A second claim with the same id replaces the first.
    const other = randomUUID();
    const replaced = npu.claim({ id: other, wait: 30 });
    await waiting(outpost, 1);
    const cut = new AbortController();
    const replacing = npu.claim({ id: other, wait: 30, signal: cut.signal }).catch(() => 'cut');
    assert.equal((await replaced).status, 204);
    await waiting(outpost, 1);
    cut.abort();
    await replacing;
    assert.equal((await npu.finish(lease)).status, 200);
    assert.equal((await npu.claim({ id })).status, 204); // the ended lease is not repeated
  });

  test('a machine gets only work whose labels it has all', async () => {
    const [plain, small, big] = await Promise.all([
      machine('plain', 'labels', { labels: ['cpu'] }), machine('small', 'labels', { labels: ['gpu', 'x'] }), machine('big', 'labels', { labels: ['big', 'gpu'] }),
    ]);
    const pull = await work.open('labels');
    await work.of(pull, 'labels', ({ dispatches }) => dispatches.length === 2 && dispatches.every(({ state }) => state === 'queued'));
    assert.equal((await plain.claim()).status, 204);
    assert.equal((await small.take()).runner, 'small');
    assert.equal((await small.claim()).status, 204);
    assert.equal((await big.take()).runner, 'big');
  });

  test('max_parallel limits the leases over all machines', async () => {
    const [a, b] = await Promise.all([machine('a', 'narrow'), machine('b', 'narrow')]);
    const [one, two] = [await work.open('narrow'), await work.open('narrow')];
    await Promise.all([work.queued(one, 'narrow'), work.queued(two, 'narrow')]);
    const lease = await a.take();
    const held = b.take({ wait: 30 });
    await waiting(outpost, 1);
    assert.equal((await a.claim()).status, 204);
    assert.equal((await a.finish(lease)).status, 200); // frees a place and wakes the waiting claim
    assert.notEqual((await held).dispatch_id, lease.dispatch_id);
  });

  test('the newest change comes first, and a superseded one is never offered', async () => {
    const npu = await machine('npu-1', 'order');
    const pulls = [];
    for (let i = 0; i < 4; i++) {
      pulls.push(await work.open('order'));
      await work.queued(pulls[i], 'order');
    }
    const { headSha } = await work.push(pulls[1]);
    await work.of(pulls[1], 'order', (_, json) => json.head_sha === headSha);
    await work.deliver('closed', rig.updatePull(UPSTREAM, pulls[2].number, { state: 'closed' }));
    await work.state(pulls[2], 'order', 'cancelled');
    const got = [];
    for (let answer = await npu.claim(); answer.status === 200; answer = await npu.claim()) got.push(answer.json.change);
    assert.deepEqual(got.map(({ number }) => number), [pulls[1].number, pulls[3].number, pulls[0].number]);
    assert.equal(got[0].head_sha, headSha);
  });

  test('a cancel answers the waiting heartbeat', async () => {
    const npu = await machine('npu-1', 'cancelled');
    const pull = await work.open('cancelled');
    const lease = await npu.take();
    const beat = npu.renew(lease, { wait: 20 });
    await waiting(outpost, 1, 'outpost_heartbeats_waiting');
    const { headSha } = await work.push(pull);
    const { status, json } = await beat;
    assert.deepEqual([status, json.lease], [200, 'cancelled']);
    assert.ok(json.reason.length > 0);
    assert.equal((await npu.finish(lease, { conclusion: 'cancelled' })).status, 200);
    assert.equal((await npu.take()).change.head_sha, headSha);
  });

  test('work that a machine returns is queued again at once', async () => {
    const [a, b] = await Promise.all([machine('a', 'back'), machine('b', 'back')]);
    const pull = await work.open('back');
    const lease = await a.take();
    assert.equal((await b.giveBack(lease)).status, 404); // b does not have the lease
    const held = b.take({ wait: 30 });
    await waiting(outpost, 1);
    const answer = await a.giveBack(lease);
    assert.deepEqual([answer.status, answer.json], [200, { ok: true }]);
    const again = await held;
    assert.deepEqual([again.dispatch_id, again.attempt, again.change.number], [lease.dispatch_id, 2, pull.number]);
    assert.equal((await a.giveBack(lease)).status, 200); // a repeated return has no effect
    assert.equal((await a.renew(lease)).json.lease, 'lost');
    assert.equal((await b.renew(again)).json.lease, 'active');
    assert.equal((await a.giveBack('nosuchlease')).status, 404);
  });

  test("a machine cannot reach another accelerator's work", async () => {
    const [mine, theirs] = await Promise.all([machine('m', 'mine'), machine('m', 'theirs')]);
    const pull = await work.open('mine');
    await work.queued(pull, 'mine');
    assert.equal((await theirs.claim()).status, 204);
    const lease = await mine.take();
    assert.equal((await theirs.renew(lease)).json?.lease, 'lost');
    assert.equal((await theirs.giveBack(lease)).status, 404);
    const answer = await theirs.finish(lease);
    assert.ok([400, 403].includes(answer.status), answer.text);
    assert.equal((await mine.renew(lease)).json.lease, 'active');
    assert.equal((await mine.claim({ name: 'other' })).status, 403);
  });

  test('work at L1 has no job, and its end is accepted', async () => {
    const npu = await machine('npu-1', 'silent');
    await work.open('silent');
    const lease = await npu.take();
    assert.deepEqual([lease.job_id, lease.attempt], [null, 1]);
    const end = await npu.finish(lease);
    assert.deepEqual([end.status, end.json.status], [200, 'ignored']);
    assert.notEqual((await npu.renew(lease)).json.lease, 'active');
    assert.equal((await npu.claim()).status, 204);
  });

  test('a lease contains the visibility', async () => {
    const npu = await machine('npu-1', 'summary');
    await work.open('summary');
    assert.equal((await npu.take()).visibility, 'summary');
  });

  test('at most 16 claims of one machine wait', async () => {
    const npu = await machine('npu-1', 'crowd');
    const cut = new AbortController();
    const held = Array.from({ length: 16 }, () => npu.claim({ wait: 30, signal: cut.signal }).catch(() => 'cut'));
    await waiting(outpost, 16);
    const over = await npu.claim({ wait: 30 });
    assert.deepEqual([over.status, over.headers.get('retry-after')], [429, '30']);
    cut.abort();
    await Promise.all(held);
    await waiting(outpost, 0);
  });

  test('a wrong field is 400 with its name', async () => {
    const npu = await machine('npu-1', 'twice');
    const wrong = async (body, pattern) => {
      const answer = await npu.ask('POST', '/api/v1/runner/claim', body);
      assert.equal(answer.status, 400, answer.text);
      assert.match(answer.json.detail, pattern);
    };
    await wrong('{', /line 1/);
    await wrong({ name: 'npu-1' }, /claim_id/);
    await wrong({ name: 'npu-1', claim_id: 'a b' }, /claim_id/);
    await wrong({ name: 'npu-1', claim_id: 'a', labels: 'x' }, /labels/);
    await wrong({ name: 'npu-1', claim_id: 'a', labels: [], wait: 31 }, /wait/);
    const beat = await npu.renew('x', { wait: 21 });
    assert.deepEqual([beat.status, /wait/.test(beat.json.detail)], [400, true]);
    assert.equal((await npu.renew('%2e%2e')).status, 404);
    assert.equal((await npu.renew('nosuchlease')).json?.lease ?? 'lost', 'lost');
  });
});

describe('leases that expire', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let work;

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({ rig, accelerators: [chip('npu')], config: { comment: { enabled: false }, pull: { lease: '2s' } } });
    work = new Work(rig, outpost);
  });

  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  test('after three expired leases of other machines, the work is missing with a reason', async () => {
    const machines = await Promise.all([1, 2, 3, 4].map((n) => Puller.add(outpost, `npu-${n}`, 'npu')));
    const pull = await work.open('npu');
    const leases = [];
    for (const one of machines) leases.push(await one.take({ wait: 30 }));
    assert.deepEqual(leases.map(({ attempt }) => attempt), [1, 2, 3, 4]);
    assert.equal(new Set(leases.map(({ dispatch_id: id }) => id)).size, 1);
    assert.equal((await machines[0].renew(leases[0])).json.lease, 'lost');
    await work.state(pull, 'npu', 'failed');
    const { verdicts } = await outpost.api(`pulls/${pull.number}`);
    assert.deepEqual(verdicts.map(({ status }) => status), ['MISS']);
    assert.match(verdicts[0].message, /npu-4/);
    assert.equal((await machines[0].claim()).status, 204);
  });

  test('a late heartbeat revives an expired lease, which may expire again', async () => {
    const npu = await Puller.add(outpost, 'late', 'npu');
    const pull = await work.open('npu');
    const lease = await npu.take();
    for (let i = 0; i < 2; i++) {
      await work.state(pull, 'npu', 'queued'); // no other machine has claimed it
      // On a busy machine the lease may expire again before the test looks, so each look has a heartbeat.
      const beats = new Set();
      await until(async () => {
        beats.add((await npu.renew(lease)).json.lease);
        const { accelerators: [{ dispatches: [{ state }] }] } = await outpost.api(`pulls/${pull.number}`);
        return state === 'running';
      }, { what: 'the dispatch is running' });
      assert.deepEqual([...beats], ['active']);
    }
    await work.state(pull, 'npu', 'queued');
    const again = await npu.take();
    assert.equal(again.attempt, 2);
    await npu.finish(again);
  });
});

describe('leases that heartbeats keep', { skip: notBuilt }, () => {
  const MINUTE_MS = 60_000;

  test('a lease stays active for longer than its length, even across a kill of the service', async () => {
    const rig = await startRig();
    const outpost = await Outpost.prepare({ rig, accelerators: [chip('slow')], config: { comment: { enabled: false }, pull: { lease: '10m' } } });
    const clock = new Clock(outpost.dir, Date.now());
    await clock.move(outpost.database);
    outpost.options.clock = clock;
    await outpost.spawn();
    const work = new Work(rig, outpost);
    const [npu, other] = await Promise.all([Puller.add(outpost, 'a', 'slow'), Puller.add(outpost, 'b', 'slow')]);
    await work.open('slow');
    const lease = await npu.take();
    const waits = other.claim({ wait: 30 });
    await waiting(outpost, 1);
    for (let i = 0; i < 3; i++) {
      clock.advance(7 * MINUTE_MS); // three minutes are left, also on a busy machine
      // The service has closed its idle connections, so that the first request on one of them may fail.
      assert.equal((await Puller.ready(() => npu.renew(lease))).json.lease, 'active');
      assert.equal((await Puller.ready(() => other.claim())).status, 204);
    }
    assert.equal((await waits).status, 204);
    await outpost.restart({ hard: true });
    assert.equal((await Puller.ready(() => npu.renew(lease))).json.lease, 'active');
    assert.equal((await npu.finish(lease)).status, 200);
    await outpost.close();
    clock.close();
    await rig.close();
  });
});

describe('a service that stops', { skip: notBuilt }, () => {
  test('answers waiting claims and heartbeats before it ends', async () => {
    const rig = await startRig();
    const outpost = await Outpost.start({ rig, accelerators: [chip('npu')], config: { comment: { enabled: false } } });
    const work = new Work(rig, outpost);
    const npu = await Puller.add(outpost, 'npu-1', 'npu');
    await work.open('npu');
    const lease = await npu.take();
    const held = npu.claim({ wait: 30 });
    const beat = npu.renew(lease, { wait: 20 });
    await waiting(outpost, 1);
    await waiting(outpost, 1, 'outpost_heartbeats_waiting');
    await outpost.stop();
    const answer = await held;
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
    assert.equal((await beat).json.lease, 'active');
    await outpost.spawn();
    assert.equal((await Puller.ready(() => npu.renew(lease))).json.lease, 'active');
    await outpost.close();
    await rig.close();
  });
});
