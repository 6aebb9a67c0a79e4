// Every answer and page on a database of ten million results, one kept connection; and webhooks taken in while pages
// are read beside those while nobody reads.
import { execFile } from 'node:child_process';
import fs from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Outpost, OUTPOSTD } from '../integration/lib/outpost.mjs';
import { Load } from './load.mjs';
import { Stub } from './stub.mjs';

const ACCELERATORS = 8; // those of fill.c
const vendor = (i) => ({ name: `vendor-${i}`, title: `Vendor ${i}`, level: 'L2', trust: 'anyone', runners: [{ name: 'ci', github: { repository: `vendor-${i}/ci` } }], triggers: { push: { branches: ['main'] }, schedule: ['0 2 * * *'] } });
const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

function get(url, agent) {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    http.get(url, { agent }, (response) => {
      let bytes = 0;
      const parts = [];
      response.on('data', (part) => { bytes += part.length; parts.push(part); });
      response.on('end', () => resolve({ status: response.statusCode, bytes, ms: performance.now() - begun, text: () => Buffer.concat(parts).toString() }));
    }).on('error', reject);
  });
}

async function api(url, agent) {
  const { status, text } = await get(url, agent);
  if (status !== 200) throw new Error(`${url} is ${status}: ${text().slice(0, 200)}`);
  return JSON.parse(text());
}

// What people and programs ask for, found by following the answers.
async function addresses(url, agent) {
  const of = (path) => api(`${url}/api/v1/${path}`, agent);
  const { newest } = await of('dashboard');
  const name = 'vendor-3';
  const one = await of(`accelerators/${name}`);
  const { next: jobs } = await of(`accelerators/${name}/jobs?limit=500`);
  const { next: numbers } = await of(`accelerators/${name}/numbers?limit=10`);
  const pull = one.jobs.find(({ number }) => number).number;
  const { next: tests } = await of('nightly?limit=50');
  return [
    '/api/v1/dashboard', '/', '/api/v1/accelerators', `/api/v1/accelerators/${name}`, `/accelerators/${name}`,
    `/api/v1/accelerators/${name}/jobs`, `/api/v1/accelerators/${name}/jobs?limit=100&cursor=${jobs}`,
    `/api/v1/accelerators/${name}/numbers`, `/api/v1/accelerators/${name}/numbers?limit=10&days=365&cursor=${numbers}`,
    `/api/v1/pulls/${pull}?limit=500`, `/pulls/${pull}`, `/api/v1/commits/${newest.sha}?limit=500`, `/commits/${newest.sha}`,
    `/api/v1/jobs/${one.jobs[0].id}?limit=500`, `/jobs/${one.jobs[0].id}`,
    '/api/v1/nightly', '/nightly', '/api/v1/nightly?days=90&limit=50', '/api/v1/nightly?state=regression', '/api/v1/nightly?q=case_17', `/api/v1/nightly?accelerator=${name}&suite=model`,
    `/api/v1/nightly?limit=50&cursor=${tests}`,
    '/api/v1/platforms', '/platforms', '/api/v1/known', '/api/v1/status', '/feed.xml', `/badge/${name}.svg`, '/metrics', '/healthz',
  ];
}

// Takes turns, so that no address has the machine's quiet moments to itself.
async function latencies({ url, paths, rounds, agent, say }) {
  const times = new Map(paths.map((one) => [one, { ms: [], bytes: 0 }]));
  for (let round = 0; round < rounds + 3; round++) {
    if (round % 20 === 0) say(`${paths.length} answers, round ${round} of ${rounds}`);
    for (const one of paths) {
      const { status, bytes, ms } = await get(url + one, agent);
      if (status !== 200) throw new Error(`${one} is ${status}`);
      if (round < 3) continue; // the database's pages come into memory
      times.get(one).ms.push(ms);
      times.get(one).bytes = bytes;
    }
  }
  return [...times].map(([one, { ms, bytes }]) => {
    const sorted = ms.toSorted((a, b) => a - b);
    return { path: one, p50: sorted[Math.floor(sorted.length / 2)], p99: sorted[Math.ceil(sorted.length * 0.99) - 1], bytes };
  });
}

// Readers that each ask ten times a second, until stop().
function readers(url, paths, count, agent) {
  let isOver = false;
  let n = 0;
  const all = Array.from({ length: count }, async (_, i) => {
    for (let at = i; !isOver; at += 7) {
      await get(url + paths[at % paths.length], agent);
      n++;
      await sleep(100);
    }
  });
  return { stop: async () => { isOver = true; await Promise.all(all); return n; } };
}

export async function pages({ dir, results = 10_000_000, rounds = 300, seconds = 5, pairs = 3, database, say }) {
  const stub = await Stub.start();
  const load = await Load.prepare(dir, stub.secret);
  const agent = new http.Agent({ keepAlive: true });
  const outpost = await Outpost.prepare({
    rig: stub, accelerators: Array.from({ length: ACCELERATORS }, (_, i) => vendor(i)), logFile: path.join(dir, 'outpost.log'),
    config: { log: { level: 'info' }, comment: { enabled: false }, reconcile: { interval: '1h' } },
  });
  try {
    const file = path.join(outpost.stateDir, 'outpost.db');
    if (database) {
      await fs.copyFile(database, file);
    } else {
      say(`a database of ${results} results`);
      await promisify(execFile)(path.join(path.dirname(OUTPOSTD), 'bench', 'fill'), [file, String(results)]);
    }
    const begun = performance.now();
    await outpost.spawn();
    const ready_ms = performance.now() - begun;
    const paths = await addresses(outpost.url, agent);
    const answers = await latencies({ url: outpost.url, paths, rounds, agent, say });
    const intake = { quiet: [], read: [] };
    for (let i = 1; i <= pairs; i++) {
      for (const who of i % 2 ? ['quiet', 'read'] : ['read', 'quiet']) {
        say(`webhooks, pair ${i} of ${pairs}: ${who}`);
        const beside = who === 'read' ? readers(outpost.url, paths, 5, agent) : { stop: () => 0 };
        const run = await load.run(`${outpost.url}/github/webhook`, { seconds });
        run.n_read = await beside.stop();
        if (run.refused + run.broken > 0) throw new Error(`${run.refused} webhooks refused, ${run.broken} broken`);
        intake[who].push(run);
        await sleep(1000);
      }
    }
    return { results, bytes: (await fs.stat(file)).size, ready_ms, answers, intake, ratio: median(intake.read.map((run, i) => run.rate / intake.quiet[i].rate)) };
  } finally {
    agent.destroy();
    await outpost.kill();
    await outpost.close();
    await stub.stop();
  }
}
