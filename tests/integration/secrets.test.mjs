// Each secret is once in the daemon's memory, locked and excluded from dumps, even after its use and after a reload (finding
// 13). The test reads the running daemon's memory through /proc.
import assert from 'node:assert/strict';
import { createHmac, createPrivateKey, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { selfSigned } from './lib/certificate.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const LARGEST_MAPPING = 128 << 20; // a sanitizer's shadow memory is larger and contains no data
const skip = notBuilt || (process.getuid() !== 0 && 'only root may read the memory of a process that is not dumpable');

// The writable mappings of a process: [{ low, high, flags }].
async function mappings(pid) {
  const found = [];
  for (const line of (await fs.readFile(`/proc/${pid}/smaps`, 'utf8')).split('\n')) {
    const head = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(line);
    if (head) found.push({ low: parseInt(head[1], 16), high: parseInt(head[2], 16), mode: head[3], flags: [] });
    if (line.startsWith('VmFlags:')) found.at(-1).flags = line.slice(8).trim().split(' ');
  }
  return found.filter(({ low, high, mode }) => mode.startsWith('rw') && high - low <= LARGEST_MAPPING);
}

// The mappings that contain each pattern: { name: [mapping, …] }.
async function search(pid, patterns) {
  const found = Object.fromEntries(Object.keys(patterns).map((name) => [name, []]));
  const memory = await fs.open(`/proc/${pid}/mem`);
  for (const mapping of await mappings(pid)) {
    const content = Buffer.alloc(mapping.high - mapping.low);
    try {
      await memory.read(content, 0, content.length, mapping.low);
    } catch {
      continue; // unmapped meanwhile, or unreadable
    }
    for (const [name, pattern] of Object.entries(patterns))
      for (let at = content.indexOf(pattern); at >= 0; at = content.indexOf(pattern, at + 1)) found[name].push(mapping);
  }
  await memory.close();
  return found;
}

const reversed = (bytes) => Buffer.from(bytes).reverse();
// A number of a key as in DER, and as libcrypto stores it on a little-endian machine.
function numberOf(pem, field) {
  const bytes = Buffer.from(createPrivateKey(pem).export({ format: 'jwk' })[field], 'base64url');
  return { text: bytes.subarray(0, 32), number: reversed(bytes).subarray(0, 32) };
}

describe('secrets in memory', { skip }, () => {
  let rig;
  let outpost;
  let vendor;
  const signatures = [];
  const hook = randomBytes(24).toString('hex');
  const tls = selfSigned('127.0.0.1');

  before(async () => {
    rig = await startRig();
    vendor = http.createServer((request, response) => {
      signatures.push(request.headers['x-hub-signature-256']);
      request.resume().on('end', () => response.end());
    }).listen(0, '127.0.0.1');
    await once(vendor, 'listening');
    const url = `http://127.0.0.1:${vendor.address().port}/`;
    const runners = [{ name: 'lab', webhook: { url, secret: 'hook' } }, { name: 'ci', github: { repository: 'Ascend/pytorch' } }];
    outpost = await Outpost.start({
      rig, tls, secrets: { npu: { hook } },
      accelerators: [{ name: 'npu', title: 'NPU', level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners }],
    });
  });
  after(async () => {
    await outpost?.close();
    vendor?.close();
    await rig?.close();
  });

  async function useEach(number) {
    const n = signatures.length;
    const body = JSON.stringify(pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    const headers = { 'x-github-event': 'pull_request', 'x-github-delivery': `secrets-${number}`,
      'x-hub-signature-256': `sha256=${createHmac('sha256', rig.secret).update(body).digest('hex')}` };
    assert.equal((await outpost.request('POST', '/github/webhook', { body, headers, timeout: 60_000 })).status, 202);
    await until(() => signatures.length > n, { timeout: 60_000, what: 'the vendor receives a signed webhook' });
    await until(() => rig.dispatches({ repository: 'Ascend/pytorch' }).length > 0, { timeout: 60_000, what: 'GitHub receives a dispatch with a token that the App key signed for' });
  }

  async function assertOnce() {
    const app = numberOf(rig.app.privateKey, 'd');
    const prime = numberOf(rig.app.privateKey, 'p');
    const server = numberOf(tls.key, 'd');
    const appText = rig.app.privateKey.split('\n')[3];
    const patterns = {
      webhook: Buffer.from(rig.secret), vendor: Buffer.from(hook),
      callback: await fs.readFile(path.join(outpost.stateDir, 'callback.key')),
      appText: Buffer.from(appText), appDer: app.text, appNumber: app.number, appPrime: prime.number,
      tlsText: Buffer.from(tls.key.split('\n')[1]), tlsDer: server.text, tlsNumber: server.number,
    };
    const expected = {
      webhook: 1, vendor: 1, callback: 1, // stored unchanged
      appText: 1, appDer: 0, appNumber: 0, appPrime: 0, // stored as PEM, and parsed for each signature
      tlsText: 0, tlsDer: 0, tlsNumber: 1, // stored parsed
    };
    // A connection that was open during a reload keeps its certificate until it closes.
    https.globalAgent.destroy();
    let found, counts;
    await until(async () => {
      found = await search(outpost.pid, patterns);
      counts = Object.fromEntries(Object.entries(found).map(([name, places]) => [name, places.length]));
      return isDeepStrictEqual(counts, expected);
    }, { timeout: 30_000 }).catch(() => assert.deepEqual(counts, expected));
    for (const [name, places] of Object.entries(found))
      for (const { flags } of places)
        assert.ok(flags.includes('dd') && flags.includes('lo'), `${name} is in memory with the flags ${flags}`);
  }

  test('each secret is in memory once, locked and excluded from dumps, after its use', async () => {
    await useEach(1300);
    await assertOnce();
  });

  test('a reload leaves no second copy of a secret', async () => {
    await outpost.reload();
    await outpost.reload();
    await useEach(1301);
    await assertOnce();
  });
});
