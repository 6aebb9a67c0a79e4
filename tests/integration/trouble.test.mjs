// Trouble on the machine: a full disk and a clock that jumps. Outpost keeps its promises and recovers by itself.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { needsFile } from './lib/database.mjs';
import { OUTPOSTD, Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
const canMount = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

describe('a full disk', { skip: notBuilt || needsFile || (!canMount && 'no mount namespaces here') }, () => {
  // outpostctl does not see the file system of the daemon.
  const askControl = (socketPath, target) => new Promise((resolve, reject) => {
    http.get({ socketPath, path: `/control/${target}` }, async (answer) => resolve(JSON.parse((await answer.toArray()).join('')))).on('error', reject);
  });

  // A daemon with a file system of 8 MiB that only it sees. fill() leaves no room there, and empty() gives it back.
  async function onSmallDisk(options, work) {
    const outpost = await Outpost.prepare(options);
    const wrapper = path.join(outpost.dir, 'small-disk');
    await fs.writeFile(wrapper, `#!/bin/sh\nexec unshare -rm sh -c 'mount -t tmpfs -o size=8m none "${outpost.stateDir}" && exec "${OUTPOSTD}" "$@"' sh "$@"\n`, { mode: 0o755 });
    const child = spawn(wrapper, ['-c', outpost.configFile], { stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text) => { log += text; });
    try {
      options.rig.setTarget(`${outpost.url}/github/webhook`);
      const isReady = (status) => until(async () => (await outpost.get('/readyz')).status === status, { what: `/readyz is ${status}` });
      await isReady(200);
      const folder = path.join('/proc', String(child.pid), 'root', outpost.stateDir), ballast = path.join(folder, 'ballast');
      await work(outpost, {
        control: (target) => askControl(path.join(folder, 'control.sock'), target),
        fill: () => fs.writeFile(ballast, Buffer.alloc(16 << 20)).catch((error) => assert.equal(error.code, 'ENOSPC')),
        empty: async () => {
          await fs.rm(ballast);
          await isReady(200);
        },
      });
    } finally {
      child.kill('SIGTERM');
      await once(child, 'exit');
      await fs.rm(outpost.dir, { recursive: true, force: true });
    }
    assert.match(log, /level=(error|warn) ev=store_\w+/);
  }

  test('webhooks get 503 while the disk is full, no accepted one is lost, and outpostd recovers by itself', async () => {
    const rig = await startRig();
    try {
      await onSmallDisk({ rig }, async (outpost, disk) => {
        const guids = { 202: [], 503: [] };
        const send = async (number) => {
          const { guid, status_code: code } = await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
          guids[code].push(guid);
          return code;
        };
        assert.equal(await send(1), 202);
        await disk.fill();
        for (let number = 2; number < 200 && guids[503].length < 3; number++) await send(number);
        assert.equal(guids[503].length, 3, 'the answer is 503 while the disk is full');
        assert.equal((await outpost.get('/readyz')).status, 503);
        assert.equal((await outpost.get('/healthz')).status, 200);
        await disk.empty();
        assert.equal(await send(1000), 202);
        const { deliveries } = await disk.control('deliveries?limit=1000');
        assert.deepEqual(deliveries.map(({ guid }) => guid).sort(), guids[202].sort());
      });
    } finally {
      await rig.close();
    }
  });

  test('a report gets 503 with Retry-After while the disk is full, nothing of it is stored, and it counts when it is sent again', async () => {
    const [rig, vendor] = await Promise.all([startRig(), startSilentVendor({ secret: 's' })]);
    try {
      await onSmallDisk({
        rig, secrets: { chip: { hook: 's' } },
        accelerators: [{ name: 'chip', title: 'Chip', level: 'L2', runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] }],
      }, async (outpost, disk) => {
        await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 1 })));
        const { body: { outpost: { callback_token: token, callback_url: url } } } = await until(() => vendor.events.find(({ body }) => body?.payload?.number === 1), { what: 'the vendor has the dispatch' });
        const send = (method, target, body) => outpost.request(method, target, { headers: { authorization: `Bearer ${token}` }, body });
        // Each report has a new list of tests, and every fourth test is red.
        const testsOf = (what) => Array.from({ length: 2000 }, (_, i) => ({ suite: 'unit', name: `${what} case ${i}`, status: i % 4 ? 'PASS' : 'FAIL', ...(i % 4 === 0 && { message: `expected ${i}` }) }));
        const report = (n) => send('POST', new URL(url).pathname, { ...workflowOf({ workflow: 'lab', job: `job ${n}`, run_id: '1', conclusion: 'failure', tests: testsOf(`job ${n}`) }, 'completed', new Date(0)) });
        const document = (job, n) => send('PUT', `/api/v1/jobs/${job}/report`, { schema: 1, tests: testsOf(`document ${n}`) });
        const sent = await report(0);
        assert.equal(sent.status, 200, sent.text);
        await disk.fill();
        let n = 0, refused;
        for (; !refused && n < 50; n += refused ? 0 : 1) {
          const answer = await report(n + 1);
          if (answer.status !== 200) refused = answer;
        }
        assert.equal(refused?.status, 503, refused?.text);
        assert.ok(Number(refused.headers['retry-after']) > 0, JSON.stringify(refused.headers));
        assert.ok(refused.json.detail.length > 5, refused.text);
        const put = await document(sent.json.job, 0);
        assert.deepEqual([put.status, Number(put.headers['retry-after']) > 0], [503, true], put.text);
        const jobs = async () => (await outpost.api('pulls/1')).accelerators[0].jobs;
        assert.equal((await jobs()).length, n + 1);
        assert.equal((await outpost.api(`jobs/${sent.json.job}`)).tests.length, 2000);
        await disk.empty();
        const again = await report(n + 1);
        assert.equal(again.status, 200, again.text);
        assert.equal((await jobs()).length, n + 2);
        assert.deepEqual((await outpost.api(`jobs/${again.json.job}`)).tests.map(({ name, status }) => `${name} ${status}`), testsOf(`job ${n + 1}`).map(({ name, status }) => `${name} ${status}`));
        assert.equal((await document(sent.json.job, 0)).status, 200);
        assert.equal((await outpost.api(`jobs/${sent.json.job}`)).tests.length, 4000);
      });
    } finally {
      await vendor.stop();
      await rig.close();
    }
  });
});

describe('a clock that jumps', { skip: notBuilt || (!existsSync(FAKETIME) && 'libfaketime is not installed') }, () => {
  test('a day ahead and back: no dispatch expires, and new work continues', async () => {
    const [rig, vendor] = await Promise.all([startRig(), startSilentVendor({ secret: 's' })]);
    const outpost = await Outpost.prepare({
      rig, wait: false,
      accelerators: [{ name: 'chip', title: 'Chip', level: 'L2', runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }], deadlines: { acknowledge: '1h', start: '2h', finish: '3h' } }],
      secrets: { chip: { hook: 's' } },
    });
    const clock = path.join(outpost.dir, 'clock');
    await fs.writeFile(clock, '+0\n');
    outpost.options.env = { LD_PRELOAD: FAKETIME, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_NO_CACHE: '1', DONT_FAKE_MONOTONIC: '1', ASAN_OPTIONS: 'verify_asan_link_order=0' };
    await outpost.spawn();
    await outpost.waitForLog({ ev: 'ready' });
    try {
      await until(async () => (await outpost.get('/readyz')).status === 200);
      await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 1 })));
      await outpost.waitForApi('pulls/1', (one) => one.accelerators[0]?.dispatches[0]?.state === 'acknowledged');
      for (const offset of ['+86400', '-86400', '+0']) {
        const after = outpost.log.length;
        await fs.writeFile(clock, `${offset}\n`);
        // On PostgreSQL the daemon follows the database's clock, which stays as it is.
        if (!outpost.database.isOnServer) await outpost.waitForLog({ ev: /clock_jump/ }, { after, timeout: 40_000 });
        const number = 100 + Math.abs(Number(offset)) + (offset.startsWith('-') ? 1 : 0);
        await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
        await outpost.waitForApi(`pulls/${number}`, (one) => one.accelerators[0]?.dispatches[0]?.state === 'acknowledged', { timeout: 15_000 });
        assert.equal((await outpost.api('pulls/1')).accelerators[0].dispatches[0].state, 'acknowledged');
      }
    } finally {
      await outpost.close();
      await vendor.stop();
      await rig.close();
    }
  });
});
