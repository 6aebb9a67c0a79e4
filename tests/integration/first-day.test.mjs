// The first day of a vendor and of an operator, on the built programs: refused tokens, failing connections,
// `--check --online`, and secret files that every user can read (B6, B11).
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Outpost, freePort, notBuilt, runProgram } from './lib/outpost.mjs';
import { OUTPOST_RUNNER, Runner, addRunner, runnerNotBuilt } from './lib/runner.mjs';

const UPSTREAM = 'pytorch/pytorch';
const WRONG = `ort_${'A'.repeat(43)}`;
const steps = [{ name: 'test', run: 'true' }];

describe('a first day', { skip: notBuilt || runnerNotBuilt }, () => {
  let rig;
  let outpost;
  let token; // npu-1's
  let apiToken;
  const opened = [];

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({
      rig,
      accelerators: [
        { name: 'npu', title: 'NPU', level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'farm', pull: { labels: ['npu', '910b'] } }, { name: 'old', pull: { labels: ['910a'] } }] },
        { name: 'lab', title: 'Lab', level: 'L2', trust: 'anyone', triggers: { pull_request: false, push: true }, runners: [{ name: 'farm', pull: { labels: [] } }] },
      ],
      config: { comment: { enabled: false } },
    });
    token = await addRunner(outpost, 'npu-1', 'npu');
    apiToken = (await outpost.ctl('token', 'issue', 'npu')).stdout.trim();
  });
  after(async () => {
    for (const one of opened) await one.close();
    await outpost?.close();
    await rig?.close();
  });

  async function machine(options) {
    const one = await Runner.prepare({ outpost, name: 'npu-1', accelerator: 'npu', token, steps, ...options });
    opened.push(one);
    return one;
  }
  const online = (one) => runProgram(OUTPOST_RUNNER, ['-c', one.configFile, '--check', '--online'], { cwd: one.dir });
  // A fake Outpost that gives a chosen answer.
  async function standIn(answer) {
    const server = http.createServer((request, response) => {
      const [status, body] = answer(request);
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    opened.push({ close: () => new Promise((resolve) => server.close(resolve)) });
    return `http://127.0.0.1:${server.address().port}`;
  }

  for (const what of ['wrong', 'an API token'])
    test(`--once ends with 1 when its token is refused: ${what} (B11)`, async () => {
      const one = await machine({ token: what === 'wrong' ? WRONG : apiToken });
      await one.spawn('--once');
      const { fields } = await one.waitForLog({ ev: 'claim_refused' });
      assert.match(fields.why, what === 'wrong' ? /^401: the token is not valid/ : /^403: an API token cannot claim work/);
      assert.match(fields.hint, /outpostctl runner add/);
      assert.deepEqual(await one.exited, { code: 1, signal: null });
    });

  test('--once ends with 1 when the token is another accelerator\'s (B11)', async () => {
    const one = await machine({ token: await addRunner(outpost, 'npu-1', 'lab') });
    await one.spawn('--once');
    assert.match((await one.waitForLog({ ev: 'claim_refused' })).fields.why, /^403: the token is for accelerator lab/);
    assert.deepEqual(await one.exited, { code: 1, signal: null });
  });

  test('--check --online: a good configuration passes, with the number of waiting jobs', async () => {
    const one = await machine({ config: { labels: ['npu', '910b'] } });
    const lines = async () => {
      const { code, stdout, stderr } = await online(one);
      assert.deepEqual([code, stderr], [0, ''], stdout);
      return stdout;
    };
    const idle = await lines();
    assert.match(idle, /^✓ server +http\S+ answers$/m);
    assert.match(idle, /^✓ token +good for npu-1 of npu$/m);
    assert.match(idle, /^✓ labels +runner farm asks for \[npu, 910b\]$/m);
    assert.match(idle, /^– labels +runner old asks for \[910a\]; missing here: 910a$/m);
    assert.match(idle, /^✓ work +0 waiting for this machine, 0 for others$/m);
    assert.match(idle, /^✓ clock +as the server's$/m);
    assert.match(idle, /^✓ version +\S+$/m);
    assert.doesNotMatch(idle, /✗|\x1b/);
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 1 })));
    await outpost.waitForApi('pulls/1', ({ accelerators }) => accelerators.some(({ dispatches }) => dispatches.length === 2));
    assert.match(await lines(), /^✓ work +1 waiting for this machine, 1 for others$/m);
  });

  test('--check --online: columns are aligned, and a terminal gets colours', { skip: !existsSync('/usr/bin/script') && 'script is not installed' }, async () => {
    const one = await machine({ config: { labels: ['npu', '910b'] } });
    const { stdout } = await online(one);
    assert.equal(new Set(stdout.split('\n').filter((line) => /^[✓–✗]/.test(line)).map((line) => line.match(/^. \S+ +/)[0].length)).size, 1, stdout);
    const shown = spawnSync('script', ['-qec', `${OUTPOST_RUNNER} -c ${one.configFile} --check --online`, '/dev/null'], { encoding: 'utf8', env: { ...process.env, TERM: 'xterm', NO_COLOR: '' } }).stdout;
    assert.match(shown, /\x1b\[32m✓\x1b\[0m server/);
  });

  test('--check --online: names the labels that are missing', async () => {
    const { code, stdout } = await online(await machine({ config: { labels: ['nppu'] } }));
    assert.equal(code, 1);
    assert.match(stdout, /^✗ labels +runner farm asks for \[npu, 910b\]; missing here: npu, 910b\n +→ add what is missing to `labels`/m);
  });

  test('--check --online: fails for a wrong token, an API token and another machine\'s token', async () => {
    for (const [other, says] of [
      [WRONG, /^✓ server .*\n✗ token +\S+: 401: the token is not valid, or was revoked\n +→ token_file needs what `outpostctl runner add` printed/m],
      [apiToken, /^✗ token .*403: an API token cannot claim work.*\n +→ \S/m],
      [await addRunner(outpost, 'npu-2', 'npu'), /^✗ token +it is for npu-2 of npu, and not for npu-1 of npu\n +→ \S/m],
    ]) {
      const { code, stdout } = await online(await machine({ token: other }));
      assert.equal(code, 1);
      assert.match(stdout, says);
    }
  });

  test('--check --online: gives a hint for each kind of failed connection', async () => {
    const silent = net.createServer((socket) => socket.end()).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    for (const [server, why] of [
      [`http://127.0.0.1:${await freePort()}`, /nothing listens/],
      ['https://outpost.nowhere.invalid', /DNS/],
      [outpost.url.replace('http:', 'https:'), /does not speak TLS/],
      [`http://127.0.0.1:${silent.address().port}`, /check the port/],
      [await standIn(() => [404, '<html>']), /not Outpost/],
      [await standIn(() => [503, '{"detail": "stopping"}']), /Outpost is starting, busy or stopping/],
      [await standIn(() => [200, '{}']), /not Outpost/],
    ]) {
      const { code, stdout } = await online(await machine({ token: WRONG, server }));
      assert.equal(code, 1, server);
      assert.match(stdout, /^✗ server +\S.*\n +→ \S/m);
      assert.match(stdout, why, server);
    }
    silent.close();
  });

  test('--check --online: reports a wrong clock and another version, and escapes hostile texts', async () => {
    const answer = { version: '0.0.9', time: '2001-01-01T00:00:00Z', name: 'npu-1', accelerator: 'npu', runners: [{ name: 'farm', labels: ['\u202e{npu}'], max_parallel: 1, waiting: 0, active: 1 }] };
    const { code, stdout } = await online(await machine({ server: await standIn(() => [200, JSON.stringify(answer)]), config: { labels: [] } }));
    assert.equal(code, 1);
    assert.match(stdout, /^✗ clock +\d+ s ahead of the server's\n +→ set this machine's clock/m);
    assert.match(stdout, /^– version +\S+; the server has 0\.0\.9$/m);
    assert.doesNotMatch(stdout, /\u202e/);
  });

  test('--check without --online contacts no server, and --online requires --check', async () => {
    const one = await machine({ token: WRONG, server: 'https://outpost.nowhere.invalid' });
    assert.equal((await one.check()).code, 0);
    const { code, stderr } = await runProgram(OUTPOST_RUNNER, ['-c', one.configFile, '--online'], { cwd: one.dir });
    assert.equal(code, 2);
    assert.match(stderr, /--online goes with --check only/);
  });

  test('GET /api/v1/runner/status requires a machine\'s token', async () => {
    const ask = (bearer) => outpost.get('/api/v1/runner/status', { headers: bearer ? { authorization: `Bearer ${bearer}` } : {} });
    assert.equal((await ask()).status, 401);
    assert.equal((await ask(WRONG)).status, 401);
    assert.equal((await ask(apiToken)).status, 403);
    const { status, json } = await ask(await addRunner(outpost, 'lab-1', 'lab'));
    assert.equal(status, 200);
    assert.deepEqual([json.name, json.accelerator, json.runners], ['lab-1', 'lab', [{ name: 'farm', labels: [], max_parallel: 1, waiting: 0, active: 0 }]]);
    assert.ok(!Number.isNaN(Date.parse(json.time)));
  });

  test('each check and the start warn about secret files that every user can read (B6)', async () => {
    const other = await Outpost.start({
      rig, accelerators: [{ name: 'lab', title: 'Lab', level: 'L2', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: 'http://127.0.0.1:9/', secret: 'hook' } }] }], secrets: { lab: { hook: 'x' } },
    });
    try {
      const files = ['app.pem', 'webhook.secret', 'secrets/lab/hook'];
      const warned = (text) => [...text.matchAll(/^warning: (\S+): every user of this machine can read or change this secret: chmod 600$/gm)].map(([, file]) => files.find((one) => file.endsWith(one)) ?? file).sort();
      for (const check of [() => other.check(), () => other.ctl('check')]) {
        const { code, stderr } = await check();
        assert.deepEqual([code, warned(stderr)], [0, []], stderr);
      }
      for (const file of files) await fs.chmod(path.join(other.dir, file), 0o644);
      for (const check of [() => other.check(), () => other.ctl('check')]) {
        const { code, stdout, stderr } = await check();
        assert.deepEqual([code, stdout, warned(stderr)], [0, '', [...files].sort()], stderr);
      }
      const result = JSON.parse((await other.ctl('check', '--json')).stdout);
      assert.equal(result.ok, true);
      assert.equal(result.warnings.length, 3);
      await fs.chmod(path.join(other.stateDir.startsWith('/') ? other.stateDir : path.join(other.dir, other.stateDir), 'callback.key'), 0o604);
      await other.stop();
      await other.spawn();
      for (const file of [...files, 'callback.key']) await other.waitForLog({ ev: 'exposed_file', file: new RegExp(`${file}$`) });
    } finally {
      await other.close();
    }
  });

  test('outpost-runner --check warns about a token that every user can read, and still passes (B6)', async () => {
    const one = await machine({ token: WRONG });
    assert.equal((await one.check()).stderr, '');
    await fs.chmod(path.join(one.dir, 'token'), 0o644);
    const { code, stderr, stdout } = await one.check();
    assert.equal(code, 0);
    assert.match(stderr, /^warning: \S+\/token: every user of this machine can read or change this secret: chmod 600$/m);
    assert.match(stdout, /has no mistakes/);
  });
});
