// Re-run on a check run: it reruns the workflow in the vendor's repository, or starts another round, even if GitHub refuses the
// re-run.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { startIssuer } from '../github/oidc.mjs';
import { checkRerequested, pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startDispatchVendor, startWebhookVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const one = (status, name) => ({ suite: 'model', name, status, duration: 1 });
const job = (conclusion, status, more) => ({ workflow: 'ci', job: 'test', conclusion, tests: [one(status, 'llama3')], ...more });
const RED = 'crcr/vendor/red/ci/test';
const GREEN = 'crcr/vendor/green/ci/test';
const LAB = 'outpost/lab/lab/suite';
const FAILED_JOBS = /^\/repos\/vendor\/red\/actions\/runs\/\d+\/rerun-failed-jobs$/;

describe('Re-run', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let lab;
  let outpost;
  const vendors = [];
  let next = 300;

  before(async () => {
    [rig, issuer, lab] = await Promise.all([
      startRig({ repositories: [UPSTREAM, 'vendor/red', 'vendor/green'].map((name) => ({ name })) }), startIssuer(),
      startWebhookVendor({ secret: SECRET, script: [job('success', 'PASS', { workflow: 'lab', job: 'suite' })] })]);
    const device = (name, runner) => ({ name, title: name, level: 'L4', triggers: { pull_request: {} }, runners: [runner] });
    outpost = await Outpost.start({
      rig, issuer, secrets: { lab: { hook: SECRET } }, config: { comment: { enabled: false } },
      accelerators: [device('red', { name: 'ci', github: { repository: 'vendor/red' } }), device('green', { name: 'ci', github: { repository: 'vendor/green' } }),
        device('lab', { name: 'lab', webhook: { url: lab.url, secret: 'hook' } })],
    });
    for (const [repository, script] of [['vendor/red', [job('failure', 'FAIL')]], ['vendor/green', [job('success', 'PASS')]]])
      vendors.push(startDispatchVendor({ rigUrl: rig.url, tokenUrl: issuer.tokenUrl, callbackUrl: `${outpost.url}/github/callback`, repository, script }));
  });
  after(async () => {
    await Promise.all(vendors.map((vendor) => vendor.stop()));
    await outpost?.close();
    await Promise.all([lab?.stop(), issuer?.close(), rig?.close()]);
  });
  afterEach(() => {
    rig.clearFaults();
    assert.deepEqual(rig.violations(), []);
  });

  const latest = (view) => Object.fromEntries(view.accelerators.map(({ name, dispatches }) => [name, dispatches]));
  const checks = (pull) => Object.fromEntries(rig.checkRuns(UPSTREAM, pull.headSha).map((run) => [run.name, run]));
  const opened = async () => {
    const pull = rig.openPull(UPSTREAM, { number: next++ });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    await until(() => [RED, GREEN, LAB, 'outpost'].every((name) => checks(pull)[name]?.conclusion), { timeout: 20_000, what: 'the check runs are complete' });
    return pull;
  };
  const press = async (pull, kind, { name, ...more } = {}) => {
    const check = checks(pull)[name];
    const payload = checkRerequested(kind, { appId: rig.app.id, headSha: pull.headSha, number: pull.number, name, id: check?.id, externalId: check?.externalId, ...more });
    assert.equal((await rig.deliver(kind, payload)).status_code, 202);
    await until(async () => (await outpost.api('status')).deliveries.accepted === 0);
  };
  const reruns = (pull, from) => rig.requests({ method: 'POST', path: /\/actions\/runs\/\d+\/rerun/, after: from }).map(({ path }) => path);
  const lastSeq = () => rig.requests().at(-1).seq;
  const runOf = (pull, name) => checks(pull)[name].externalId.split(':')[0];
  const sent = (repository, pull) => rig.dispatches({ repository }).filter(({ client_payload: { payload } }) => payload.number === pull.number);
  const newest = async () => JSON.parse((await outpost.ctl('--json', 'deliveries', '--limit', '1')).stdout).deliveries[0];
  const accelerators = async (pull) => latest(await outpost.api(`pulls/${pull.number}`));

  test('on a GitHub Actions job, reruns its failed jobs once per attempt with only actions: write', async () => {
    const pull = await opened();
    const from = lastSeq();
    await press(pull, 'check_run', { name: RED });
    await until(() => reruns(pull, from).length === 1, { what: 'GitHub gets the re-run' });
    assert.deepEqual(reruns(pull, from), [`/repos/vendor/red/actions/runs/${runOf(pull, RED)}/rerun-failed-jobs`]);
    assert.ok(rig.gate.tokens().some(({ permissions }) => permissions?.actions === 'write' && Object.keys(permissions).filter((key) => key !== 'metadata').length === 1));
    await press(pull, 'check_run', { name: RED }); // a second press
    assert.equal((await accelerators(pull)).red.length, 1, 'there is no new round');
    assert.equal(reruns(pull, from).length, 1);
  });

  test('on a job of the vendor\'s own runner, starts another round', async () => {
    const pull = await opened();
    const from = lastSeq();
    await press(pull, 'check_run', { name: LAB });
    await until(async () => { const all = (await accelerators(pull)).lab; return all.length === 2 && all[0].state === 'done'; }, { timeout: 10_000, what: 'the lab gets another round' });
    assert.deepEqual(reruns(pull, from), []);
    assert.equal((await accelerators(pull)).green.length, 1);
  });

  for (const [kind, name] of [['check_suite', undefined], ['check_run', 'outpost']])
    test(`on ${name ? 'the verdict' : 'the suite'}, reruns every run of the head`, async () => {
      const pull = await opened();
      const from = lastSeq();
      await press(pull, kind, { name });
      await until(() => reruns(pull, from).length === 2, { what: 'both repositories get a re-run' });
      assert.deepEqual(reruns(pull, from).sort(), [`/repos/vendor/green/actions/runs/${runOf(pull, GREEN)}/rerun`, `/repos/vendor/red/actions/runs/${runOf(pull, RED)}/rerun`].sort());
      await until(async () => (await accelerators(pull)).lab.length === 2, { timeout: 10_000, what: 'the lab gets another round' });
    });

  test('a run that is still going is not rerun', async () => {
    const pull = await opened();
    rig.fault({ kind: 'status', status: 403, message: 'This workflow is already running', path: FAILED_JOBS, count: 1 });
    await press(pull, 'check_run', { name: RED });
    await outpost.waitForLog({ ev: 'dispatch_sent', kind: 'github_rerun', pr: String(pull.number) });
    assert.equal((await accelerators(pull)).red.length, 1);
  });

  for (const [what, fault] of [
    ['a run that is too old', { kind: 'status', status: 403, message: 'Unable to retry this workflow run because it was created over a month ago' }],
    ['a run that is gone', { kind: 'notFound' }],
  ])
    test(`${what} gets another round`, async () => {
      const pull = await opened();
      rig.fault({ ...fault, path: FAILED_JOBS, count: 1 });
      await press(pull, 'check_run', { name: RED });
      await until(() => sent('vendor/red', pull).length === 2, { timeout: 10_000, what: 'the vendor gets another dispatch' });
      assert.equal(sent('vendor/red', pull)[1].client_payload.outpost.action, 'retest');
      await until(async () => (await accelerators(pull)).red[0].state === 'done');
      assert.equal((await accelerators(pull)).red.length, 2);
    });

  test('a re-run is retried while GitHub is away', async () => {
    const pull = await opened();
    rig.fault({ kind: 'status', status: 502, path: FAILED_JOBS, count: 1 });
    const from = lastSeq();
    await press(pull, 'check_run', { name: RED });
    await until(() => reruns(pull, from).length === 2, { timeout: 10_000, what: 'Outpost tries a second time' });
    assert.equal((await accelerators(pull)).red.length, 1);
  });

  test('another App\'s check, an unknown commit and an older head start nothing', async () => {
    const pull = await opened();
    await press(pull, 'check_run', { name: RED, appId: rig.app.id + 1 });
    assert.deepEqual([(await newest()).state, (await newest()).error], ['ignored', "another App's check"]);
    await press(pull, 'check_suite', { headSha: 'f'.repeat(40) });
    assert.equal((await newest()).error, 'not the head of an open pull request');
    const later = rig.updatePull(UPSTREAM, pull.number, { headSha: 'e'.repeat(40) });
    await rig.deliver('pull_request', pullRequestOf('synchronize', later, { before: pull.headSha }));
    await outpost.waitForApi(`pulls/${pull.number}`, ({ head_sha: sha }) => sha === later.headSha, { timeout: 60_000 });
    await press(pull, 'check_suite');
    assert.equal((await newest()).error, 'not the head of an open pull request');
  });
});
