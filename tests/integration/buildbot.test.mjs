// A real vendor CI: Debian's Buildbot, master and worker, with the files of examples/buildbot. Outpost's signed webhook starts
// a build, which checks the change out, runs pytest and reports with the shell client.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { removeFolder } from './lib/folder.mjs';
import { Outpost, freePort, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'between Outpost and the lab';
const PATIENCE = 60_000;
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const missing = ['/usr/bin/buildbot', '/usr/bin/buildbot-worker', '/usr/lib/python3/dist-packages/pytest'].filter((file) => !existsSync(file));
const skip = notBuilt || (missing.length > 0 && `not installed: ${missing.join(', ')} (Debian: buildbot buildbot-worker python3-pytest)`);

describe('Buildbot', { skip }, () => {
  let rig;
  let outpost;
  let folder;
  let hook;
  const programs = [];

  const git = (...args) => execFileSync('git', ['-C', path.join(folder, 'upstream'), ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();

  // Runs in the foreground; resolves when the log in its folder says that it is ready.
  async function start(program, place, ready, env = {}) {
    const child = spawn(program, ['start', '--nodaemon', place], { env: { ...process.env, PATH: `/usr/bin:/bin:${process.env.PATH}`, ...env }, stdio: 'ignore' });
    child.log = () => readFileSync(path.join(place, 'twistd.log'), 'utf8');
    programs.push(child);
    await until(() => {
      if (child.exitCode !== null) throw new Error(`${program} ended`);
      return ready.test(child.log());
    }, { timeout: PATIENCE, what: `${program} has begun` }).catch((error) => { throw new Error(`${error.message}\n${child.log()}`); });
  }

  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-buildbot-'));
    const master = path.join(folder, 'master');
    const worker = path.join(folder, 'worker');
    const [listen, workerPort] = [await freePort(), await freePort()];
    hook = `http://127.0.0.1:${listen}/`;
    await fs.mkdir(path.join(folder, 'upstream'));
    git('init', '-q', '-b', 'main');
    const quiet = { stdio: 'ignore' };
    execFileSync('/usr/bin/buildbot', ['create-master', master], quiet);
    for (const file of ['master.cfg', 'outpost_scheduler.py', 'test_smoke.py']) await fs.copyFile(path.join(root, 'examples/buildbot', file), path.join(master, file));
    for (const file of ['outpost-report', 'outpost_tests.py']) await fs.copyFile(path.join(root, 'config/client', file), path.join(master, file));
    await fs.writeFile(path.join(master, 'outpost-secret'), `${SECRET}\n`);
    execFileSync('/usr/bin/buildbot-worker', ['create-worker', worker, `127.0.0.1:${workerPort}`, 'npu-17', 'pass'], quiet);
    const env = {
      OUTPOST_LISTEN: `tcp:${listen}:interface=127.0.0.1`, OUTPOST_WORKER_PORT: `tcp:${workerPort}:interface=127.0.0.1`, OUTPOST_WORKER_PASSWORD: 'pass',
      OUTPOST_UPSTREAM: path.join(folder, 'upstream'), OUTPOST_PYTHON: '/usr/bin/python3',
      OUTPOST_TEST: 'sh ./prepare.sh && PYTHONPATH=.. /usr/bin/python3 -m pytest -p outpost_tests ../tests -p no:cacheprovider --junitxml=../results/report.xml',
    };
    [rig] = await Promise.all([
      startRig(),
      start('/usr/bin/buildbot', master, /BuildMaster is running/, env)
        .then(() => start('/usr/bin/buildbot-worker', worker, /Connected to/)),
    ]);
    outpost = await Outpost.start({
      rig,
      accelerators: [{ name: 'lab-npu', title: 'Lab NPU', level: 'L2', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: hook, secret: 'hook' } }] }],
      secrets: { 'lab-npu': { hook: SECRET } },
    });
  });

  after(async () => {
    if (process.env.KEEP) console.error(programs.map(({ log }) => log()).join('\n'));
    await Promise.all(programs.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    }));
    await outpost?.close();
    await rig?.close();
    await removeFolder(folder);
  });

  // Opens a pull request whose head the worker can check out. The build runs the script `prepare` first.
  async function opened(number, prepare) {
    await fs.writeFile(path.join(folder, 'upstream/prepare.sh'), prepare);
    git('add', '-A');
    git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', `change ${number}`);
    git('update-ref', `refs/pull/${number}/head`, 'HEAD');
    const pull = rig.openPull(UPSTREAM, { number, headSha: git('rev-parse', 'HEAD') });
    const answer = await rig.deliver('pull_request', pullRequestOf('opened', pull));
    assert.equal(answer.status_code, 202);
    return pull;
  }
  const npu = (view) => view.accelerators.find(({ name }) => name === 'lab-npu');
  const done = (number, what = (view) => npu(view)?.jobs[0]?.status === 'completed') => outpost.waitForApi(`pulls/${number}`, what, { timeout: PATIENCE });
  const cells = (view) => view.verdicts.map(({ test: title, status }) => `${title} ${status}`).sort();

  test('a build\'s results appear on the pull request', async () => {
    const { headSha } = await opened(11, 'git rev-parse HEAD');
    const view = await done(11);
    assert.deepEqual(cells(view), ['tests.test_smoke.test_arithmetic PASS', 'tests.test_smoke.test_the_change_is_checked_out PASS']);
    const [job] = npu(view).jobs;
    assert.deepEqual([job.workflow, job.name, job.conclusion, job.url], ['buildbot', 'npu', 'success', 'https://buildbot.example.com/#builders/npu/builds/1']);
    const { text } = await outpost.get(`/api/v1/jobs/${job.id}/log`);
    assert.match(text, new RegExp(`^${headSha}\n`), 'the build checked out the head');
    assert.match(text, /2 passed/);
    await until(() => rig.comments(UPSTREAM, 11).some(({ body }) => /Lab NPU/.test(body) && /test_arithmetic.*✓/.test(body)), { timeout: PATIENCE, what: 'the comment has the result' });
  });

  test('a build that breaks before its tests is red', async () => {
    await opened(12, 'echo "error: no such operator"; exit 3');
    const view = await done(12);
    assert.deepEqual(cells(view), ['npu FAIL']);
    assert.match((await outpost.get(`/api/v1/jobs/${npu(view).jobs[0].id}/log`)).text, /no such operator/);
  });

  test('closing the pull request stops the build with its processes', async () => {
    const mark = path.join(folder, 'mark');
    const pull = await opened(13, `sleep 1000 & echo $! >${mark}.new && mv ${mark}.new ${mark}; wait`);
    await until(() => existsSync(mark), { timeout: PATIENCE });
    const pid = Number(await fs.readFile(mark, 'utf8'));
    await rig.deliver('pull_request', pullRequestOf('closed', rig.updatePull(UPSTREAM, pull.number, { state: 'closed' })));
    await until(() => !existsSync(`/proc/${pid}`), { timeout: PATIENCE, what: 'the step has ended' });
    await done(13, (view) => npu(view)?.jobs[0]?.conclusion === 'cancelled');
  });

  const send = async (event, body, secret = SECRET) => {
    const text = JSON.stringify(body);
    const signature = `sha256=${createHmac('sha256', secret).update(text).digest('hex')}`;
    return (await fetch(hook, { method: 'POST', body: text, headers: { 'x-outpost-event': event, 'x-hub-signature-256': signature } })).status;
  };

  test('an experiment tests its commit with only the listed tests, even if their names are hostile', async () => {
    const list = path.join(folder, 'list');
    const seen = path.join(folder, 'seen');
    const { headSha } = await opened(14, `echo "\${OUTPOST_TESTS-unset}" >>${seen}; [ -z "\${OUTPOST_TESTS-}" ] || cp "$OUTPOST_TESTS" ${list}; git rev-parse HEAD >>${seen}`);
    await done(14);
    assert.equal(await fs.readFile(seen, 'utf8'), `unset\n${headSha}\n`, 'an ordinary build lists no tests');
    const hostile = ['unit/$(touch ran) `touch ran`', "unit/'; touch ran; '", '-k/%(prop:outpost_token)s'];
    const experiment = (id, tests) => ({
      payload: { action: 'experiment', repository: { full_name: UPSTREAM }, ref: 'refs/pull/14/head', head_sha: headSha },
      outpost: {
        dispatch_id: id, action: 'experiment', callback_url: `${outpost.url}/api/v1/dispatches/${id}/jobs`, callback_token: 'none',
        experiment: { id: 7, of: 'd0', side: 'head', sha: headSha, tests, jobs: ['npu'] },
      },
    });
    assert.equal(await send('experiment', experiment('none', ['unit/a\nunit/b'])), 400, 'a list without a usable test does not mean all tests');
    const ended = () => [...programs[0].log().matchAll(/: build finished$/gm)].length;
    await until(() => ended() === [...programs[0].log().matchAll(/added buildset (\d+)/g)].length, { timeout: PATIENCE, what: 'the ordinary build has ended' });
    const before = ended();
    assert.equal(await send('experiment', experiment('rerun', ['pytest/tests.test_smoke.test_arithmetic', ...hostile, 'unit/a\nunit/b'])), 202);
    const worker = path.join(folder, 'worker/npu');
    await until(() => ended() > before, { timeout: PATIENCE, what: 'the experiment ran' });
    assert.equal(await fs.readFile(list, 'utf8'), ['pytest/tests.test_smoke.test_arithmetic', ...hostile].map((one) => `${one}\n`).join(''));
    assert.match(await fs.readFile(path.join(worker, 'results/log.txt'), 'utf8'), /1 passed, 1 deselected/);
    assert.ok((await fs.readFile(seen, 'utf8')).endsWith(`${headSha}\n`));
    assert.ok(!(await fs.readdir(worker, { recursive: true })).includes('build/ran'), 'no name is executed');
  });

  test('a wrong secret starts no build, and a repeated webhook starts one build', async () => {
    const sha = git('rev-parse', 'refs/pull/11/head');
    const body = {
      payload: { number: 11, pull_request: { head: { sha } }, repository: { full_name: UPSTREAM } },
      outpost: { dispatch_id: 'repeated', callback_url: `${outpost.url}/api/v1/dispatches/repeated/jobs`, callback_token: 'none' },
    };
    const master = programs[0];
    const builds = () => [...master.log().matchAll(/added buildset (\d+)/g)].length;
    const before = builds();
    assert.equal(await send('pull_request', body, 'guessed'), 401);
    assert.equal(await send('pull_request', { ...body, outpost: { ...body.outpost, dispatch_id: '../escape' } }), 400);
    assert.equal(builds(), before);
    assert.deepEqual([await send('pull_request', body), await send('pull_request', body)], [202, 202]);
    assert.equal(builds(), before + 1);
    assert.doesNotMatch(master.log(), /callback_token|eyJ/, 'the log contains no token');
  });
});
