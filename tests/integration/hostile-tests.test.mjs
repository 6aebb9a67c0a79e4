// Test names that are shell commands, options, expressions for `pytest -k` or several lines: a pull request makes these tests
// red, Outpost sends experiments with the names, and outpost-runner (with and without its sandbox), the webhook receiver and
// the GitHub workflow that vendors copy run exactly these tests on the head and on the merge base. No name is executed.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ActionsRun } from '../github/actions.mjs';
import { startIssuer } from '../github/oidc.mjs';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { removeFolder } from './lib/folder.mjs';
import { Outpost, freePort, notBuilt } from './lib/outpost.mjs';
import { Runner, runnerNotBuilt } from './lib/runner.mjs';

const UPSTREAM = 'pytorch/pytorch';
const VENDOR = 'Ascend/pytorch';
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const config = path.join(root, 'config');
const SECRET = 'between Outpost and the lab';
const noSandbox = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true']).status !== 0 && 'bubblewrap does not work here';

// All are red on the head. Names that contain "base" are red on the merge base too.
const NAMES = [
  'base $(touch ran)', '`touch ran` new', "base '; touch ran; '", 'new "; touch ran; "', 'base | touch ran & touch ran', 'new ${IFS}touch${IFS}ran', '--rootdir=/ base', '-k', '-', '--', '* base', '../../new',
  'base not a or __import__("os").system("touch ran")', 'new[$((1+1))] %s %n', 'base {0} {{1}}', '${{ github.token }} base', '$OUTPOST_TESTS new', '\\\\n base \\', 'é\u00a0模型 base', '<b>new</b> &amp;', 'two\nlines base', `${'l'.repeat(4096)} base`, 'a\u2028b new',
];
// A name as Outpost stores it: on one line, at most 256 bytes.
const kept = (name) => Buffer.from(name.replace(/[\n\t]/g, ' ')).subarray(0, 256).toString();
// The file omits a name with a Unicode line separator, so its test does not rerun.
const listed = NAMES.filter((name) => !name.includes('\u2028')).map(kept);

// A suite that runs the listed tests, or all, and writes RESULTS/report.xml. Arguments: NAMES (a JSON file) RESULTS
const SUITE = `
import hashlib, html, json, os, sys
names = json.load(open(sys.argv[1], encoding='utf-8'))
path = os.environ.get('OUTPOST_TESTS')
listed = open(path, encoding='utf-8', newline='\\n').read().split('\\n') if path else None
kept = lambda name: name.replace('\\n', ' ').encode()[:256].decode('utf-8', 'ignore')
side = os.environ.get('OUTPOST_EXPERIMENT_SIDE') or 'first'
out = open(os.path.join(sys.argv[2], 'report.xml'), 'w', encoding='utf-8')
print('<testsuite name="unit">', file=out)
for name in names:
    if listed is not None and 'unit/' + kept(name) not in listed:
        continue
    red = side != 'base' or 'base' in name
    words = ''.join(chr(ord('a') + n % 26) for n in hashlib.sha256(name.encode()).digest()[:12])  # of its own: one message in most tests is an outage
    attribute = html.escape(name).replace('\\n', '&#10;')
    print(f'<testcase name="{attribute}">' + (f'<failure message="expected {words}, got none at all"/>' if red else '') + '</testcase>', file=out)
print('</testsuite>', file=out)
out.close()
if path:
    open(os.path.join(sys.argv[2], 'list.txt'), 'w', encoding='utf-8', newline='\\n').write('\\n'.join(listed))
print('side', side)
`;

describe('hostile names of tests in experiments', { skip: notBuilt || runnerNotBuilt }, () => {
  let rig;
  let issuer;
  let outpost;
  let folder;
  let port;
  let next = 50;

  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'hostile-tests-'));
    await fs.writeFile(path.join(folder, 'suite.py'), SUITE);
    await fs.writeFile(path.join(folder, 'names.json'), JSON.stringify(NAMES));
    port = await freePort();
    [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    const common = { level: 'L2', trust: 'anyone', triggers: { pull_request: { label: 'required' } } };
    outpost = await Outpost.start({
      rig, issuer,
      accelerators: [
        ...['plain', 'boxed'].map((name) => ({ name, title: name, ...common, runners: [{ name: 'farm', reruns: 'tests', pull: { labels: [], max_parallel: 2 } }] })),
        { name: 'lab', title: 'lab', ...common, runners: [{ name: 'ci', reruns: 'tests', webhook: { url: `http://127.0.0.1:${port}/`, secret: 'hook' } }] },
        { name: 'cloud', title: 'cloud', ...common, runners: [{ name: 'ci', reruns: 'tests', github: { repository: VENDOR, workflow: '.github/workflows/outpost.yml' } }] },
      ],
      secrets: { lab: { hook: SECRET } },
    });
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([issuer?.close(), rig?.close()]);
    await removeFolder(folder);
  });

  async function opened(accelerator) {
    const pull = rig.openPull(UPSTREAM, { number: next++, labels: [`ciflow/crcr/${accelerator}`] });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    return pull;
  }

  // Waits until experiments have decided each red cell: BASE if the name contains "base", otherwise NEW.
  async function decided(pull, names = NAMES) {
    const fits = (json) => json.verdicts.length === names.length && json.verdicts.every(({ test: name, attribution }) => (name.includes('\u2028') ? true : attribution === (name.includes('base') || 'l'.repeat(256) === name ? 'BASE' : 'NEW')));
    const view = await outpost.waitForApi(`pulls/${pull.number}`, fits, { timeout: 60_000 }).catch(async (error) => {
      const { verdicts } = await outpost.api(`pulls/${pull.number}`);
      throw new Error(`${error.message}\n${verdicts.map(({ test: name, attribution, status }) => `${status} ${attribution} ${JSON.stringify(name)}`).join('\n')}`);
    });
    assert.deepEqual(view.verdicts.map(({ test: name }) => name).sort(), names.map(kept).sort());
    return view;
  }

  const assertNoNameRan = async (...places) => {
    for (const place of places) assert.ok(!(await fs.readdir(place, { recursive: true })).some((file) => path.basename(file) === 'ran'), `${place}: no name is executed`);
  };

  for (const [accelerator, sandbox, skip] of [['plain', 'none', false], ['boxed', 'bubblewrap', noSandbox]])
    test(`a machine runs exactly the listed tests, sandbox: ${sandbox}`, { skip }, async (t) => {
      const runner = await Runner.start({
        outpost, name: `machine-${accelerator}`, accelerator, steps: [{ name: 'test', run: `/usr/bin/python3 ${folder}/suite.py ${folder}/names.json "$OUTPOST_RESULTS"; grep -q '<failure' "$OUTPOST_RESULTS/report.xml" && exit 1 || exit 0` }],
        config: { sandbox, ...(sandbox === 'bubblewrap' && { allow: { read: [folder] } }), report: { files: ['results/*.xml'] }, keep: 20 },
      });
      t.after(() => runner.close());
      const pull = await opened(accelerator);
      await decided(pull);
      const ended = ({ accelerators: [{ experiments }] }) => experiments.every(({ state }) => !['planned', 'started'].includes(state));
      await outpost.waitForApi(`pulls/${pull.number}`, ended);
      const lists = { head: new Set(), base: new Set() }; // names that are red on the merge base run there twice
      let nRefused = 0;
      for (const side of ['head', 'base']) await runner.waitForLog({ ev: 'job_started', experiment: side });
      for (const job of await runner.jobs()) {
        const { change, experiment } = JSON.parse(await runner.file(job, 'change.json'));
        if (change.kind !== 'experiment') continue;
        const { conclusion, message } = JSON.parse(await runner.file(job, 'result.json'));
        if (conclusion === 'startup_failure') { // an experiment with only the name that does not fit into a line
          assert.match(message, /no test of the experiment has a name that fits into a line/);
          nRefused++;
          continue;
        }
        assert.equal(await runner.file(job, 'work/results/list.txt'), await runner.file(job, 'tests'));
        for (const name of (await runner.file(job, 'tests')).split('\n').slice(0, -1)) lists[experiment.side].add(name);
        assert.equal(change.head_sha, experiment.sha);
        assert.equal(change.change_url, `${outpost.url}/pulls/${pull.number}`);
        assert.equal(experiment.sha === pull.headSha, experiment.side === 'head');
        const asked = (await runner.file(job, 'tests')).split('\n').length - 1;
        if (asked === listed.length) assert.match(await runner.file(job, 'log'), /tests left out, because their names hold control characters: 1$/m);
      }
      const all = listed.map((name) => `unit/${name}`).sort();
      assert.deepEqual(Object.values(lists).map((list) => [...list].sort()), [all, all]);
      assert.ok(nRefused > 0, 'an experiment with an empty list is refused');
      await assertNoNameRan(runner.dir, folder);
    });

  test('a CI behind the webhook receiver runs exactly the listed tests', async (t) => {
    const lab = path.join(folder, 'lab');
    await fs.mkdir(lab);
    await fs.writeFile(path.join(lab, 'secret'), SECRET);
    await fs.writeFile(path.join(lab, 'ci.sh'), `#!/bin/sh
mkdir "$OUTPOST_DISPATCH_ID" && ${config}/client/outpost-report start
/usr/bin/python3 ${folder}/suite.py ${folder}/names.json "$OUTPOST_DISPATCH_ID"
if grep -q '<failure' "$OUTPOST_DISPATCH_ID/report.xml"; then conclusion=failure; else conclusion=success; fi
${config}/client/outpost-report finish $conclusion "$OUTPOST_DISPATCH_ID/report.xml"
`, { mode: 0o755 });
    const receiver = spawn('/usr/bin/python3', [path.join(root, 'examples/webhook-receiver/receive.py'), 'secret', String(port), './ci.sh'], { cwd: lab, env: { ...process.env, TMPDIR: lab }, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(async () => {
      const ended = once(receiver, 'exit');
      receiver.kill();
      await ended;
    });
    await once(receiver.stdout, 'data');
    const pull = await opened('lab');
    await decided(pull);
    const lists = [];
    for (const file of (await fs.readdir(lab, { recursive: true })).filter((one) => one.endsWith('list.txt'))) lists.push((await fs.readFile(path.join(lab, file), 'utf8')).split('\n').filter(Boolean).sort());
    const all = listed.map((name) => `unit/${name}`).sort();
    assert.ok(lists.filter(({ length }) => length === all.length).length >= 2, 'the full list ran on the head and on the merge base');
    for (const list of lists) assert.deepEqual(list.filter((name) => !all.includes(name)), [], 'only listed tests ran');
    await assertNoNameRan(folder);
  });

  test('the GitHub workflow that vendors copy runs exactly the listed tests', async () => {
    const vendor = path.join(folder, 'vendor');
    const upstream = path.join(folder, 'upstream');
    await fs.mkdir(path.join(vendor, '.github'), { recursive: true });
    await fs.mkdir(upstream);
    await fs.writeFile(path.join(upstream, 'VERSION'), 'the code under test\n');
    await fs.copyFile(path.join(config, 'client/outpost-report'), path.join(vendor, '.github/outpost-report'));
    await fs.copyFile(path.join(folder, 'suite.py'), path.join(vendor, 'suite.py'));
    const names = NAMES.filter((name) => !name.includes('\u2028')); // the workflow cannot report a name that does not fit into a line
    await fs.writeFile(path.join(vendor, 'names.json'), JSON.stringify(names));
    const file = path.join(folder, 'outpost.yml');
    const jobs = [{ job: 'ops', runs_on: ['self-hosted'], run: `/usr/bin/python3 $VENDOR/suite.py $VENDOR/names.json $RESULTS; find "$GITHUB_WORKSPACE" -name ran; ! grep -q '<failure' $RESULTS/report.xml` }];
    await fs.writeFile(file, (await fs.readFile(path.join(config, 'github/vendor-workflow.yml'), 'utf8')).replace(/^ {2}JOBS: \|\n( {4}.*\n)+/m, () => `  JOBS: |\n    ${JSON.stringify(jobs)}\n`));
    let runId = 9000;
    const run = async (where) => {
      const event = await rig.waitForDispatch({ repository: VENDOR, where });
      const done = await ActionsRun.run({ file, event, issuer, runId: ++runId, env: { OUTPOST_RETRIES: '0' }, repositories: { [VENDOR]: vendor, [UPSTREAM]: upstream } });
      assert.equal(done.jobs.report.result, 'success', done.log('report'));
      assert.doesNotMatch(done.log('test'), /\/ran$/m, 'no name is executed');
      return { event, log: done.log('test') };
    };
    const pull = await opened('cloud');
    await run(({ client_payload: { payload } }) => payload.number === pull.number);
    for (const side of ['head', 'base']) {
      const { event: { client_payload: { event_type: type, payload, outpost: { experiment, change_url: url } } }, log } = await run(({ client_payload: { outpost: one } }) => one.experiment?.side === side);
      assert.deepEqual([type, payload.action, payload.head_sha], ['experiment', 'experiment', experiment.sha]);
      assert.deepEqual(experiment.tests.toSorted(), names.map((name) => `unit/${kept(name)}`).sort());
      assert.deepEqual(experiment.jobs, ['ops']);
      assert.equal(url, `${outpost.url}/pulls/${pull.number}`, 'the address of the pull request is for people');
      assert.match(log, new RegExp(`checked out ${UPSTREAM} ${experiment.sha}`));
      assert.match(log, new RegExp(`^side ${side}$`, 'm'));
    }
    // Names that were red on the merge base rerun there.
    const second = await run(({ client_payload: { outpost: one } }) => one.experiment?.side === 'base' && one.experiment.tests.length < names.length);
    assert.deepEqual(second.event.client_payload.outpost.experiment.tests.filter((name) => !names.map((each) => `unit/${kept(each)}`).includes(name)), []);
    await decided(pull, names);
    await assertNoNameRan(folder);

    // A newer head cancels an experiment.
    const left = await opened('cloud');
    const { event: { client_payload: { outpost: { dispatch_id: of } } } } = await run(({ client_payload: { payload } }) => payload.number === left.number);
    const again = await rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: { outpost: one } }) => one.experiment?.of === of });
    const newer = rig.updatePull(UPSTREAM, left.number, { headSha: 'e'.repeat(40) });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('synchronize', newer, { before: left.headSha }))).status_code, 202);
    const { dispatch_id: id } = again.client_payload.outpost;
    const closed = await rig.waitForDispatch({ repository: VENDOR, where: ({ event_type: type, client_payload: { payload, outpost: one } }) => type === 'experiment' && payload.action === 'closed' && one.dispatch_id === id });
    const { jobs: idle } = await ActionsRun.run({ file, event: closed, issuer, runId: ++runId, repositories: { [VENDOR]: vendor } });
    assert.deepEqual(Object.values(idle).map(({ result }) => result), ['skipped', 'skipped', 'skipped']);
  });
});
