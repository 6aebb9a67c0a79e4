// Periodic runs through the whole program with a moved clock, of upstream's head and of real git repositories (git daemon, and
// smart HTTP over TLS), on a github, a webhook and a pull runner.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { GitDaemon } from './lib/git-daemon.mjs';
import { GitServer } from './lib/git-server.mjs';
import { MovedClock, notMovable, realNow } from './lib/moved-clock.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const HOUR = 3_600_000;
const LONG = { timeout: 60_000 };

const accelerators = ({ lab, tls, daemon }) => [
  { name: 'chip', title: 'Chip', level: 'L2', trust: 'approved', source: { git_url: tls.url, branch: 'main' }, triggers: { pull_request: false, schedule: ['0 * * * *'] },
    runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }, { name: 'lab', webhook: { url: lab.url, secret: 'hook' } }, { name: 'farm', pull: {} }] },
  { name: 'spyre', title: 'Spyre', level: 'L2', source: { git_url: daemon.url, branch: 'trunk' }, triggers: { pull_request: false, schedule: ['0 * * * *'] },
    runners: [{ name: 'ci', github: { repository: 'torch-spyre/torch-spyre' } }] },
  { name: 'quiet', title: 'Quiet', level: 'L1', triggers: { pull_request: false, schedule: ['0 * * * *'] }, runners: [{ name: 'ci', github: { repository: 'vllm-project/vllm' } }] },
];

describe('periodic runs', { skip: notBuilt || notMovable }, () => {
  let rig, lab, tls, daemon, outpost, machine, clock;
  const tokens = {};
  const repositories = { chip: 'Ascend/pytorch', spyre: 'torch-spyre/torch-spyre', quiet: 'vllm-project/vllm' };

  before(async () => {
    [rig, lab, tls, daemon] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET }), GitServer.start({ repository: 'Ascend/pytorch' }), GitDaemon.start()]);
    tls.commit({ a: 'one' });
    daemon.commit('one');
    outpost = await Outpost.prepare({ rig, accelerators: accelerators({ lab, tls, daemon }), secrets: { chip: { hook: SECRET } }, config: { schedule: { jitter: '0s' } } });
    clock = await MovedClock.of(outpost);
    await clock.set(HOUR + 30 * 60_000 - (realNow() % HOUR)); // half past the hour
    outpost.options.env = { ...clock.env, CURL_CA_BUNDLE: '', SSL_CERT_FILE: tls.certificate };
    await outpost.spawn();
    machine = await Puller.add(outpost, 'npu-1', 'chip');
    for (const name of ['chip', 'spyre']) tokens[name] = (await outpost.ctl('token', 'issue', name)).stdout.trim();
    await until(async () => (await schedules()).length === 3, LONG);
    await outpost.waitForLog({ ev: 'reconciled' }, LONG); // reconciling reads the branch, too
  });
  after(async () => {
    try {
      assert.deepEqual(rig?.violations() ?? [], []);
    } finally {
      await outpost?.close();
      await Promise.all([lab?.stop(), tls?.close(), daemon?.close(), rig?.close()]);
      MovedClock.right();
    }
  });

  const put = (ms) => clock.put(ms);
  const schedules = async () => JSON.parse((await outpost.ctl('--json', 'nightly')).stdout).schedules;
  const last = async (name) => (await schedules()).find(({ accelerator }) => accelerator === name).last;
  // Waits for a newest run that differs from `before` and fits.
  const waitForRun = (name, before, fits) => until(async () => {
    const run = await last(name);
    return run && run.due_at !== before?.due_at && fits(run) && run;
  }, { ...LONG, what: `a run of ${name}: ${fits}` });
  const dispatched = (name, seq) => rig.waitForDispatch({ repository: repositories[name], after: seq, where: (one) => one.event_type === 'nightly' });
  const seq = () => rig.requests().at(-1)?.seq ?? 0;
  const heads = (from) => rig.requests({ path: `/repos/${UPSTREAM}/branches/main`, after: from });

  // Each runner of the accelerator reports this status in the current round.
  async function report(name, sha, status = 'PASS') {
    const view = await outpost.waitForApi(`commits/${sha}?kind=nightly`, (one) => one.accelerators.some((a) => a.name === name && a.dispatches.length > 0), LONG);
    for (const { id, runner, state } of view.accelerators.find((a) => a.name === name).dispatches) {
      if (['done', 'superseded', 'cancelled'].includes(state)) continue;
      const lease = runner === 'farm' ? await machine.take() : undefined;
      const workflow = workflowOf({ workflow: lease ? lease.runner : 'ci', job: lease ? 'tests' : 'test', run_id: lease?.run_id ?? `${id}-run`, run_attempt: lease?.attempt ?? 1, conclusion: status === 'PASS' ? 'success' : 'failure',
        tests: [{ suite: 'model', name: 'llama3', status, message: status === 'PASS' ? '' : 'expected 1' }] }, 'completed');
      const answer = await post(`${outpost.url}/api/v1/dispatches/${id}/jobs`, lease ? machine.token : tokens[name], workflow);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
  }

  test('each runner gets both heads, which Outpost reads with one request', async () => {
    const from = seq();
    await put(HOUR / 2 + 2000);
    const [chip, spyre, quiet] = await Promise.all(['chip', 'spyre', 'quiet'].map((name) => dispatched(name, from)));
    const upstream = rig.world.branchTip(UPSTREAM);
    const { payload, outpost: block, event_type: type, delivery_id: delivery } = chip.client_payload;
    assert.equal(type, 'nightly');
    assert.match(delivery, /^[0-9a-f]{8}-/);
    assert.deepEqual([payload.repository.full_name, payload.ref, payload.after, payload.head_sha], [UPSTREAM, 'refs/heads/main', upstream, upstream]);
    assert.deepEqual(block.source, { git_url: tls.url, branch: 'main', sha: tls.tip });
    assert.deepEqual(block.accelerators, ['chip']);
    assert.equal(spyre.client_payload.outpost.source.sha, execFileSync('git', ['--git-dir', daemon.repo, 'rev-parse', 'trunk']).toString().trim());
    assert.equal(quiet.client_payload.outpost.source, undefined);
    const event = await until(() => lab.events.find((one) => one.event === 'nightly'), LONG);
    assert.ok(event.valid);
    assert.equal(event.body.payload.after, upstream);
    assert.equal(event.body.outpost.source.sha, tls.tip);
    const offered = await machine.take();
    assert.deepEqual([offered.change.kind, offered.change.event_type, offered.change.head_sha, offered.change.ref], ['nightly', 'nightly', upstream, 'refs/heads/main']);
    assert.deepEqual(offered.source, { git_url: tls.url, branch: 'main', sha: tls.tip });
    await machine.giveBack(offered);
    assert.equal(heads(from).length, 1);
    await report('chip', upstream);
    await report('spyre', upstream);
    const run = await waitForRun('chip', null, ({ outcome }) => outcome === 'green');
    assert.deepEqual([run.cause, run.state, run.upstream_sha, run.source_sha], ['schedule', 'done', upstream, tls.tip]);
    assert.match(run.due_at, /:00:00Z$/);
    await outpost.ctl('nightly').then(({ stdout }) => assert.match(stdout, /chip +0 \* \* \* \* +\S+:00:00Z .*green/));
  });

  test('a run without a new commit is skipped at no cost, and a newer source starts a run', async () => {
    const [chip, spyre] = [await last('chip'), await last('spyre')];
    const next = daemon.commit('two');
    const from = seq();
    await put(HOUR);
    const skipped = await waitForRun('chip', chip, ({ state }) => state !== 'reading');
    assert.deepEqual([skipped.state, skipped.outcome, skipped.reason], ['skipped', 'skipped', `nothing new since the green run of ${chip.due_at}`]);
    // GitHub's tokens are valid for an hour, so the first answer is 401.
    assert.deepEqual(heads(from).map(({ status }) => status).filter((status) => status !== 401), [304]);
    const { client_payload: sent } = await dispatched('spyre', from);
    assert.equal(sent.outpost.source.sha, next);
    assert.equal(sent.payload.after, spyre.upstream_sha);
    const metrics = (await outpost.get('/metrics')).text;
    assert.match(metrics, /^outpost_schedule_runs_total\{state="skipped"\} 2$/m); // quiet's run is still going
    assert.match(metrics, /^outpost_schedule_head_answers_total\{answer="unchanged"\} 1$/m);
  });

  test('a run that is still going prevents another, even by an operator or after a kill', async () => {
    const going = await last('spyre');
    const run = await outpost.ctl('nightly', 'run', 'spyre');
    assert.equal(run.code, 1);
    assert.match(run.stderr, new RegExp(`the run of ${going.due_at} is still going`));
    await outpost.kill();
    await put(HOUR);
    await outpost.spawn();
    const skipped = await waitForRun('spyre', going, ({ state }) => state !== 'reading');
    assert.deepEqual([skipped.state, skipped.reason], ['skipped', `the run of ${going.due_at} is still going`]);
    await report('spyre', going.upstream_sha, 'FAIL');
  });

  test('a kill while the heads are read does not lose the run, and five missed runs are caught up as one', async () => {
    const chip = await until(async () => (await last('chip')).state === 'skipped' && last('chip'), LONG);
    const upstream = rig.push(UPSTREAM);
    await outpost.stop();
    await put(5 * HOUR);
    const from = seq();
    const fault = rig.fault({ method: 'GET', path: `/repos/${UPSTREAM}/branches/main`, kind: 'hang' });
    await outpost.spawn();
    const reading = await waitForRun('chip', chip, ({ state }) => state === 'reading');
    assert.equal(reading.cause, 'caught_up');
    await until(() => heads(from).length > 0, LONG);
    await outpost.kill();
    rig.clearFaults();
    assert.ok(fault);
    await outpost.spawn();
    const { client_payload: sent } = await dispatched('chip', from);
    assert.equal(sent.payload.after, upstream.sha ?? upstream);
    await report('chip', sent.payload.after);
    const done = await waitForRun('chip', chip, ({ outcome }) => outcome === 'green');
    assert.equal(done.due_at, reading.due_at);
    assert.equal(new Date(done.due_at) - new Date(chip.due_at), 5 * HOUR);
    assert.equal(rig.dispatches({ repository: 'Ascend/pytorch', after: from }).length, 1);
  });

  test('an operator can start a run without a new commit and skip the next one', async () => {
    const before = await last('chip');
    const from = seq();
    assert.equal((await outpost.ctl('nightly', 'run', 'chip')).code, 0);
    const asked = await waitForRun('chip', before, ({ state }) => state === 'dispatched');
    assert.equal(asked.cause, 'operator');
    await dispatched('chip', from);
    await report('chip', asked.upstream_sha);
    const { stdout } = await outpost.ctl('nightly', 'skip', 'chip');
    const [, next] = stdout.match(/^chip: the run of (\S+:00:00Z) is skipped$/m);
    assert.match((await outpost.ctl('nightly')).stdout, new RegExp(`chip .*${next}, skipped`));
    await put(HOUR);
    const skipped = await waitForRun('chip', asked, ({ due_at: due }) => due === next);
    assert.deepEqual([skipped.state, skipped.reason], ['skipped', 'skipped by an operator']);
    assert.equal((await schedules()).find(({ accelerator }) => accelerator === 'chip').skip_next, false);
    const unknown = await outpost.ctl('nightly', 'run', 'chap');
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /no accelerator is called chap; did you mean chip\?/);
  });

  test('an unreachable source is retried, and a missing branch fails the run', async () => {
    const before = await last('chip');
    tls.commit({ a: 'three' });
    tls.mode = 'down';
    let from = seq();
    await put(HOUR);
    await outpost.waitForLog({ ev: 'periodic_run_waits', accelerator: 'chip', error: /503/ }, LONG);
    tls.mode = 'serve';
    assert.equal((await dispatched('chip', from)).client_payload.outpost.source.sha, tls.tip);
    const run = await waitForRun('chip', before, ({ state }) => state === 'dispatched');
    await report('chip', run.upstream_sha);
    tls.git(['branch', '-m', 'main', 'old']);
    from = seq();
    await put(HOUR);
    const failed = await waitForRun('chip', run, ({ state }) => state !== 'reading');
    assert.deepEqual([failed.state, failed.outcome, failed.reason], ['failed', 'failed', 'the head of its source could not be read: there is no branch main']);
    assert.equal(rig.dispatches({ repository: 'Ascend/pytorch', after: from }).length, 0);
  });

  // Finding 11.
  test('a redirect of a source is not followed, neither to another server nor to another path', async () => {
    const other = await GitServer.start({ repository: 'Ascend/pytorch' });
    try {
      other.commit({ a: 'evil' });
      tls.git(['branch', '-m', 'old', 'main']);
      tls.serveAlsoAs('someone/evil');
      for (const target of [new URL(other.url).origin + new URL(tls.url).pathname, '/someone/evil.git']) {
        const before = await last('chip');
        tls.redirect = (url) => url.replace(/^.*\.git/, target);
        await put(HOUR);
        const failed = await waitForRun('chip', before, ({ state }) => state !== 'reading');
        assert.deepEqual([failed.state, failed.reason], ['failed', `the head of its source could not be read: it redirects to ${target}/info/refs?service=git-upload-pack, and redirects are not followed: set the new address`]);
      }
      assert.deepEqual(other.requests, []);
      assert.deepEqual(tls.requests.filter((r) => r.includes('someone/evil')), []);
    } finally {
      tls.redirect = () => undefined;
      await other.close();
    }
  });

  test('a clock that is set back a day starts no run twice', async () => {
    const before = (await schedules()).find(({ accelerator }) => accelerator === 'spyre');
    const from = seq();
    await put(-24 * HOUR);
    await until(async () => new Date((await schedules()).find(({ accelerator }) => accelerator === 'spyre').next) < new Date(before.next), LONG);
    await put(24 * HOUR);
    await until(async () => (await schedules()).find(({ accelerator }) => accelerator === 'spyre').next === before.next, LONG);
    assert.equal(rig.dispatches({ after: from }).filter(({ event_type: type }) => type === 'nightly').length, 0);
  });
});
