// The installed systemd units: the exposure score of systemd, and both programs under all restrictions on a machine that systemd
// boots (finding 12).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { selfSigned } from './lib/certificate.mjs';
import { Machine, notBootable } from './lib/machine.mjs';
import { freePort, Outpost, notBuilt, until } from './lib/outpost.mjs';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const UPSTREAM = 'pytorch/pytorch';
const patient = { timeout: 120_000 };
const JUNIT = '<testsuite name="unit"><testcase name="one"/></testsuite>';

describe('units: exposure', () => {
  for (const [unit, most] of [['outpostd', 13], ['outpost-runner', 35]])
    test(`${unit} scores at most ${most / 10}`, async (t) => {
      const file = path.join(await fs.mkdtemp('/tmp/outpost-unit-'), `${unit}.service`);
      t.after(() => fs.rm(path.dirname(file), { recursive: true }));
      await fs.writeFile(file, (await fs.readFile(path.join(root, `systemd/${unit}.service`), 'utf8')).replaceAll('@PREFIX@', '/usr'));
      // it fails if the score is above the threshold, in tenths
      execFileSync('systemd-analyze', ['security', '--offline=yes', '--no-pager', `--threshold=${most}`, file], { stdio: 'pipe' });
    });
});

// The block of a page that contains a text.
async function blockOf(page, text) {
  const blocks = [...(await fs.readFile(path.join(root, 'docs', page), 'utf8')).matchAll(/^```\w*\n(.*?)^```$/gms)].map(([, body]) => body);
  const found = blocks.filter((body) => body.includes(text));
  assert.equal(found.length, 1, `one block of docs/${page} has ${text}`);
  return found[0];
}

describe('units: on a booted machine', { skip: notBuilt || notBootable() }, () => {
  let rig;
  let machine;
  let outpost; // a client: systemd runs the daemon
  let port;
  const tls = selfSigned('127.0.0.1');
  const accelerator = { name: 'npu', title: 'NPU', level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'farm', pull: { labels: [], max_parallel: 1 } }] };
  const config = (changes) => ({
    listen: `127.0.0.1:${port}`, public_url: `http://127.0.0.1:${port}`, state_dir: '/var/lib/outpost',
    github: { api_url: rig.url, app_id: rig.app.id, private_key_file: 'credential:app.pem', webhook_secret_file: 'credential:webhook-secret' },
    reconcile: { interval: '1h' }, ...changes,
  });
  const runner = () => ({
    server: `http://127.0.0.1:${port}`, name: 'npu-1', token_file: 'runner.token', accelerator: 'npu', work_dir: '/var/lib/outpost-runner', sandbox: 'bubblewrap',
    steps: [{ name: 'test', run: `id -u; mkdir -p results; printf '%s' '${JUNIT}' >results/one.xml` }], report: { files: ['results/*.xml'], format: 'junit' },
  });
  const write = (at, file, text, mode = 0o644) => fs.mkdir(path.dirname(path.join(at, file)), { recursive: true }).then(() => fs.writeFile(path.join(at, file), text, { mode }));

  async function prepare(at) {
    execFileSync('make', ['-s', '-C', root, 'install', `DESTDIR=${at}`, 'PREFIX=/usr'], { stdio: 'pipe' });
    await write(at, 'etc/fstab', '');
    await write(at, 'etc/outpost/outpost.yml', stringify(config()));
    await write(at, 'etc/outpost/accelerators.d/npu.yml', stringify(accelerator));
    await write(at, 'etc/outpost/app.pem', rig.app.privateKey, 0o600);
    await write(at, 'etc/outpost/webhook-secret', `${rig.secret}\n`, 0o600);
    await write(at, 'etc/outpost/fullchain.pem', tls.cert);
    await write(at, 'etc/outpost/key.pem', tls.key, 0o600);
  }

  async function deliver(number) {
    const body = JSON.stringify(pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    const headers = { 'x-github-event': 'pull_request', 'x-github-delivery': `units-${number}`, 'x-hub-signature-256': `sha256=${createHmac('sha256', rig.secret).update(body).digest('hex')}` };
    return (await outpost.request('POST', '/github/webhook', { body, headers, timeout: 60_000 })).status;
  }

  const isReady = () => until(async () => (await outpost.get('/readyz')).status === 200, { ...patient, what: '/readyz is 200' });

  // /proc/PID/status of a unit's main process.
  async function status(unit) {
    const text = (await machine.run('cat', `/proc/${await machine.show(unit, 'MainPID')}/status`)).stdout;
    return Object.fromEntries([...text.matchAll(/^(\w+):\s*(.*)$/gm)].map(([, key, value]) => [key, value]));
  }

  before(async () => {
    port = await freePort();
    rig = await startRig();
    outpost = Object.assign(new Outpost(), { options: { tls }, url: `http://127.0.0.1:${port}` });
    machine = await Machine.boot({ prepare });
  });
  after(async () => {
    await machine?.close();
    await rig?.close();
  });

  test('outpostd starts, accepts webhooks, reloads and locks its secrets', async () => {
    await machine.systemctl('start', 'outpostd');
    await isReady();
    assert.equal(await deliver(1), 202);
    await machine.systemctl('reload', 'outpostd');
    assert.equal(await deliver(2), 202);
    await until(async () => (await outpost.get('/api/v1/pulls/2')).status === 200, patient);
    const journal = (await machine.run('journalctl', '-u', 'outpostd', '-o', 'cat', '--no-pager')).stdout;
    assert.match(journal, /ev=ready/);
    assert.doesNotMatch(journal, /level=error|secrets_not_locked/);
    assert.match((await outpost.get('/metrics')).text, /^process_start_time_seconds \d+/m);
  });

  test('outpostd runs without privileges behind a system call filter', async () => {
    const is = await status('outpostd');
    assert.equal(is.NoNewPrivs, '1');
    assert.equal(is.Seccomp, '2');
    assert.equal(BigInt(`0x${is.CapBnd}`), 0n);
    assert.equal(BigInt(`0x${is.CapEff}`), 0n);
    assert.doesNotMatch(is.Uid, /\b0\b/);
  });

  test('outpost-runner runs a job in bubblewrap under its unit', async () => {
    // A sandbox may mount /proc only if a complete /proc is mounted, but the container masks parts of its own.
    await machine.run('sh', '-c', 'mkdir /run/whole-proc && mount -t proc proc /run/whole-proc');
    await machine.run('useradd', '--system', '--home-dir', '/var/lib/outpost-runner', '--shell', '/usr/sbin/nologin', 'outpost-runner');
    await machine.run('install', '-d', '-o', 'outpost-runner', '-m', '700', '/etc/outpost-runner');
    const token = (await machine.run('outpostctl', 'runner', 'add', 'npu-1', '--accelerator', 'npu')).stdout;
    await write(machine.root, 'etc/outpost-runner/runner.token', token, 0o600);
    await write(machine.root, 'etc/outpost-runner/runner.yml', stringify(runner()));
    await machine.run('chown', 'outpost-runner', '/etc/outpost-runner/runner.token');
    await machine.systemctl('start', 'outpost-runner');
    const is = await status('outpost-runner');
    assert.equal(is.NoNewPrivs, '1');
    assert.equal(is.Seccomp, '2');
    assert.equal(BigInt(`0x${is.CapBnd}`), 0n);
    const view = await until(async () => {
      const { json } = await outpost.get('/api/v1/pulls/2');
      return json?.accelerators[0]?.jobs[0]?.status === 'completed' && json;
    }, { ...patient, what: 'the job is completed' }).catch(async (error) => {
      throw new Error(`${error.message}\n${(await machine.run('journalctl', '-u', 'outpost-runner', '-o', 'cat', '--no-pager')).stdout}`);
    });
    const [job] = view.accelerators[0].jobs;
    const log = (await outpost.get(`/api/v1/jobs/${job.id}/log`)).text;
    assert.equal(job.conclusion, 'success', log);
    assert.deepEqual(view.verdicts.map(({ test: name, status: is_ }) => [name, is_]), [['one', 'PASS']], log);
    await machine.systemctl('stop', 'outpost-runner');
    assert.equal(await machine.show('outpost-runner', 'Result'), 'success');
  });

  test('outpostd serves HTTPS on port 443 with the drop-in of docs/operators.md', async () => {
    const yml = stringify(config({ listen: '127.0.0.1:443', tls: { certificate: 'fullchain.pem', private_key: 'credential:key.pem' } }));
    await write(machine.root, 'etc/outpost/outpost.yml', yml);
    await write(machine.root, 'etc/systemd/system/outpostd.service.d/https.conf', await blockOf('operators.md', 'CAP_NET_BIND_SERVICE'));
    await machine.systemctl('daemon-reload');
    await machine.systemctl('restart', 'outpostd');
    outpost.url = 'https://127.0.0.1:443';
    await isReady();
    assert.equal(await deliver(3), 202);
    assert.equal(BigInt(`0x${(await status('outpostd')).CapBnd}`), 1n << 10n);
  });

  test('outpostd stops without an error', async () => {
    await machine.systemctl('stop', 'outpostd');
    assert.equal(await machine.show('outpostd', 'Result'), 'success');
  });
});
