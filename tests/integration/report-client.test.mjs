// config/client/outpost-report, which vendors copy into any CI: in each shell, with hostile names and with all kinds of failures.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'hook secret';
const CLIENT = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../config/client/outpost-report');
const SHELLS = [['dash'], ['bash', '--posix'], ['busybox', 'sh']].filter(([program]) => existsSync(`/bin/${program}`) || existsSync(`/usr/bin/${program}`));
const green = '<testsuite name="unit"><testcase name="add"/></testsuite>';

describe('outpost-report', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let vendor;
  let folder;
  let next = 100;

  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'client-'));
    await fs.writeFile(path.join(folder, 'report.xml'), green);
    await fs.writeFile(path.join(folder, 'log.txt'), 'building\ntesting\n');
    [rig, vendor] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET })]);
    outpost = await Outpost.start({
      rig,
      accelerators: [{ name: 'lab', title: 'Lab', level: 'L2', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] }],
      secrets: { lab: { hook: SECRET } },
      config: { comment: { enabled: false } },
    });
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([vendor?.stop(), rig?.close()]);
    await fs.rm(folder, { recursive: true, force: true });
  });

  // A dispatch as a CI receives it: {number, env}
  async function dispatched() {
    const number = next++;
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    const { body } = await until(() => vendor.events.find((one) => one.body.payload.number === number), { timeout: 10_000 });
    return { number, env: { OUTPOST_CALLBACK_URL: body.outpost.callback_url, OUTPOST_TOKEN: body.outpost.callback_token, OUTPOST_RUN_ID: String(number), OUTPOST_RETRIES: '0' } };
  }

  async function report(env, args, shell = ['dash']) {
    const child = spawn(shell[0], [...shell.slice(1), CLIENT, ...args], { cwd: folder, env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => { output += text; });
    const [code] = await once(child, 'close');
    return { code, output };
  }
  const quiet = async (...args) => assert.deepEqual(await report(...args), { code: 0, output: '' });
  const view = (number) => outpost.api(`pulls/${number}`);
  const cells = async (number) => (await view(number)).verdicts.map(({ test: title, status }) => `${title} ${status}`);

  test('shellcheck finds nothing', { skip: !existsSync('/usr/bin/shellcheck') && 'shellcheck is not installed' }, () => {
    execFileSync('shellcheck', ['-s', 'sh', CLIENT]);
  });

  for (const shell of SHELLS) {
    test(`start, log, finish with a report: ${shell.join(' ')}`, async () => {
      const { number, env } = await dispatched();
      await quiet(env, ['start'], shell);
      const [job] = (await view(number)).accelerators[0].jobs;
      assert.deepEqual([job.status, job.workflow, job.name, job.run_id], ['in_progress', 'ci', 'tests', String(number)]);
      await quiet(env, ['log', 'log.txt'], shell);
      await quiet(env, ['finish', 'success', 'report.xml'], shell);
      await quiet(env, ['finish', 'success', 'report.xml'], shell);
      assert.deepEqual(await cells(number), ['add PASS']);
      assert.equal((await outpost.get(`/api/v1/jobs/${job.id}/log`)).text, 'building\ntesting\n');
    });
  }

  test('a self-started periodic run reports only its end with its report', async () => {
    const token = (await outpost.ctl('token', 'issue', 'lab')).stdout.trim();
    const head = '5'.repeat(40);
    const env = { OUTPOST_CALLBACK_URL: `${outpost.url}/github/callback`, OUTPOST_TOKEN: token, OUTPOST_RUN_ID: '7', OUTPOST_RETRIES: '0', OUTPOST_ECHO: `{"event_type": "nightly", "delivery_id": "${head}"}` };
    await quiet(env, ['start']);
    await quiet(env, ['finish', 'success', 'report.xml']);
    const { kind, verdicts } = await outpost.api(`commits/${head}`);
    assert.deepEqual([kind, verdicts.map(({ test: title, status }) => `${title} ${status}`)], ['nightly', ['add PASS']]);
    const log = await report(env, ['log', 'log.txt']);
    assert.equal(log.code, 1);
    assert.match(log.output, /^outpost-report: a run that Outpost did not ask for has no log/);
  });

  test('a self-started periodic run needs no run id (B5)', async () => {
    const token = (await outpost.ctl('token', 'issue', 'lab')).stdout.trim();
    for (const [index, shell] of SHELLS.entries()) {
      const head = String(6 + index).repeat(40);
      const env = { OUTPOST_CALLBACK_URL: `${outpost.url}/github/callback`, OUTPOST_TOKEN: token, OUTPOST_RETRIES: '0', OUTPOST_ECHO: `{"event_type": "nightly", "delivery_id": "${head}"}` };
      await quiet(env, ['finish', 'success', 'report.xml'], shell);
      const { verdicts, accelerators } = await outpost.api(`commits/${head}`);
      assert.deepEqual(verdicts.map(({ test: title, status }) => `${title} ${status}`), ['add PASS']);
      assert.match(accelerators[0].jobs[0].run_id, /^\d{14}-\d+$/);
    }
  });

  test('hostile names are passed as text', async () => {
    for (const shell of SHELLS) {
      const { number, env } = await dispatched();
      const name = 'a "b" \\ $(touch oops) `c` %s\n\t& é', shown = 'a "b" \\ $(touch oops) `c` %s& é';
      await quiet({ ...env, OUTPOST_JOB: name, OUTPOST_WORKFLOW: name, OUTPOST_BUILD_URL: 'https://ci.example/?a="b"&c=%20' }, ['finish', 'failure'], shell);
      const [job] = (await view(number)).accelerators[0].jobs;
      assert.deepEqual([job.name, job.workflow, job.url], [shown, shown, 'https://ci.example/?a="b"&c=%20']);
      assert.ok(!existsSync(path.join(folder, 'oops')));
    }
  });

  test('finish accepts the conclusions of other CIs', async () => {
    for (const [word, conclusion] of [['SUCCESS', 'success'], ['FAILURE', 'failure'], ['UNSTABLE', 'failure'], ['ABORTED', 'cancelled'], ['failed', 'failure'], ['canceled', 'cancelled']]) {
      const { number, env } = await dispatched();
      await quiet(env, ['finish', word]);
      assert.equal((await view(number)).accelerators[0].jobs[0].conclusion, conclusion);
    }
  });

  test('a job whose report is missing or invalid is not green', async () => {
    await fs.writeFile(path.join(folder, 'broken.xml'), '<testsuite><testcase');
    for (const file of ['nowhere.xml', 'broken.xml']) {
      const { number, env } = await dispatched();
      const { code, output } = await report(env, ['finish', 'success', file]);
      assert.equal(code, 1);
      assert.match(output, new RegExp(`outpost-report: the report ${file} was not taken`));
      assert.deepEqual(await cells(number), ['tests MISS']);
    }
  });

  test('the exit code is 0 only if the server accepts the report, 1 if not, and 2 for wrong usage (B5, B14)', async () => {
    const { env } = await dispatched();
    const troubles = [
      [{}, ['start']], [{ ...env, OUTPOST_TOKEN: '' }, ['start']], [env, ['log', 'nowhere.txt']], [{ ...env, OUTPOST_TOKEN: 'wrong' }, ['start']],
      [{ ...env, OUTPOST_CALLBACK_URL: 'http://127.0.0.1:1/api/v1/dispatches/x/jobs' }, ['finish', 'success']], [{ ...env, OUTPOST_RUN_ID: '' }, ['start']],
    ];
    for (const [vars, args] of troubles) {
      const { code, output } = await report(vars, args);
      assert.equal(code, 1, output);
      assert.match(output, /^outpost-report: /m, JSON.stringify(args));
      assert.doesNotMatch(output, new RegExp(env.OUTPOST_TOKEN), 'the output does not contain the token');
    }
    for (const args of [[], ['log'], ['begin'], ['start', 'now'], ['finish'], ['finish', 'success', 'report.xml', 'more']]) {
      const { code, output } = await report(env, args);
      assert.equal(code, 2, output);
      assert.match(output, /^Usage: outpost-report start/, JSON.stringify(args));
    }
    assert.equal((await report(env, ['start'])).code, 0);
  });

  test('--help prints the usage without an environment (B14)', async () => {
    for (const shell of SHELLS)
      for (const word of ['--help', '-h', 'help']) {
        const { code, output } = await report({}, [word], shell);
        assert.equal(code, 0, output);
        assert.match(output, /^Usage: outpost-report start[^]*OUTPOST_CALLBACK_URL[^]*Exit code: /);
      }
  });

  test('a refusal prints the status on one line and the reason on the next (B14)', async () => {
    const answers = { 400: '{"detail":"workflow.run_id is missing"}', 409: '{"detail":"a \\"quoted\\" word","bytes":5}', 404: '<html>no such page</html>', 403: '' };
    const reasons = { 400: 'workflow.run_id is missing', 409: 'a \\"quoted\\" word', 404: '<html>no such page</html>', 403: 'the answer is empty' };
    const server = http.createServer((request, response) => {
      request.resume();
      response.writeHead(Number(request.url.slice(1))).end(answers[request.url.slice(1)]);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    for (const shell of SHELLS)
      for (const status of Object.keys(answers)) {
        const env = { OUTPOST_CALLBACK_URL: `http://127.0.0.1:${server.address().port}/${status}`, OUTPOST_TOKEN: 'x', OUTPOST_RUN_ID: '1', OUTPOST_RETRIES: '0' };
        assert.deepEqual(await report(env, ['start'], shell), { code: 1, output: `outpost-report: the job (in_progress) was not taken: HTTP ${status}\noutpost-report: ${reasons[status]}\n` });
      }
    server.close();
  });

  test('a busy server is retried, and no command line contains the token', async () => {
    let asked = 0;
    let commandLines = '';
    const server = http.createServer(async (request, response) => {
      request.resume();
      if (asked++ === 0) {
        for (const pid of (await fs.readdir('/proc')).filter((name) => /^\d+$/.test(name))) commandLines += await fs.readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
        response.writeHead(503, { 'retry-after': '0' }).end('{"detail":"busy"}');
      } else {
        response.end('{"ok":true,"status":"in_progress","job":7,"report_url":"https://x"}');
      }
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${server.address().port}/api/v1/dispatches/x/jobs`;
    const { code, output } = await report({ OUTPOST_CALLBACK_URL: url, OUTPOST_TOKEN: 'very-secret-token', OUTPOST_RUN_ID: '1' }, ['start']);
    server.close();
    assert.equal(code, 0, output);
    assert.equal(asked, 2);
    assert.match(commandLines, /--retry/);
    assert.doesNotMatch(commandLines, /very-secret-token/);
  });
});
