// A machine's token (`runner add`) works only for that machine's leases (finding 6): each kind of token tries each way to
// report, log and return work.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { githubClaims, startIssuer } from '../github/oidc.mjs';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const LONG = { timeout: 20_000 };
const TESTS = [{ suite: 'model', name: 'llama3', status: 'PASS' }];
const JUNIT = '<testsuite name="unit"><testcase name="a"/></testsuite>';
const NOT_ITS_OWN = /of its own leases|is not of a lease that this machine has or had/;
const CONFIG = { comment: { enabled: false } };
const common = { level: 'L2', trust: 'anyone', triggers: { pull_request: {} } };

describe('tokens of machines (finding 6)', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let lab;
  let outpost;
  let number = 700;
  const callers = {}; // name → the token of a caller

  before(async () => {
    [rig, issuer, lab] = await Promise.all([startRig({ repositories: [UPSTREAM, 'Ascend/pytorch'].map((name) => ({ name })) }), startIssuer(), startSilentVendor({ secret: SECRET })]);
    outpost = await Outpost.start({
      rig, issuer, secrets: { p: { hook: SECRET } }, config: CONFIG,
      accelerators: [
        { name: 'p', title: 'P', ...common, runners: [
          { name: 'ci', github: { repository: 'Ascend/pytorch' } }, { name: 'lab', webhook: { url: lab.url, secret: 'hook' } }, { name: 'farm', pull: { labels: [], max_parallel: 50 } }] },
        { name: 'q', title: 'Q', ...common, runners: [{ name: 'farm', pull: { labels: [], max_parallel: 50 } }] },
      ],
    });
    for (const [name, accelerator] of [['m1', 'p'], ['m2', 'p'], ['q1', 'q']]) callers[name] = await Puller.add(outpost, name, accelerator);
    callers.api = { token: (await outpost.ctl('token', 'issue', 'p')).stdout.trim() };
    callers.oidc = { token: await issuer.mint(githubClaims('Ascend/pytorch')) };
    callers.callback = { token: (await dispatched()).callback }; // of a dispatch that no action uses
  });
  after(async () => {
    try {
      assert.deepEqual(rig?.violations() ?? [], []);
    } finally {
      await outpost?.close();
      await Promise.all([lab?.stop(), issuer?.close(), rig?.close()]);
    }
  });

  const send = (name, method, path, body) => outpost.request(method, path, {
    headers: { authorization: `Bearer ${callers[name].token}` }, body: typeof body === 'string' ? body : JSON.stringify(body) });
  const configure = async (config) => {
    await outpost.configure({ config });
    assert.equal((await outpost.reload()).fields.ev, 'reloaded');
  };
  const jobsOf = async (n) => (await outpost.api(`pulls/${n}`)).accelerators.flatMap(({ jobs }) => jobs);

  // Opens a pull request; resolves once p's three runners have their dispatches.
  async function dispatched() {
    const pull = rig.openPull(UPSTREAM, { number: number++ });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    const view = await outpost.waitForApi(`pulls/${pull.number}`, ({ accelerators }) => {
      const state = Object.fromEntries((accelerators.find(({ name }) => name === 'p')?.dispatches ?? []).map((one) => [one.runner, one.state]));
      return state.ci === 'sent' && state.lab === 'acknowledged' && state.farm === 'queued';
    }, LONG);
    const ids = Object.fromEntries(view.accelerators.find(({ name }) => name === 'p').dispatches.map(({ runner, id }) => [runner, id]));
    const { body } = lab.events.find((one) => one.body.outpost.dispatch_id === ids.lab);
    return { number: pull.number, ids, callback: body.outpost.callback_token };
  }
  // Like dispatched(), and m1 has its lease.
  async function leased() {
    const pull = await dispatched();
    const lease = await callers.m1.take();
    assert.equal(lease.dispatch_id, pull.ids.farm);
    return { ...pull, lease, job: lease.job_id };
  }
  // Like dispatched(), and the github runner has begun a job.
  async function begun() {
    const pull = await dispatched();
    const run = workflowOf({ workflow: 'ci', job: 'test', run_id: pull.number }, 'in_progress');
    const started = await send('oidc', 'POST', '/github/callback', { event_type: 'pull_request', delivery_id: pull.ids.ci, payload: {}, outpost: { dispatch_id: pull.ids.ci }, workflow: run });
    assert.equal(started.status, 200, started.text);
    return { ...pull, job: started.json.job };
  }

  const ended = (fields) => ({ status: 'completed', conclusion: 'success', tests: TESTS, ...fields });
  const leaseJob = ({ runner, run_id, attempt }) => ended({ name: runner, job_name: 'tests', run_id, run_attempt: attempt });
  // action → [prepare, request, {caller: expected status}]. A caller without an entry gets 403.
  const actions = {
    "end the job of m1's lease": [leased, (on) => ['POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, leaseJob(on.lease)], { m1: 200, api: 200, callback: 401, oidc: 401 }],
    "start a second job in the dispatch of m1's lease": [leased, (on) => ['POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, ended({ name: 'farm', job_name: 'extra', run_id: on.lease.run_id })], { api: 200, callback: 401, oidc: 401 }],
    "report an attempt of m1's dispatch that never was": [leased, (on) => ['POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, leaseJob({ ...on.lease, attempt: 2 })], { api: 200, callback: 401, oidc: 401 }],
    "report a dispatch that no machine has": [dispatched, (on) => ['POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, leaseJob({ runner: 'farm', run_id: on.ids.farm, attempt: 1 })], { api: 200, callback: 401, oidc: 401 }],
    'report the dispatch of the github runner': [dispatched, (on) => ['POST', `/api/v1/dispatches/${on.ids.ci}/jobs`, ended({ name: 'ci', job_name: 'test', run_id: 5 })], { api: 200, callback: 401, oidc: 401 }],
    'report the dispatch of the webhook runner': [dispatched, (on) => ['POST', `/api/v1/dispatches/${on.ids.lab}/jobs`, ended({ name: 'lab', job_name: 'tests', run_id: on.ids.lab })], { api: 200, callback: 401, oidc: 401 }],
    'report a periodic run': [dispatched, (on) => ['POST', '/github/callback', { event_type: 'nightly', delivery_id: String(on.number).repeat(20).slice(0, 40), payload: {}, workflow: ended({ name: 'nightly', run_id: 7 }) }], { api: 200, callback: 401, oidc: 200 }],
    'answer a dispatch at /github/callback': [leased, (on) => ['POST', '/github/callback', { event_type: 'pull_request', delivery_id: 'x', outpost: { dispatch_id: on.ids.farm }, payload: {}, workflow: leaseJob(on.lease) }], { api: 400, callback: 401, oidc: 400 }],
    "write the log of m1's job": [leased, (on) => ['PUT', `/api/v1/jobs/${on.job}/log`, 'a line\n'], { m1: 200, api: 200 }],
    "hand in the report of m1's job": [leased, (on) => ['PUT', `/api/v1/jobs/${on.job}/report`, JUNIT], { m1: 200, api: 200 }],
    "write the log of the github runner's job": [begun, (on) => ['PUT', `/api/v1/jobs/${on.job}/log`, 'a line\n'], { api: 200, oidc: 200 }],
    "hand in the report of the github runner's job": [begun, (on) => ['PUT', `/api/v1/jobs/${on.job}/report`, JUNIT], { api: 200, oidc: 200 }],
    "renew m1's lease": [leased, (on) => ['POST', `/api/v1/runner/leases/${on.lease.lease_id}/renew`, {}], { m1: 200, m2: 200, q1: 200, callback: 401, oidc: 401 }],
    "hand m1's lease back": [leased, (on) => ['POST', `/api/v1/runner/leases/${on.lease.lease_id}/return`, {}], { m1: 200, m2: 404, q1: 404, callback: 401, oidc: 401 }],
    'claim as m1': [dispatched, () => ['POST', '/api/v1/runner/claim', { name: 'm1', claim_id: 'c', labels: [], wait: 0 }], { m1: 200, callback: 401, oidc: 401 }],
  };

  for (const [what, [prepare, request, expected]] of Object.entries(actions))
    test(what, async () => {
      // First the refused callers, on one pull request, which must not change.
      const refused = Object.keys(callers).filter((name) => !(expected[name] < 300));
      const on = await prepare();
      const before = await jobsOf(on.number);
      for (const name of refused) {
        const answer = await send(name, ...request(on));
        assert.equal(answer.status, expected[name] ?? 403, `${name}: ${answer.text}`);
        if (answer.status === 403) assert.ok(answer.json.detail, `${name}: ${answer.text}`);
        if (answer.status === 403 && callers[name].accelerator === 'p' && !/claim/.test(what)) assert.match(answer.json.detail, NOT_ITS_OWN);
      }
      assert.deepEqual(await jobsOf(on.number), before);
      if (on.lease) assert.equal((await callers.m1.renew(on.lease)).json.lease, 'active');
      for (const name of Object.keys(callers).filter((one) => expected[one] < 300)) {
        const answer = await send(name, ...request(await prepare()));
        assert.equal(answer.status, expected[name], `${name}: ${answer.text}`);
        if (/renew/.test(what)) assert.equal(answer.json.lease, name === 'm1' ? 'active' : 'lost');
      }
    });

  test('each machine may report only its own attempt of a lease that expired and went to another machine', async () => {
    await configure({ ...CONFIG, pull: { lease: '1s' } });
    const on = await leased();
    await outpost.waitForApi(`pulls/${on.number}`, ({ accelerators }) => accelerators.find(({ name }) => name === 'p').dispatches.find(({ id }) => id === on.ids.farm).state === 'queued', LONG);
    await configure(CONFIG);
    const second = await callers.m2.take();
    assert.deepEqual([second.run_id, second.attempt], [on.lease.run_id, 2]);
    assert.equal((await send('m1', 'POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, leaseJob(second))).status, 403);
    assert.equal((await send('m2', 'POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, leaseJob(on.lease))).status, 403);
    assert.equal((await send('m1', 'PUT', `/api/v1/jobs/${second.job_id}/log`, 'x')).status, 403);
    assert.equal((await send('m2', 'PUT', `/api/v1/jobs/${on.job}/log`, 'x')).status, 403);
    assert.equal((await send('m1', 'PUT', `/api/v1/jobs/${on.job}/log`, 'late\n')).status, 200);
    assert.equal((await send('m1', 'POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, leaseJob(on.lease))).status, 200);
    assert.equal((await send('m2', 'POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, leaseJob(second))).status, 200);
    const [job] = (await jobsOf(on.number)).filter(({ workflow }) => workflow === 'farm');
    assert.deepEqual([job.run_attempt, job.status], [2, 'completed']);
  });

  test('a new token of a machine reaches its leases, and the revoked one does not', async () => {
    const on = await leased();
    const old = callers.m1;
    assert.equal((await outpost.ctl('runner', 'revoke', 'm1', '--accelerator', 'p')).code, 0);
    assert.equal((await send('m1', 'POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, leaseJob(on.lease))).status, 401);
    callers.m1 = await Puller.add(outpost, 'm1', 'p');
    assert.notEqual(callers.m1.token, old.token);
    assert.equal((await send('m1', 'POST', `/api/v1/dispatches/${on.ids.farm}/jobs`, leaseJob(on.lease))).status, 200);
  });

  test('a lease contains no credential', async () => {
    const { lease } = await leased();
    assert.doesNotMatch(JSON.stringify(lease), /oct1\.|oat_|ort_|token/i);
  });

  test('a machine that floods reports does not use up the rate of others', async () => {
    const [mine, theirs] = [await leased(), await dispatched()];
    const lease = await callers.m2.take();
    assert.equal(lease.dispatch_id, theirs.ids.farm);
    const path = `/api/v1/dispatches/${mine.ids.farm}/jobs`;
    const started = { ...leaseJob(mine.lease), status: 'in_progress', conclusion: null, tests: undefined };
    await until(async () => (await send('m1', 'POST', path, started)).status === 429, { ...LONG, interval: 0 });
    assert.equal((await send('m2', 'POST', `/api/v1/dispatches/${theirs.ids.farm}/jobs`, leaseJob(lease))).status, 200);
  });
});
