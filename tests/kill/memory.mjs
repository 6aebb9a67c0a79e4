// Memory and descriptors over many webhooks: the idle daemon uses the same after 20,000 and after 200,000 webhooks.
//
//   node tests/kill/memory.mjs [--webhooks N]
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fakeSha, pullRequest } from '../github/payloads.mjs';
import { Load, residentMemory } from '../bench/load.mjs';
import { Stub } from '../bench/stub.mjs';
import { Outpost, until } from '../integration/lib/outpost.mjs';

const FIRST = 20_000;
const MAY_GROW_MIB = 2;
const LONGEST_S = 600; // until everything is planned

const { values } = parseArgs({ options: { webhooks: { type: 'string' } } });
const total = Number(values.webhooks ?? 200_000);
const started = Date.now();
const say = (text) => console.log(`${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`);

const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-memory-'));
const stub = await Stub.start();
// For many pull requests, because the events of one are planned one after the other.
const pulls = Array.from({ length: 200 }, (_, i) => pullRequest('opened', { number: 1 + i, headSha: fakeSha(`memory ${i}`) }));
const load = await Load.prepare(dir, stub.secret, pulls);
const outpost = await Outpost.start({
  rig: stub, logFile: path.join(dir, 'outpost.log'),
  accelerators: [{ name: 'chip', title: 'Chip', level: 'L2', runners: [{ name: 'ci', github: { repository: 'vendor/ci' } }] }],
  config: { log: { level: 'info' }, comment: { enabled: false } },
});

async function waiting() {
  const { code, stdout, stderr } = await outpost.ctl('--json', 'status');
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout).deliveries.accepted;
}

// Sends webhooks until at least `count` have been accepted in total, waits until they are planned, and measures.
let accepted = 0;
async function after(count) {
  let rate;
  while (accepted < count) {
    const run = await load.run(`${outpost.url}/github/webhook`, { seconds: 2 });
    if (run.refused + run.broken > 0) throw new Error(`${run.refused} webhooks refused, ${run.broken} broken`);
    accepted += run.requests;
    rate = run.rate;
  }
  await until(async () => await waiting() === 0, { timeout: LONGEST_S * 1000, interval: 500, what: 'everything is planned' });
  let fds;
  await until(async () => { fds = (await fs.readdir(`/proc/${outpost.pid}/fd`)).length; return fds < 64; }, { what: 'the connections are closed' });
  const now = { mib: await residentMemory(outpost.pid), fds };
  say(`${accepted} webhooks (${rate.toFixed(0)}/s): RssAnon ${now.mib.toFixed(2)} MiB, ${now.fds} descriptors`);
  return now;
}

let isGood = false;
try {
  const first = await after(FIRST);
  const last = await after(total);
  isGood = last.mib - first.mib < MAY_GROW_MIB && last.fds <= first.fds;
  say(isGood ? 'no growth' : `grew by ${(last.mib - first.mib).toFixed(2)} MiB and ${last.fds - first.fds} descriptors`);
} finally {
  await outpost.close();
  await stub.stop();
  await fs.rm(dir, { recursive: true, force: true });
}
process.exit(isGood ? 0 : 1);
