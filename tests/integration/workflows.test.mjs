// The workflows that vendors copy into their GitHub repositories (config/github/): GitHub's own parser accepts them, and their
// jobs, run as GitHub runs them, bring results to the pull request.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ActionsRun, fillText, readWorkflow } from '../github/actions.mjs';
import { startIssuer } from '../github/oidc.mjs';
import { pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { removeFolder } from './lib/folder.mjs';
import { Outpost, notBuilt } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const VENDOR = 'Ascend/pytorch';
const INFRA = 'pytorch-fdn/accelerator-test-infra';
const config = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../config');
const WORKFLOW = path.join(config, 'github/vendor-workflow.yml');
const INFRA_WORKFLOW = path.join(config, 'github/accelerator-test-infra.yml');
const green = '<testsuite name="model"><testcase name="llama3" time="1.5"/></testsuite>';
const red = '<testsuite name="model"><testcase name="llama3"><failure message="expected 1, got 2"/></testcase><testcase name="Qwen"/></testsuite>';
const job = (name, run) => ({ job: name, runs_on: ['self-hosted', 'linux', 'npu'], run });
const writes = (report) => `printf '%s' '${report}' >"$RESULTS/report.xml"`;

describe('the workflows as GitHub parses them', () => {
  for (const file of [WORKFLOW, INFRA_WORKFLOW]) {
    test(path.basename(file), async () => {
      const { workflow, errors } = await readWorkflow(file);
      assert.deepEqual(errors, []);
      // A hosted accelerator has no runner that could set `reruns`, so the shared repository gets no experiments.
      const sent = ['pull_request', 'push', 'nightly', ...(file === WORKFLOW ? ['experiment'] : [])];
      assert.deepEqual(workflow.on.repository_dispatch.types, sent, 'the workflow runs on the events that Outpost sends');
      assert.equal(workflow.permissions['id-token'], undefined);
      assert.equal(workflow.jobs.test.permissions, undefined, 'the tested job cannot request a token');
      for (const { steps } of Object.values(workflow.jobs))
        for (const { run, uses } of steps) {
          assert.doesNotMatch(run ?? '', /\$\{\{/, 'no text of a stranger becomes part of a script');
          if (uses) assert.match(uses, /^[\w-]+\/[\w-]+@v\d+$/);
        }
    });
  }

  test('an experiment has its own concurrency group and cancels no first run', async () => {
    const { workflow } = await readWorkflow(WORKFLOW);
    const group = (action, client_payload) => fillText(workflow.concurrency.group, { github: { event: { action, client_payload } } }).replace(/\s+/g, ' ').trim();
    const outpost = (dispatch_id) => ({ outpost: { dispatch_id } });
    const first = group('pull_request', { delivery_id: 'g1', payload: { number: 7 }, ...outpost('d1') });
    assert.equal(first, 'outpost-7');
    assert.equal(group('pull_request', { delivery_id: 'g2', payload: { number: 7 }, ...outpost('d2') }), first, 'a newer head cancels the older run');
    assert.equal(group('push', { delivery_id: 'g3', payload: {}, ...outpost('d3') }), 'outpost-g3');
    const experiments = ['e1', 'e2'].map((id) => group('experiment', { delivery_id: `guid-${id}`, payload: { number: 7, head_sha: 'x' }, ...outpost(id) }));
    assert.deepEqual(experiments, ['outpost-e1', 'outpost-e2']);
    assert.equal(group('experiment', { delivery_id: 'other', payload: { action: 'closed', head_sha: 'x' }, ...outpost('e1') }), 'outpost-e1', 'its own `closed` cancels it');
  });

  test('the parser refuses mistakes as GitHub does', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'workflow-'));
    const text = await fs.readFile(WORKFLOW, 'utf8');
    const refused = async (from, to) => {
      const file = path.join(folder, 'broken.yml');
      assert.ok(text.includes(from));
      await fs.writeFile(file, text.replace(from, to));
      assert.notDeepEqual((await readWorkflow(file)).errors, [], to);
    };
    await refused('runs-on: ubuntu-latest', 'run-on: ubuntu-latest');
    await refused('id-token: write', 'id-token: wriet');
    await refused("payload.action != 'closed'", "payload.action !== 'closed'");
    await refused('needs: [begin, test]', 'needs: [begin, tests]');
    await refused('OUTPOST_JOB: ${{ matrix.job }}', 'OUTPOST_JOB: ${{ matrx.job }}');
    await removeFolder(folder);
  });
});

describe('runs of the workflows', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let outpost;
  let folder;
  let next = 100;
  let runs = 7000;

  before(async () => {
    [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    const common = { level: 'L2', triggers: { pull_request: {}, push: { branches: ['main'] } } };
    outpost = await Outpost.start({
      rig, issuer,
      accelerators: [
        { name: 'ascend-npu', title: 'Ascend NPU', ...common, runners: [{ name: 'ci', github: { repository: VENDOR, workflow: '.github/workflows/outpost.yml' } }] },
        ...['chip-a', 'chip-b', 'chip-c'].map((name) => ({ name, title: name, ...common })),
      ],
      config: { infra: { repository: INFRA, trust: 'contributors' } },
    });
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'workflows-'));
    for (const name of ['vendor', 'infra']) {
      await fs.mkdir(path.join(folder, name, '.github'), { recursive: true });
      await fs.copyFile(path.join(config, 'client/outpost-report'), path.join(folder, name, '.github/outpost-report'));
    }
    await fs.mkdir(path.join(folder, 'upstream'));
    await fs.writeFile(path.join(folder, 'upstream/VERSION'), 'the code under test\n');
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([issuer?.close(), rig?.close()]);
    await removeFolder(folder);
  });

  async function dispatched(repository = VENDOR) {
    const pull = rig.openPull(UPSTREAM, { number: next++ });
    await rig.deliver('pull_request', pullRequestOf('opened', pull));
    // By number, because the reconciler may have found the pull request before the webhook arrived.
    const event = await rig.waitForDispatch({ repository, where: ({ client_payload: { payload } }) => payload.number === pull.number })
      .catch((error) => { throw new Error(`${error.message}; outpostd's log:\n${outpost.tail()}`); });
    return { number: pull.number, pull, event };
  }

  // The vendor edits only JOBS.
  async function vendorRun(event, jobs, options) {
    const file = path.join(folder, 'outpost.yml');
    const text = await fs.readFile(WORKFLOW, 'utf8');
    const edited = text.replace(/^ {2}JOBS: \|\n( {4}.*\n)+/m, () => `  JOBS: |\n    ${JSON.stringify(jobs)}\n`);
    assert.notEqual(edited, text);
    await fs.writeFile(file, edited);
    return ActionsRun.run({
      file, event, issuer, runId: ++runs, env: { OUTPOST_RETRIES: '0' },
      repositories: { [VENDOR]: path.join(folder, 'vendor'), [UPSTREAM]: path.join(folder, 'upstream') }, ...options,
    });
  }

  const view = (number, name = 'ascend-npu') => outpost.waitForApi(`pulls/${number}`, (one) => one.accelerators.some((each) => each.name === name));
  const cells = async (number, name) => (await view(number, name)).verdicts.filter(({ accelerator }) => accelerator === name)
    .map(({ suite, test: title, status }) => `${suite} ${title} ${status}`).sort();
  const results = (run) => Object.fromEntries(Object.entries(run.jobs).map(([id, { result }]) => [id, result]));

  test('the results, log and conclusions of two jobs arrive', async () => {
    const { number, event } = await dispatched();
    const run = await vendorRun(event, [
      job('models', `cat VERSION; echo vendor in $VENDOR; ${writes(red)}; false`),
      job('units', `${writes('<testsuite name="unit"><testcase name="add"/></testsuite>')}`),
    ]);
    assert.deepEqual(results(run), { begin: 'success', test: 'failure', report: 'success' });
    assert.match(run.log('test'), /the code under test/);
    assert.deepEqual(run.jobs.test.legs[0].runsOn, ['self-hosted', 'linux', 'npu']);
    assert.deepEqual(await cells(number, 'ascend-npu'), ['model Qwen PASS', 'model llama3 FAIL', 'unit add PASS']);
    const { jobs, dispatches } = (await view(number)).accelerators.find(({ name }) => name === 'ascend-npu');
    assert.deepEqual(jobs.map(({ name, workflow, status, conclusion, url }) => [name, workflow, status, conclusion, url]).sort(), [
      ['models', 'Outpost', 'completed', 'failure', `https://github.com/${VENDOR}/actions/runs/${runs}`],
      ['units', 'Outpost', 'completed', 'success', `https://github.com/${VENDOR}/actions/runs/${runs}`],
    ]);
    assert.equal(dispatches[0].state, 'done');
    const { text } = await outpost.get(`/api/v1/jobs/${jobs.find(({ name }) => name === 'models').id}/log`);
    assert.match(text, /the code under test/);
  });

  test('the tested job gets no token, and the reporting job gets one for the right audience', async () => {
    const { event } = await dispatched();
    const run = await vendorRun(event, [job('models', `env | grep -c ^ACTIONS_ID_TOKEN || true; ${writes(green)}`)]);
    assert.match(run.log('test'), /^0$/m);
    assert.doesNotMatch(run.log('begin') + run.log('report'), /eyJ/, 'the log contains no token');
  });

  test('a job without a report is not green', async () => {
    const { number, event } = await dispatched();
    const run = await vendorRun(event, [job('models', 'true')]);
    assert.equal(run.jobs.report.result, 'success');
    assert.deepEqual(await cells(number, 'ascend-npu'), ['Outpost models MISS']);
  });

  test('a lost machine and a failed checkout make no test red', async () => {
    for (const trouble of [{ lose: 'test' }, { repositories: { [VENDOR]: path.join(folder, 'vendor') } }, { cancel: 'test' }]) {
      const { number, event } = await dispatched();
      await vendorRun(event, [job('models', writes(green))], trouble);
      assert.deepEqual((await view(number)).verdicts.map(({ test: title, status }) => `${title} ${status}`), ['models MISS'], JSON.stringify(trouble));
    }
  });

  // The dispatch turned into an experiment with these tests.
  const experimentOf = (event, tests, jobs) => {
    const experiment = structuredClone(event);
    const sha = 'b'.repeat(40);
    experiment.event_type = experiment.client_payload.event_type = 'experiment';
    experiment.client_payload.payload = { action: 'experiment', repository: { full_name: UPSTREAM }, ref: 'refs/heads/main', head_sha: sha };
    experiment.client_payload.outpost.experiment = { id: 7, of: 'd0', side: 'base', sha, tests, jobs, environment: { device: '910B' } };
    return { experiment, sha };
  };
  const HOSTILE = ['model/llama3', 'unit/$(touch ran) `touch ran`', "unit/'; touch ran; '\"", '-rf/--help', '${{ github.token }}/%s \\n', 'unit/é\u00a0'];

  test('an experiment runs the failed job at its commit with a file of the unchanged test names', async () => {
    const { number, event } = await dispatched();
    const { experiment, sha } = experimentOf(event, [...HOSTILE, 'unit/a\nunit/b', 'unit/\u2028c', 'unit/\u001b[2J'], ['models']);
    const kept = path.join(folder, 'kept');
    const run = await vendorRun(experiment, [
      job('models', `cp "$OUTPOST_TESTS" ${kept}; echo "side $OUTPOST_EXPERIMENT_SIDE"; find "$GITHUB_WORKSPACE" -name ran; ${writes(green)}`), job('units', 'echo "not asked for"; false'),
    ]);
    assert.deepEqual(results(run), { begin: 'success', test: 'success', report: 'success' });
    assert.deepEqual(run.jobs.test.legs.map(({ matrix }) => matrix.job), ['models']);
    assert.match(run.log('test'), new RegExp(`checked out ${UPSTREAM} ${sha}`));
    assert.match(run.log('test'), /^side base$/m);
    assert.doesNotMatch(run.log('test'), /\/ran$/m);
    assert.equal(await fs.readFile(kept, 'utf8'), HOSTILE.map((one) => `${one}\n`).join(''));
    assert.deepEqual(await cells(number, 'ascend-npu'), ['model llama3 PASS']);
  });

  test('an experiment runs all jobs if the failed ones were renamed', async () => {
    const { event } = await dispatched();
    const run = await vendorRun(experimentOf(event, HOSTILE, ['gone']).experiment, [job('models', writes(green)), job('units', writes(green))]);
    assert.deepEqual(run.jobs.test.legs.map(({ matrix }) => matrix.job), ['models', 'units']);
  });

  test('an experiment without a usable test name runs no job, and an ordinary dispatch lists no tests', async () => {
    const { number, event } = await dispatched();
    const run = await vendorRun(experimentOf(event, ['unit/a\nunit/b'], ['models']).experiment, [job('models', writes(green))]);
    assert.deepEqual(results(run), { begin: 'success', test: 'skipped', report: 'skipped' });
    assert.deepEqual(await cells(number, 'ascend-npu'), ['Outpost tests MISS']);
    const ordinary = await vendorRun(event, [job('models', `echo "tests=\${OUTPOST_TESTS-unset}"; ${writes(green)}`)]);
    assert.match(ordinary.log('test'), /^tests=unset$/m);
  });

  test('the vendor\'s own run does not depend on Outpost', async () => {
    const { event } = await dispatched();
    const away = structuredClone(event);
    away.client_payload.outpost.callback_url = 'http://127.0.0.1:1/github/callback';
    const run = await vendorRun(away, [job('models', writes(green))]);
    assert.deepEqual(results(run), { begin: 'success', test: 'success', report: 'success' });
    assert.match(run.log('report'), /outpost-report: .* was not taken/);
  });

  test('the run of a `closed` replaces the older run and does nothing', async () => {
    const { number, pull, event } = await dispatched();
    const { guid } = await rig.deliver('pull_request', pullRequestOf('closed', rig.updatePull(UPSTREAM, number, { state: 'closed' })));
    const closed = await rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: one }) => one.delivery_id === guid });
    const run = await vendorRun(closed, [job('models', writes(green))]);
    assert.deepEqual(results(run), { begin: 'skipped', test: 'skipped', report: 'skipped' });
    assert.equal(event.client_payload.payload.number, closed.client_payload.payload.number, 'both runs have one concurrency group');
    assert.equal(pull.number, number);
  });

  test('a push to main is tested', async () => {
    const sha = rig.push(UPSTREAM, { files: ['aten/x.cpp'] });
    const { guid } = await rig.deliver('push', push({ after: sha }));
    const event = await rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: one }) => one.delivery_id === guid });
    const run = await vendorRun(event, [job('models', writes(green))]);
    assert.match(run.log('test'), new RegExp(`checked out ${UPSTREAM} ${sha}`));
    const { verdicts } = await outpost.api(`commits/${sha}`);
    assert.deepEqual(verdicts.map(({ test: title, status }) => `${title} ${status}`), ['llama3 PASS']);
  });

  test('the shared repository runs one job for each requested accelerator, and an unknown one shows as ?', async () => {
    const hosted = (accelerator, run) => ({ accelerator, runs_on: ['self-hosted', accelerator], run });
    await fs.writeFile(path.join(folder, 'infra/accelerators.json'), JSON.stringify([
      hosted('chip-a', `cat $INFRA/accelerators.json >/dev/null; ${writes(green)}`), hosted('chip-b', `${writes(red)}; false`), hosted('chip-z', 'echo nobody asked; false'),
    ]));
    const { number, event } = await dispatched(INFRA);
    const run = await ActionsRun.run({
      file: INFRA_WORKFLOW, event, issuer, runId: ++runs, env: { OUTPOST_RETRIES: '0' },
      repositories: { [INFRA]: path.join(folder, 'infra'), [UPSTREAM]: path.join(folder, 'upstream') },
    });
    assert.deepEqual(run.jobs.test.legs.map(({ runsOn }) => runsOn[1]), ['chip-a', 'chip-b']);
    assert.deepEqual(await cells(number, 'chip-a'), ['model llama3 PASS']);
    assert.deepEqual(await cells(number, 'chip-b'), ['model Qwen PASS', 'model llama3 FAIL']);
    assert.deepEqual((await cells(number, 'chip-c')).map((cell) => cell.split(' ').at(-1)), ['MISS']);
  });

  test('the shared repository runs no job without a requested accelerator', async () => {
    const { event } = await dispatched(INFRA);
    const nobody = structuredClone(event);
    nobody.client_payload.outpost.accelerators = [];
    const run = await ActionsRun.run({ file: INFRA_WORKFLOW, event: nobody, issuer, repositories: { [INFRA]: path.join(folder, 'infra') } });
    assert.deepEqual(results(run), { begin: 'skipped', test: 'skipped', report: 'skipped' });
  });
});
