// Every answer and page on a database of 200 million results over one persistent connection, and webhook intake with and without
// readers of pages.
import { execFile } from 'node:child_process';
import fs from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Outpost, OUTPOSTD } from '../integration/lib/outpost.mjs';
import { Load, readPaths } from './load.mjs';
import { Stub } from './stub.mjs';

export const ACCELERATORS = 20; // as in fill.c
const READERS = 5;
const DROPPED = 1_000_000; // results of the oldest days
const READER_PAUSE_MS = 100;
export const vendor = (i) => ({ name: `vendor-${i}`, title: `Vendor ${i}`, level: 'L2', trust: 'anyone', runners: [{ name: 'ci', github: { repository: `vendor-${i}/ci` } }], triggers: { push: { branches: ['main'] }, schedule: ['0 2 * * *'] } });
const geometricMean = (list) => Math.exp(list.reduce((sum, x) => sum + Math.log(x), 0) / list.length);
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

// The addresses that people and programs request, found by following the answers.
export async function addresses(url, agent) {
  const of = (path) => api(`${url}/api/v1/${path}`, agent);
  const { newest } = await of('dashboard');
  const name = 'vendor-3';
  const one = await of(`accelerators/${name}`);
  const { next: jobs } = await of(`accelerators/${name}/jobs?limit=500`);
  const { next: numbers } = await of(`accelerators/${name}/numbers?limit=10`);
  const pull = one.jobs.find(({ number }) => number).number;
  const { next: tests } = await of('nightly?limit=50');
  // A list of a small database has one page.
  const further = (path, cursor) => (cursor ? [`${path}&cursor=${cursor}`] : []);
  return [
    '/api/v1/dashboard', '/', '/api/v1/accelerators', `/api/v1/accelerators/${name}`, `/accelerators/${name}`,
    `/api/v1/accelerators/${name}/jobs`, ...further(`/api/v1/accelerators/${name}/jobs?limit=100`, jobs),
    `/api/v1/accelerators/${name}/numbers`, ...further(`/api/v1/accelerators/${name}/numbers?limit=10&days=365`, numbers),
    `/api/v1/pulls/${pull}?limit=500`, `/pulls/${pull}`, `/api/v1/commits/${newest.sha}?limit=500`, `/commits/${newest.sha}`,
    `/api/v1/jobs/${one.jobs[0].id}?limit=500`, `/jobs/${one.jobs[0].id}`,
    '/api/v1/nightly', '/nightly', '/api/v1/nightly?days=90&limit=50', '/api/v1/nightly?state=regression', '/api/v1/nightly?q=case_17', `/api/v1/nightly?q=${'case_'.repeat(20)}`, `/api/v1/nightly?accelerator=${name}&suite=model`,
    ...further('/api/v1/nightly?limit=50', tests),
    '/api/v1/platforms', '/platforms', '/api/v1/known', '/api/v1/status', '/feed.xml', `/badge/${name}.svg`, '/metrics', '/healthz',
  ];
}

function refuseFaults(what, { refused, broken }) {
  if (refused + broken > 0) throw new Error(`${what}: ${refused} refused, ${broken} broken`);
}

const withNumber = (one, n) => `${one}${one.includes('?') ? '&' : '?'}n=${n}`;

// Outpost keeps an answer until something changes. An address that differs from all others, by a parameter that no answer reads, gets an
// answer of its own. Addresses take turns, and for each the daemons, so that quiet moments of the machine favour none. The median turn
// counts. Returns a list of answers for each daemon.
export async function latencies({ dir, urls, paths, turns, agent, say }) {
  const all = urls.map(() => paths.map(() => []));
  for (let turn = 1; turn <= turns; turn++)
    for (const [i, one] of paths.entries())
      for (const daemon of turn % 2 ? urls.keys() : [...urls.keys()].toReversed()) {
        say(`turn ${turn} of ${turns}, answer ${i + 1} of ${paths.length}`);
        // Loads the database's pages into memory, and makes PostgreSQL's plans: each of the two readers prepares its statements.
        for (let reader = 0; turn === 1 && reader < 4; reader++) await get(`${urls[daemon]}${withNumber(one, `first-${reader}`)}`, agent);
        const run = await readPaths({ dir, origin: urls[daemon], paths: [withNumber(one, '{n}')], seconds: 1 });
        refuseFaults(one, run);
        all[daemon][i].push(run);
      }
  return Promise.all(urls.map((url, daemon) => Promise.all(paths.map(async (one, i) => ({
    path: one, p50: median(all[daemon][i].map((run) => run.p50)), p99: median(all[daemon][i].map((run) => run.p99)),
    requests: all[daemon][i].reduce((sum, run) => sum + run.requests, 0), bytes: (await get(url + one, agent)).bytes,
  })))));
}

// Eight readers of one page. On a machine of two cores, the daemon waits some milliseconds for a core whenever anything else than
// the load runs, and that is the p99 of a run in which it happens often. So the median of the turns counts, as above.
async function crowds({ dir, url, turns, seconds, say }) {
  const all = new Map(['/', '/nightly'].map((page) => [page, []]));
  for (let turn = 1; turn <= turns; turn++)
    for (const [page, runs] of all) {
      say(`eight readers of ${page}, turn ${turn} of ${turns}`);
      const run = await readPaths({ dir, origin: url, paths: [page], seconds, connections: 8 });
      refuseFaults(page, run);
      runs.push(run);
    }
  return [...all].map(([page, runs]) => ({ path: page, p50: median(runs.map((run) => run.p50)), p99: median(runs.map((run) => run.p99)), runs }));
}

// onlyCrowds: without the other answers, webhooks and the retention.
export async function pages({ dir, results = 200_000_000, turns = 3, seconds = 5, pairs = 3, database, onlyCrowds = false, say }) {
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
    if (onlyCrowds) return { crowds: await crowds({ dir, url: outpost.url, turns, seconds, say }) };
    const [answers] = await latencies({ dir, urls: [outpost.url], paths, turns, agent, say });
    const read = await crowds({ dir, url: outpost.url, turns, seconds, say });
    const intake = { quiet: [], read: [] };
    // The file grows with each run, which slows the second measurement, so each is first equally often.
    const rounds = 2 * Math.ceil(pairs / 2);
    for (let i = 1; i <= rounds; i++) {
      for (const kind of i % 2 ? ['quiet', 'read'] : ['read', 'quiet']) {
        say(`webhooks, pair ${i} of ${rounds}: ${kind}`);
        const [run, beside] = await Promise.all([
          load.run(`${outpost.url}/github/webhook`, { seconds }),
          kind === 'read' ? readPaths({ dir, origin: outpost.url, paths, seconds, connections: READERS, pace: READER_PAUSE_MS }) : { requests: 0, refused: 0, broken: 0 },
        ]);
        refuseFaults('webhooks', run);
        refuseFaults('readers', beside);
        intake[kind].push({ ...run, reads: beside.requests, reads_p50: beside.p50, reads_p99: beside.p99 });
        await sleep(1000);
      }
    }
    const { size: bytes } = await fs.stat(file);
    await outpost.kill();
    say(`dropping the oldest ${DROPPED} results`);
    const { stdout } = await promisify(execFile)(path.join(path.dirname(OUTPOSTD), 'bench', 'retention'), [file, String(DROPPED)]);
    const [drop] = stdout.trim().split('\n').map((line) => JSON.parse(line));
    return { results, bytes, ready_ms, answers, crowds: read, intake, drop, ratio: geometricMean(intake.read.map((run, i) => run.rate / intake.quiet[i].rate)) };
  } finally {
    agent.destroy();
    await outpost.kill();
    await outpost.close();
    await stub.stop();
  }
}
