// The measurements, each a function for one or two rows. Each starts its own daemon on a new folder.
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fakeSha, pullRequest, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Outpost, until } from '../integration/lib/outpost.mjs';
import { sign } from '@octokit/webhooks-methods';
import { Load, floorCost, largestPullRequest, residentMemory, startNginx, usedBy } from './load.mjs';
import { Stub, Wire } from './stub.mjs';

const UPSTREAM = 'pytorch/pytorch';
const vendor = (i, repository) => ({ name: `vendor-${i}`, title: `Vendor ${i}`, level: 'L2', runners: [{ name: 'ci', github: { repository } }] });

export const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

export async function startOutpost(dir, rig, accelerators, program) {
  return Outpost.start({
    program, rig, accelerators, logFile: path.join(dir, 'outpost.log'),
    config: { log: { level: 'info' }, comment: { enabled: false }, reconcile: { interval: '1h' } },
  });
}

// Watches a process's anonymous memory until stop(), which returns the peak.
function watchMemory(pid) {
  let highest = 0;
  const timer = setInterval(async () => { highest = Math.max(highest, await residentMemory(pid).catch(() => 0)); }, 100);
  return { stop: () => { clearInterval(timer); return highest; } };
}

// Durable, verified webhooks against nginx-proxied requests, in alternating pairs; memory idle and at full load.
export async function intake({ dir, build, pairs, seconds, say }) {
  const stub = await Stub.start();
  const load = await Load.prepare(dir, stub.secret);
  const nginx = await startNginx(dir);
  const out = { body_bytes: load.bytes, nginx: [], outpost: [], memory_idle: [], memory_load: [] };
  try {
    await load.run(nginx.url, { seconds: 1 });
    for (let i = 1; i <= pairs; i++) {
      say(`pair ${i} of ${pairs}: nginx`);
      out.nginx.push(await load.run(nginx.url, { seconds }));
      say(`pair ${i} of ${pairs}: outpost`);
      const outpost = await startOutpost(dir, stub, [vendor(1, 'vendor-1/ci')]);
      try {
        await sleep(500); // until the work of the start is done
        out.memory_idle.push(await residentMemory(outpost.pid));
        const memory = watchMemory(outpost.pid);
        const before = await usedBy(outpost.pid);
        const run = await load.run(`${outpost.url}/github/webhook`, { seconds });
        const after = await usedBy(outpost.pid);
        out.memory_load.push(memory.stop());
        run.cpu_us = (after.cpu_us - before.cpu_us) / run.requests;
        run.written = (after.written - before.written) / run.requests;
        run.floor_us = floorCost(build, load.body);
        out.outpost.push(run);
        if (run.refused + run.broken > 0) throw new Error(`${run.refused} webhooks refused, ${run.broken} broken`);
      } finally {
        await outpost.kill(); // because its planner would still work during the next run
        await outpost.close();
      }
    }
    await nginx.stop();
    const kept = await startNginx(dir, { keep: true });
    say('nginx with kept connections');
    out.nginx_kept = await load.run(kept.url, { seconds }).finally(() => kept.stop());
  } finally {
    await Promise.all([nginx.stop(), stub.stop()]);
  }
  return out;
}

// API requests per dispatch to one repository with a cached token, against the rig, which checks everything.
export async function requestsPerDispatch({ dir, changes, say }) {
  say(`requests per dispatch: ${changes} changes`);
  const rig = await startRig();
  const outpost = await startOutpost(dir, rig, [vendor(1, 'Ascend/pytorch')]);
  const open = async (number) => {
    const answer = await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    if (answer.status_code !== 202) throw new Error(`a webhook got ${answer.status_code}`);
  };
  const sent = (count) => until(() => rig.dispatches({ repository: 'Ascend/pytorch' }).length >= count, { timeout: 20_000, what: `${count} dispatches` });
  try {
    await open(1);
    await sent(1);
    await until(() => rig.requests({ path: '/app/hook/deliveries' }).length > 0, { what: 'the first reconciliation' });
    await sleep(500);
    const after = rig.requests().at(-1).seq;
    for (let i = 0; i < changes; i++) await open(2 + i);
    await sent(1 + changes);
    await sleep(500); // until the requests after a dispatch are done
    if (rig.violations().length > 0) throw new Error(`GitHub refuses: ${JSON.stringify(rig.violations()[0])}`);
    return { requests: rig.requests({ after }).length, dispatches: changes };
  } finally {
    await outpost.close();
    await rig.close();
  }
}

async function post(url, agent, body, headers) {
  await new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', agent, headers: { ...headers, 'content-length': Buffer.byteLength(body) } }, (response) => response.resume().on('end', resolve));
    request.on('error', reject);
    request.end(body);
  });
}

// One webhook for many repositories: the time until GitHub receives the last request, and the time for as many sequential requests
// to the same GitHub.
export async function fanOut({ dir, targets, delay, rounds, say }) {
  say(`fan-out to ${targets} repositories`);
  const stub = await Stub.start({ delay });
  const outpost = await startOutpost(dir, stub, Array.from({ length: targets }, (_, i) => vendor(i, `vendor-${i}/ci`)));
  const open = async (number) => {
    const body = JSON.stringify(pullRequest('opened', { number, headSha: fakeSha(`bench ${number}`) }));
    const start = performance.now();
    stub.dispatches = [];
    await post(`${outpost.url}/github/webhook`, undefined, body, {
      'content-type': 'application/json', 'x-github-event': 'pull_request', 'x-github-delivery': `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
      'x-hub-signature-256': await sign(stub.secret, body),
    });
    await until(() => stub.dispatches.length >= targets, { timeout: 30_000, interval: 5, what: `${targets} dispatches` });
    await sleep(200);
    return stub.dispatches.at(-1) - start;
  };
  try {
    const cold = await open(1);
    const warm = [];
    for (let i = 0; i < rounds; i++) warm.push(await open(2 + i));
    say(`${targets} requests one after the other`);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const start = performance.now();
    for (let i = 0; i < targets; i++) await post(`${stub.url}/repos/a/b/dispatches`, agent, '{}', {});
    const sequential = performance.now() - start;
    agent.destroy();
    return { cold_ms: cold, warm_ms: median(warm), sequential_ms: sequential, delay_ms: delay };
  } finally {
    await outpost.close();
    await stub.stop();
  }
}

// Pull requests from the webhook's socket to GitHub's, to so many repositories each: `changes` of them as fast as eight connections
// deliver them, and `paced` ones at 20 a second. Returns the daemon's CPU for a pull request, the pull requests a second until all are
// on the wire, and the times from webhook to wire.
async function dispatchesOf({ dir, build, targets, changes, paced, say }) {
  const secret = randomBytes(20).toString('hex');
  const payload = largestPullRequest();
  const webhook = (number) => {
    const sha = fakeSha(`bench ${targets} ${number}`);
    const body = JSON.stringify({ ...payload, action: 'opened', number, pull_request: { ...payload.pull_request, number, title: `Change ${sha}`, head: { ...payload.pull_request.head, sha } } });
    const guid = `${String(number).padStart(8, '0')}-0000-11ef-8000-000000000000`; // of version 1, in the order of time
    const text = `POST /github/webhook HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nX-GitHub-Event: pull_request\r\nX-GitHub-Delivery: ${guid}\r\n`
      + `X-Hub-Signature-256: sha256=${createHmac('sha256', secret).update(body).digest('hex')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    return `${Buffer.byteLength(text)}\n${text}`;
  };
  const file = path.join(dir, `webhooks-${targets}`);
  await fs.writeFile(file, Array.from({ length: changes + paced + 1 }, (_, i) => webhook(i + 1)).join(''));
  const wire = await Wire.start(build, file, secret);
  const outpost = await startOutpost(dir, wire, Array.from({ length: targets }, (_, i) => vendor(i, `vendor-${i}/ci`)));
  try {
    say(`${changes} pull requests to ${targets} repositories`);
    await wire.ask(`send ${outpost.port} 1 1 ${targets}`); // gets the tokens
    await sleep(500);
    const before = await usedBy(outpost.pid);
    const { seconds } = await wire.ask(`send ${outpost.port} ${changes} 8 ${targets}`);
    await sleep(300); // until their ends are recorded
    const cpu_us = ((await usedBy(outpost.pid)).cpu_us - before.cpu_us) / changes;
    const { ms } = await wire.ask(`pace ${outpost.port} ${paced} 50 ${targets}`);
    ms.sort((a, b) => a - b);
    return { targets, cpu_us, per_second: changes / seconds, p50_ms: ms[Math.floor(ms.length / 2)], p99_ms: ms[Math.floor(ms.length * 0.99)] };
  } finally {
    await outpost.kill();
    await outpost.close();
    wire.stop();
  }
}

export async function dispatching({ dir, build, say }) {
  const one = await dispatchesOf({ dir, build, targets: 1, changes: 2000, paced: 200, say });
  const many = await dispatchesOf({ dir, build, targets: 9, changes: 400, paced: 0, say });
  return { one, many, further_us: (many.cpu_us - one.cpu_us) / (many.targets - 1) };
}

// Many waiting machines, each with its own token and long poll: their memory, and the time from a webhook until a machine has the
// job.
export async function waitingRunners({ dir, count, jobs, say }) {
  const stub = await Stub.start();
  const farm = { name: 'farm', title: 'Farm', level: 'L2', trust: 'merged', runners: [{ name: 'farm', pull: { labels: ['any'], max_parallel: 1000 } }], triggers: { push: { branches: ['main'] } } };
  const outpost = await startOutpost(dir, stub, [farm]);
  const agent = new http.Agent({ keepAlive: true });
  const machines = [];
  try {
    for (let i = 0; i < count; i += 8) {
      say(`${i} of ${count} waiting runners`);
      await Promise.all(Array.from({ length: Math.min(8, count - i) }, async (_, k) => {
        const name = `machine-${i + k}`;
        const { code, stdout, stderr } = await outpost.ctl('runner', 'add', name, '--accelerator', 'farm');
        if (code !== 0) throw new Error(stderr);
        machines.push(new WaitingMachine(outpost, name, stdout.trim()));
      }));
    }
    await Promise.all(machines.map((machine) => machine.start()));
    // When the last connection's first request has been read, every connection has sent a heartbeat.
    await until(async () => /outpost_claims_waiting(?:\{[^}]*\})? (\d+)/.exec((await outpost.get('/metrics')).text)?.[1] >= count, { timeout: 20_000, what: `${count} claims wait` });
    const mib = await residentMemory(outpost.pid);
    const latencies = [];
    for (let i = 0; i < jobs; i++) {
      if (i % 50 === 0) say(`job ${i} of ${jobs} to ${count} waiting runners`);
      const body = JSON.stringify(push({ after: fakeSha(`bench ${i}`) }));
      const signature = await sign(stub.secret, body);
      const given = WaitingMachine.next();
      const begun = performance.now();
      const { status } = await outpost.request('POST', '/github/webhook', { agent, body, headers: { 'content-type': 'application/json', 'x-github-event': 'push', 'x-github-delivery': randomUUID(), 'x-hub-signature-256': signature } });
      if (status !== 202) throw new Error(`a push got ${status}`);
      latencies.push(await given - begun);
    }
    const sorted = latencies.toSorted((a, b) => a - b);
    return { count, mib, jobs, p50_ms: median(latencies), p99_ms: sorted[Math.floor(sorted.length * 0.99)], max_ms: sorted.at(-1) };
  } finally {
    for (const machine of machines) machine.stop();
    agent.destroy();
    await outpost.close();
    await stub.stop();
  }
}

// Claims repeatedly over one connection, and resolves the waiters when it gets work.
class WaitingMachine {
  static #given = [];

  // Resolves with performance.now() when any machine gets work.
  static next() { return new Promise((resolve) => { WaitingMachine.#given.push(resolve); }); }

  constructor(outpost, name, token) { Object.assign(this, { outpost, name, token }); }

  start() {
    this.socket = net.connect(this.outpost.port, '127.0.0.1');
    this.socket.setEncoding('latin1').on('error', () => {}).on('data', (text) => {
      const at = performance.now();
      if (text.startsWith('HTTP/1.1 200')) WaitingMachine.#given.shift()?.(at);
      else if (!text.startsWith('HTTP/1.1 204')) throw new Error(`${this.name}: ${text}`);
      this.#claim();
    });
    return new Promise((resolve) => { this.socket.once('connect', () => { this.#claim(); resolve(); }); });
  }

  #claim() {
    const body = JSON.stringify({ name: this.name, claim_id: randomUUID(), labels: ['any'], wait: 30 });
    this.socket.write(`POST /api/v1/runner/claim HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${this.token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  }

  stop() { this.socket?.destroy(); }
}
