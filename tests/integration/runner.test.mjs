// outpost-runner with a real outpostd: from a webhook to the comment, with failures at each stage. Steps wait for a file that the
// test creates, so no test depends on durations.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import tls from 'node:tls';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { removeFolder } from './lib/folder.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { OUTPOST_RUNNER, Runner, addRunner, runnerNotBuilt } from './lib/runner.mjs';

const UPSTREAM = 'pytorch/pytorch';
const LONG = { timeout: 30_000 };
const skip = notBuilt || runnerNotBuilt;
const works = (...command) => spawnSync(command[0], command.slice(1)).status === 0;
const noSandbox = !works('bwrap', '--ro-bind', '/', '/', '--unshare-all', 'true') && 'bubblewrap does not work here';
const noMounts = !works('unshare', '-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt') && 'no mount namespaces here';

const chip = (name, more = {}) => ({
  name, title: name, level: 'L2', runners: [{ name: 'farm', pull: { labels: [], max_parallel: 5 } }], triggers: { pull_request: { label: 'required' } }, ...more,
});

// A step that records its run, waits for the gate and writes a report.
const STEP = `echo "run $OUTPOST_ATTEMPT of $OUTPOST_DISPATCH_ID" | tee -a "$RUNS"
until [ -e "$GATE" ]; do sleep 0.05; done
echo "the gate is open"
echo '<testsuite name="unit"><testcase name="add"/><testcase name="mul"><failure message="7 is not 8"/></testcase></testsuite>' > "$OUTPOST_RESULTS/junit.xml"`;

// One accelerator, one machine and the gate for which its steps wait.
class Lab {
  static next = 100;

  // options: rig, outpost, name (of the accelerator); the others go to the machine
  static async open({ rig, outpost, name, step = STEP, start = true, config = {}, ...options }) {
    const self = new Lab();
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-lab-'));
    Object.assign(self, { rig, outpost, name, dir, gate: path.join(dir, 'gate'), runs: path.join(dir, 'runs') });
    await fs.writeFile(self.runs, '');
    self.runner = await Runner.prepare({
      outpost, name: 'machine', accelerator: name, steps: [{ name: 'test', run: step }],
      config: { environment: { GATE: self.gate, RUNS: self.runs }, report: { files: ['results/*.xml'] }, ...config }, ...options,
    });
    if (start) await self.runner.spawn();
    return self;
  }

  openGate() {
    return fs.writeFile(this.gate, '');
  }

  // Opens a pull request that only this accelerator tests.
  async pull(more = {}) {
    const pull = this.rig.openPull(UPSTREAM, { number: Lab.next++, labels: [`ciflow/crcr/${this.name}`], ...more });
    await this.deliver('opened', pull);
    return pull;
  }

  async push(pull) {
    const next = this.rig.updatePull(UPSTREAM, pull.number, { headSha: randomBytes(20).toString('hex') });
    await this.deliver('synchronize', next, { before: pull.headSha });
    return next;
  }

  async deliver(action, pull, options) {
    assert.equal((await this.rig.deliver('pull_request', pullRequestOf(action, pull, options))).status_code, 202);
  }

  // Waits until the accelerator's part of the pull request fits, and returns it.
  async of(pull, fits) {
    const mine = (json) => json.accelerators.find(({ name }) => name === this.name);
    return mine(await this.outpost.waitForApi(`pulls/${pull.number}`, (json) => mine(json)?.dispatches.length > 0 && fits(mine(json), json), LONG));
  }

  done(pull) {
    return this.of(pull, ({ dispatches }) => dispatches[0].state === 'done');
  }

  async running(pull) {
    const view = await this.of(pull, ({ dispatches, jobs }) => dispatches[0].state === 'running' && jobs.length > 0);
    await until(async () => (await this.executions()).length > 0, { ...LONG, what: 'the step runs' });
    return view.jobs.at(-1);
  }

  async executions() {
    return (await fs.readFile(this.runs, 'utf8')).split('\n').filter(Boolean);
  }

  async log(job) {
    return (await this.outpost.get(`/api/v1/jobs/${job.id}/log`)).text;
  }

  async close() {
    await this.openGate();
    await this.runner.close();
    await removeFolder(this.dir);
  }
}

const times = (text, part) => text.split(part).length - 1;

describe('a machine that claims work', { skip }, () => {
  let rig;
  let outpost;
  const names = ['whole', 'cancelled', 'drained', 'late', 'twice', 'killed', 'unplugged', 'away', 'summary', 'proxied', 'once', 'shared', 'rotated', 'wrong', 'stray', 'sandboxed', 'crowded'];

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({ rig, accelerators: names.map((name) => chip(name, name === 'summary' ? { visibility: 'summary' } : {})) });
  });

  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  const lab = async (t, name, options) => {
    const one = await Lab.open({ rig, outpost, name, ...options });
    t.after(() => one.close());
    return one;
  };

  test('a webhook leads to a job with a log that can be followed, and to a comment', async (t) => {
    const one = await lab(t, 'whole');
    const pull = await one.pull();
    const job = await one.running(pull);
    assert.deepEqual([job.workflow, job.name, job.status], ['farm', 'tests', 'in_progress']);
    // Its log can be read while it runs.
    const followed = http.get(`${outpost.url}/api/v1/jobs/${job.id}/log?follow=1`);
    const [stream] = await once(followed, 'response');
    let text = '';
    for await (const piece of stream) {
      text += piece;
      if (text.includes('run 1 of') && !text.includes('the gate is open')) await one.openGate();
    }
    assert.match(text, /run 1 of[\s\S]*the gate is open/);
    const view = await one.done(pull);
    assert.deepEqual([view.jobs.length, view.jobs[0].status, view.jobs[0].conclusion], [1, 'completed', 'success']);
    const { verdicts } = await outpost.api(`pulls/${pull.number}`);
    assert.deepEqual(verdicts.filter(({ accelerator }) => accelerator === 'whole').map(({ suite, test: name, status, message }) => [suite, name, status, message]).sort(),
      [['unit', 'add', 'PASS', null], ['unit', 'mul', 'FAIL', '7 is not 8']].map(([a, b, c, d]) => [a, b, c, d ?? verdicts.find(({ test: n }) => n === 'add').message]));
    assert.equal(await one.log(job), text);
    const [comment] = await until(() => { const all = rig.comments(UPSTREAM, pull.number).filter(({ body }) => body.includes('7 is not 8')); return all.length > 0 && all; }, LONG);
    assert.match(comment.body, /mul/);
    await one.runner.waitForLog({ ev: 'job_over', as: 'sent' });
    assert.equal((await one.executions()).length, 1);
    await one.runner.stop();
  });

  test('a new push stops the running step, and the machine claims the new head', async (t) => {
    const one = await lab(t, 'cancelled');
    const pull = await one.pull();
    await one.running(pull);
    const next = await one.push(pull);
    await one.runner.waitForLog({ ev: 'job_cancelled' });
    await one.runner.waitForLog({ ev: 'job_ended', conclusion: 'cancelled' });
    await until(async () => (await one.executions()).length === 2, LONG);
    await one.openGate();
    await one.of(next, ({ dispatches }, json) => json.head_sha === next.headSha && dispatches[0].state === 'done');
    const old = await outpost.api(`commits/${pull.headSha}`);
    assert.equal(old.accelerators[0].jobs[0].conclusion, 'cancelled');
  });

  test('SIGTERM lets the running job finish', async (t) => {
    const one = await lab(t, 'drained');
    const pull = await one.pull();
    await one.running(pull);
    one.runner.signal('SIGTERM');
    await one.runner.waitForLog({ ev: 'stopping' });
    const other = await one.pull();
    await one.openGate();
    assert.deepEqual(await one.runner.exited, { code: 0, signal: null });
    await one.done(pull);
    await one.of(other, ({ dispatches }) => dispatches[0].state === 'queued'); // the agent claimed no further work
  });

  test('a job that does not finish within drain is returned at once', async (t) => {
    const one = await lab(t, 'late', { config: { drain: '200ms' } });
    const pull = await one.pull();
    await one.running(pull);
    await one.runner.stop();
    await one.of(pull, ({ dispatches }) => dispatches[0].state === 'queued');
    assert.match(await one.runner.file((await one.runner.jobs())[0], 'progress'), /"returned"/);
    await one.openGate();
    await one.runner.spawn();
    const view = await one.done(pull);
    assert.equal(Number(view.jobs.at(-1).run_attempt), 2);
    assert.equal((await one.executions()).length, 2);
  });

  test('a second SIGTERM returns the job at once', async (t) => {
    const one = await lab(t, 'twice');
    const pull = await one.pull();
    await one.running(pull);
    one.runner.signal('SIGTERM');
    await one.runner.waitForLog({ ev: 'stopping' });
    one.runner.signal('SIGTERM');
    assert.deepEqual(await one.runner.exited, { code: 0, signal: null });
    await one.of(pull, ({ dispatches }) => dispatches[0].state === 'queued');
  });

  test('after kill -9 of the agent, the steps go on and run once', async (t) => {
    const one = await lab(t, 'killed');
    const pull = await one.pull();
    const job = await one.running(pull);
    await one.runner.kill();
    await one.runner.spawn();
    await one.runner.waitForLog({ ev: 'job_found_running' });
    await one.openGate();
    const view = await one.done(pull);
    assert.deepEqual([view.jobs.length, view.jobs[0].conclusion], [1, 'success']);
    assert.equal((await one.executions()).length, 1);
    const text = await one.log(job);
    assert.deepEqual([times(text, 'run 1 of'), times(text, 'the gate is open')], [1, 1]);
  });

  test('after kill -9 of the agent, the next agent sends the report of a job that ended meanwhile', async (t) => {
    const one = await lab(t, 'unplugged');
    const pull = await one.pull();
    await one.running(pull);
    await one.runner.kill();
    await one.openGate();
    const [folder] = await one.runner.jobs();
    await until(() => one.runner.file(folder, 'result.json'), LONG);
    await one.runner.spawn();
    const view = await one.done(pull);
    assert.deepEqual([view.jobs.length, (await one.executions()).length], [1, 1]);
  });

  test('the journal keeps a job that ends while the server is down, even across a restart of the agent', async (t) => {
    const one = await lab(t, 'away');
    const pull = await one.pull();
    const job = await one.running(pull);
    await outpost.kill();
    await one.openGate();
    await one.runner.waitForLog({ ev: 'job_ended' });
    await one.runner.waitForLog({ ev: 'server_away' });
    await one.runner.stop();
    await one.runner.spawn();
    await one.runner.waitForLog({ ev: 'job_found_ended' });
    await outpost.spawn();
    const view = await one.done(pull);
    assert.deepEqual([view.jobs.length, view.jobs[0].conclusion, (await one.executions()).length], [1, 'success', 1]);
    const text = await one.log(job);
    assert.deepEqual([times(text, 'run 1 of'), times(text, 'the gate is open')], [1, 1]);
  });

  test('with visibility summary, only the end of a failing step\'s log leaves the machine', async (t) => {
    const one = await lab(t, 'summary', { step: 'i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo "private line $i"; done; echo "the reason"; exit 3', config: { report: undefined } });
    const pull = await one.pull();
    const view = await one.done(pull);
    assert.equal(view.jobs[0].conclusion, 'failure');
    const text = await one.log(view.jobs[0]);
    assert.match(text, /only a summary/);
    assert.match(text, /the reason/);
    assert.doesNotMatch(text, /private line 1\n/);
  });

  test('all requests go through a proxy', async (t) => {
    let n = 0;
    const proxy = http.createServer((request, response) => {
      n++;
      const to = http.request(request.url, { method: request.method, headers: request.headers }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      to.on('error', () => response.destroy());
      response.on('close', () => to.destroy());
      request.pipe(to);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    t.after(() => { proxy.close(); proxy.closeAllConnections(); });
    const one = await lab(t, 'proxied', { env: { http_proxy: `http://127.0.0.1:${proxy.address().port}`, no_proxy: '', NO_PROXY: '' } });
    await one.openGate();
    await one.done(await one.pull());
    assert.ok(n >= 4, `${n} requests went through the proxy`);
  });

  test('--once runs one job and ends; --check claims none', async (t) => {
    const one = await lab(t, 'once', { start: false });
    assert.deepEqual(await one.runner.check().then(({ code, stderr }) => [code, stderr]), [0, '']);
    await one.openGate();
    const [first, second] = [await one.pull(), await one.pull()];
    await one.runner.spawn('--once');
    assert.deepEqual(await one.runner.exited, { code: 0, signal: null });
    const state = async (pull) => (await one.of(pull, () => true)).dispatches[0].state;
    assert.deepEqual([await state(first), await state(second)].sort(), ['done', 'queued']);
    await one.runner.configure({ step: 1 });
    const wrong = await one.runner.check();
    assert.deepEqual([wrong.code, /runner\.yml:\d+: unknown key "step"; did you mean "steps"\?/.test(wrong.stderr)], [1, true]);
  });

  test('in bubblewrap a change is checked out, tested and reported, and cannot reach the machine', { skip: noSandbox }, async (t) => {
    const origin = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-origin-'));
    t.after(() => removeFolder(origin));
    const git = (...args) => execFileSync('git', ['-C', origin, '-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args]).toString().trim();
    git('init', '-q', '-b', 'main');
    // The script of a hostile change, which runs as a step.
    await fs.writeFile(path.join(origin, 'attack.sh'), `
reach() { "$@" > /dev/null 2>&1 && echo "REACHED: $*"; }
reach cat "$LAB/token"; reach cat "$LAB/runner.yml"; reach ls "$LAB/work/agent.lock"
reach touch "$(cat .git/objects/info/alternates)/x" "$LAB/work/x"
[ "$(ls -d "$LAB"/work/jobs/*/ | wc -l)" = 1 ] || echo "REACHED: other jobs"
[ "$(ls ..)" = "$(printf 'change.json\nwork')" ] || echo "REACHED: $(ls ..)"
reach bash -c "exec 3<>/dev/tcp/127.0.0.1/${new URL(outpost.url).port}"
[ "$(ls /proc | grep -c '^[0-9]')" -lt 12 ] || echo "REACHED: other processes"
(trap '' TERM HUP; setsid sleep 600 &)
echo "attacked as $(git log -1 --format=%s)"
`);
    git('add', '-A');
    git('commit', '-qm', 'a hostile change');
    const one = await lab(t, 'sandboxed', { start: false });
    const step = `sh attack.sh; echo '<testsuite name="unit"><testcase name="add"/></testsuite>' > "$OUTPOST_RESULTS/junit.xml"`;
    const hang = `[ "$OUTPOST_PR" = ${Lab.next} ] || { echo hangs; exec sleep 600; }`;
    await one.runner.configure({ sandbox: 'bubblewrap', allow: { read: [path.join(origin, 'attack.sh')] }, checkout: { git_url: origin },
      environment: { LAB: one.runner.dir }, steps: [{ name: 'attack', run: step }, { name: 'hang', run: hang }] });
    await one.runner.spawn();
    const pull = await one.pull({ headSha: git('rev-parse', 'HEAD') });
    const { jobs: [job] } = await one.done(pull);
    const log = await one.log(job);
    assert.match(log, /\nattacked as a hostile change\n/);
    assert.doesNotMatch(log, /REACHED/);
    assert.deepEqual([job.status, job.conclusion], ['completed', 'success'], log);
    // a cancel reaches the sandbox, too
    git('commit', '-q', '--allow-empty', '-m', 'another');
    const second = await one.pull({ headSha: git('rev-parse', 'HEAD') });
    await until(async () => { const { jobs } = await one.of(second, ({ jobs: all }) => all.length > 0); return (await one.log(jobs[0])).includes('\nhangs\n'); }, { ...LONG, what: 'the step hangs' });
    await one.push(second);
    await one.runner.waitForLog({ ev: 'job_ended', conclusion: 'cancelled' });
  });

  test('the agent removes kept jobs if there is no room for work', { skip: noMounts }, async (t) => {
    const one = await lab(t, 'crowded', { start: false });
    const program = path.join(one.dir, 'small');
    await fs.mkdir(one.runner.workDir);
    await fs.writeFile(program, `#!/bin/sh\nexec unshare -rm sh -c 'mount -t tmpfs -o size=190m none "${one.runner.workDir}" && exec "${OUTPOST_RUNNER}" "$@"' sh "$@"\n`, { mode: 0o755 });
    one.runner.options.program = program;
    // a job needs 96 MiB in addition to its log
    await one.runner.configure({ log: { max: '1MiB', level: 'debug' }, steps: [{ name: 'build', run: `head -c 100000000 /dev/zero > build; ${STEP}` }] });
    await one.openGate();
    await one.runner.spawn();
    await one.done(await one.pull());
    await one.runner.waitForLog({ ev: 'no_room' });
    await one.runner.waitForLog({ ev: 'room_again' });
    await one.done(await one.pull());
  });

  test('a second agent on one work folder refuses to start', async (t) => {
    const one = await lab(t, 'shared');
    const second = await Runner.prepare({ outpost, name: 'second', accelerator: 'shared', steps: [{ name: 'a', run: 'true' }], wait: false, config: { work_dir: one.runner.workDir } });
    t.after(() => second.close());
    await second.spawn();
    const { fields } = await second.waitForLog({ ev: 'start_failed' });
    assert.match(fields.why, /in use by another outpost-runner/);
    assert.equal((await second.exited).code, 1);
  });

  test('after a refused token, SIGHUP loads a rotated one', async (t) => {
    const one = await lab(t, 'rotated', { token: 'not-a-token' });
    const { fields } = await one.runner.waitForLog({ ev: 'token_refused' });
    assert.match(fields.why, /the token was refused: 401/);
    await one.runner.writeToken(await addRunner(outpost, 'machine', 'rotated'));
    one.runner.signal('SIGHUP');
    await one.openGate();
    await one.done(await one.pull());
    assert.doesNotMatch(one.runner.tail(1000), /not-a-token/);
  });

  test("the log says if the token is another accelerator's", async (t) => {
    const one = await lab(t, 'wrong', { token: await addRunner(outpost, 'machine', 'stray') });
    const { fields } = await one.runner.waitForLog({ ev: 'claim_refused' });
    assert.match(fields.why, /403: the token is for accelerator stray/, 'the claim is refused before there is work');
    assert.equal((await one.executions()).length, 0);
  });
});

describe('the server is killed in the middle of a job', { skip }, () => {
  test('the steps continue, and the log has no gap', async (t) => {
    const rig = await startRig();
    const outpost = await Outpost.start({ rig, accelerators: [chip('npu')], config: { pull: { lease: '2s' } } });
    const one = await Lab.open({ rig, outpost, name: 'npu' });
    t.after(async () => {
      await one.close();
      await outpost.close();
      await rig.close();
    });
    const pull = await one.pull();
    const job = await one.running(pull);
    await outpost.kill();
    await one.runner.waitForLog({ ev: 'lease_doubtful' });
    await outpost.spawn();
    await one.runner.waitForLog({ ev: 'lease_sure_again' });
    await one.openGate();
    const view = await one.done(pull);
    assert.deepEqual([view.jobs.length, view.jobs[0].conclusion, (await one.executions()).length], [1, 'success', 1]);
    assert.deepEqual([times(await one.log(job), 'run 1 of'), times(await one.log(job), 'the gate is open')], [1, 1]);
  });
});

describe('a server with a private certificate', { skip }, () => {
  test('is accepted if ca_file has its certificate', async (t) => {
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-tls-'));
    const [key, cert] = [path.join(dir, 'key.pem'), path.join(dir, 'cert.pem')];
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost',
      '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'], { stdio: 'ignore' });
    const rig = await startRig();
    const outpost = await Outpost.start({ rig, accelerators: [chip('npu')] });
    const front = tls.createServer({ key: await fs.readFile(key), cert: await fs.readFile(cert) }, (socket) => {
      const to = net.connect(outpost.port, '127.0.0.1');
      for (const end of [socket, to]) end.on('error', () => { socket.destroy(); to.destroy(); });
      socket.pipe(to).pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(front, 'listening');
    const { port } = front.address();
    const connects = [];
    const proxy = http.createServer().on('connect', (request, socket, head) => {
      connects.push(request.url);
      const to = net.connect(Number(request.url.split(':')[1]), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        to.write(head);
        socket.pipe(to).pipe(socket);
      });
      for (const end of [socket, to]) end.on('error', () => { socket.destroy(); to.destroy(); });
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const one = await Lab.open({ rig, outpost, name: 'npu', start: false, server: `https://127.0.0.1:${port}`, env: { HTTPS_PROXY: `http://127.0.0.1:${proxy.address().port}`, no_proxy: '', NO_PROXY: '' } });
    t.after(async () => {
      await one.close();
      proxy.close();
      proxy.closeAllConnections();
      front.close();
      await outpost.close();
      await rig.close();
      await removeFolder(dir);
    });
    await one.openGate();
    await one.runner.spawn();
    const { fields } = await one.runner.waitForLog({ ev: 'server_away' });
    assert.match(fields.why, /certificate/i);
    await one.runner.stop();
    await one.runner.configure({ ca_file: cert });
    await one.runner.spawn();
    await one.done(await one.pull());
    assert.ok(connects.length > 0 && connects.every((to) => to === `127.0.0.1:${port}`), `${connects}`);
  });
});
