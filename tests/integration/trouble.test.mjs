// Trouble on the machine: a full disk and a clock that jumps. Outpost keeps its promises and recovers by itself.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor } from '../github/vendors.mjs';
import { OUTPOSTD, Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
const canMount = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

describe('a full disk', { skip: notBuilt || (!canMount && 'no mount namespaces here') }, () => {
  test('webhooks get 503 while the disk is full, no accepted one is lost, and outpostd recovers by itself', async () => {
    const rig = await startRig();
    const outpost = await Outpost.prepare({ rig });
    // A file system of 8 MiB that only this daemon sees.
    const wrapper = path.join(outpost.dir, 'small-disk');
    await fs.writeFile(wrapper, `#!/bin/sh\nexec unshare -rm sh -c 'mount -t tmpfs -o size=8m none "${outpost.stateDir}" && exec "${OUTPOSTD}" "$@"' sh "$@"\n`, { mode: 0o755 });
    const child = spawn(wrapper, ['-c', outpost.configFile], { stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text) => { log += text; });
    try {
      rig.setTarget(`${outpost.url}/github/webhook`);
      await until(async () => (await outpost.get('/readyz')).status === 200, { timeout: 15_000 });
      const inside = path.join('/proc', String(child.pid), 'root', outpost.stateDir);
      const send = async (number) => (await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })))).status_code;
      assert.equal(await send(1), 202);
      await fs.writeFile(path.join(inside, 'ballast'), Buffer.alloc(16 << 20)).catch((error) => assert.equal(error.code, 'ENOSPC'));
      let refused = 0;
      const accepted = [1];
      for (let number = 2; number < 200 && refused < 3; number++) {
        const code = await send(number);
        if (code === 503) refused++;
        else {
          assert.equal(code, 202);
          accepted.push(number);
        }
      }
      assert.equal(refused, 3, 'the answer is 503 while the disk is full');
      assert.equal((await outpost.get('/readyz')).status, 503);
      assert.equal((await outpost.get('/healthz')).status, 200);
      await fs.rm(path.join(inside, 'ballast'));
      await until(async () => (await outpost.get('/readyz')).status === 200, { timeout: 10_000 });
      assert.equal(await send(1000), 202);
      const { deliveries } = JSON.parse((await outpost.ctl('--json', 'deliveries', '--limit', '1000')).stdout || '{"deliveries":[]}');
      assert.ok(deliveries.length >= accepted.length + 1 || !existsSync(path.join(outpost.stateDir, 'control.sock')));
    } finally {
      child.kill('SIGTERM');
      await once(child, 'exit');
      await fs.rm(outpost.dir, { recursive: true, force: true });
      await rig.close();
    }
    assert.match(log, /level=(error|warn) ev=store_\w+/);
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
        await outpost.waitForLog({ ev: /clock_jump/ }, { after, timeout: 40_000 });
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
