// PostgreSQL compared with SQLite, and several daemons with one, as ratios within one run on the cores that also run the database, the load
// and nginx.
//
//   node tests/bench/cluster.mjs [BUILD_FOLDER] [--json] [--seconds N] [--pairs N] [--results N] [--before BUILD_FOLDER] [--only PART,PART]
//
// intake: signed webhooks, on disk (fsync) before their 202, by as many daemons as stated, without a proxy. reports: of 2,000 tests with a
// known list, one after the other, until their verdicts are written. pages: each answer and page on the same database (tests/bench/fill.c).
// failover: from the promotion of the synchronous standby to the first 202 through nginx.
// --before: the build of an older commit, whose intake on SQLite is compared, too.
import { execFile } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';

const { values, positionals: [build = 'build/release'] } = parseArgs({ allowPositionals: true, options: {
  json: { type: 'boolean' }, seconds: { type: 'string' }, pairs: { type: 'string' }, results: { type: 'string' }, before: { type: 'string' }, only: { type: 'string' },
} });
process.env.OUTPOSTD ??= path.resolve(build, 'outpostd');
process.env.OUTPOSTCTL ??= path.resolve(build, 'outpostctl');
delete process.env.OUTPOST_TEST_DATABASE; // each daemon has the database that a measurement gives it

const { Load, machine } = await import('./load.mjs');
const { ACCELERATORS, addresses, latencies, vendor } = await import('./pages.mjs');
const { reports } = await import('./reports.mjs');
const { Stub } = await import('./stub.mjs');
const { Cluster } = await import('../integration/lib/cluster.mjs');
const { Outpost } = await import('../integration/lib/outpost.mjs');

const SECONDS = Number(values.seconds ?? 5), PAIRS = Number(values.pairs ?? 3), RESULTS = Number(values.results ?? 13_000_000);
const CONNECTIONS = 60; // of all daemons together
const FAILOVERS = 3;
const REPORT = 'document of 2,000'; // the kind of report (reports.mjs)

const begun = Date.now();
const say = (text) => { if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${((Date.now() - begun) / 1000).toFixed(0).padStart(4)} s  ${text}`); };
const paint = (code, text) => (process.stdout.isTTY && !process.env.NO_COLOR ? `\x1b[${code}m${text}\x1b[0m` : text);
const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
const n = (value, digits = 0) => value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

const options = (stub, dir, vendors) => ({
  rig: stub, accelerators: vendors, logFile: path.join(dir, 'outpost.log'),
  config: { log: { level: 'info' }, comment: { enabled: false }, reconcile: { interval: '1h' } },
});
const CI = { name: 'vendor-1', title: 'Vendor 1', level: 'L2', runners: [{ name: 'ci', github: { repository: 'vendor-1/ci' } }] };

// ---- intake ----

// The rate of all daemons together.
async function rateOf(load, daemons) {
  const runs = await Promise.all(daemons.map(({ port }) => load.run(`http://127.0.0.1:${port}/github/webhook`, { seconds: SECONDS, connections: CONNECTIONS / daemons.length, threads: 1 })));
  const failed = runs.reduce((sum, { refused, broken }) => sum + refused + broken, 0);
  if (failed > 0) throw new Error(`${failed} webhooks were refused or broken`);
  return runs.reduce((sum, { rate }) => sum + rate, 0);
}

async function onSqlite(dir, stub, load, program) {
  const outpost = await Outpost.start({ ...options(stub, dir, [CI]), program });
  try {
    await sleep(500); // until the work of the start is done
    return await rateOf(load, [outpost]);
  } finally {
    await outpost.kill();
    await outpost.close();
  }
}

async function onPostgres(dir, stub, load, nodes) {
  const cluster = await Cluster.prepare({ ...options(stub, dir, [CI]), nodes, database: { isDurable: true } });
  try {
    await cluster.spawn();
    await cluster.ready();
    await sleep(500);
    return await rateOf(load, cluster.nodes);
  } finally {
    for (const node of cluster.nodes) await cluster.killNode(node); // their planner would still work
    await cluster.close();
  }
}

async function intake(dir) {
  const stub = await Stub.start();
  const load = await Load.prepare(dir, stub.secret);
  const kinds = [
    ...(values.before ? [['before', () => onSqlite(dir, stub, load, path.resolve(values.before, 'outpostd'))]] : []), ['sqlite', () => onSqlite(dir, stub, load)],
    ...['one', 'two', 'three'].map((name, i) => [name, () => onPostgres(dir, stub, load, i + 1)]),
  ];
  const rates = Object.fromEntries(kinds.map(([name]) => [name, []]));
  try {
    for (let i = 1; i <= PAIRS; i++)
      for (const [name, measure] of i % 2 ? kinds : kinds.toReversed()) {
        say(`intake, round ${i} of ${PAIRS}: ${name}`);
        rates[name].push(await measure());
      }
  } finally {
    await stub.stop();
  }
  return rates;
}

// ---- reports ----

async function startOnPostgres(dir, stub, accelerators) {
  const cluster = await Cluster.prepare({ ...options(stub, dir, accelerators), nodes: 1, database: { isDurable: true } });
  await cluster.spawn();
  await cluster.ready();
  const [node] = cluster.nodes;
  return { pid: node.pid, request: (...args) => node.request(...args), ctl: (...args) => node.ctl(...args), close: () => cluster.close() };
}

// The results a second, on both engines in turn.
async function reportRates(dir) {
  const rates = { sqlite: [], postgres: [] };
  for (let i = 1; i <= PAIRS; i++)
    for (const engine of i % 2 ? ['sqlite', 'postgres'] : ['postgres', 'sqlite']) {
      const measured = await reports({ dir, names: [REPORT], ...(engine === 'postgres' && { start: startOnPostgres }), say: () => say(`reports, round ${i} of ${PAIRS}: ${engine}`) });
      rates[engine].push(measured[REPORT].results_per_second);
    }
  return rates;
}

// ---- pages ----

async function pagesOn(dir, what, { config, fillInto, prepare }) {
  const stub = await Stub.start();
  const agent = new http.Agent({ keepAlive: true });
  const outpost = await prepare({ ...options(stub, dir, Array.from({ length: ACCELERATORS }, (_, i) => vendor(i))), ...config });
  try {
    say(`pages on ${what}: a database of ${RESULTS} results`);
    await promisify(execFile)(path.join(build, 'bench', 'fill'), [fillInto(outpost), String(RESULTS)], { maxBuffer: 1 << 26 });
    await outpost.spawn();
    if (outpost.ready) await outpost.ready();
    const { port } = outpost.nodes?.[0] ?? outpost;
    const url = `http://127.0.0.1:${port}`;
    return await latencies({ dir, url, paths: await addresses(url, agent), turns: 3, agent, say: (text) => say(`pages on ${what}: ${text}`) });
  } finally {
    agent.destroy();
    for (const one of outpost.nodes ?? [outpost]) await (outpost.killNode ? outpost.killNode(one) : one.kill());
    await outpost.close();
    await stub.stop();
  }
}

async function pages(dir) {
  const sqlite = await pagesOn(dir, 'SQLite', { prepare: (of) => Outpost.prepare(of), fillInto: ({ stateDir }) => path.join(stateDir, 'outpost.db') });
  const postgres = await pagesOn(dir, 'PostgreSQL', { prepare: (of) => Cluster.prepare({ ...of, nodes: 1, database: { isDurable: true } }), fillInto: ({ database }) => database.url() });
  const slowest = (list) => list.toSorted((a, b) => b.p99 - a.p99)[0];
  return { sqlite: slowest(sqlite), postgres: slowest(postgres), all: postgres.map((one, i) => ({ path: one.path, sqlite: sqlite[i].p99, postgres: one.p99 })) };
}

// ---- failover ----

async function failovers(dir) {
  const stub = await Stub.start();
  const cluster = await Cluster.prepare({ ...options(stub, dir, [CI]), nodes: 2, database: { isDurable: true, hasStandby: true } });
  const load = await Load.prepare(dir, stub.secret);
  const body = await fs.readFile(load.body);
  const headers = { 'content-type': 'application/json', 'x-github-event': 'pull_request', 'x-hub-signature-256': `sha256=${createHmac('sha256', stub.secret).update(body).digest('hex')}` };
  const send = () => fetch(`${cluster.url}/github/webhook`, { method: 'POST', body, headers: { ...headers, 'x-github-delivery': randomUUID() }, signal: AbortSignal.timeout(10_000) })
    .then(({ status }) => status === 202, () => false);
  const seconds = [];
  try {
    await cluster.spawn();
    await cluster.ready();
    for (let i = 1; i <= FAILOVERS; i++) {
      say(`failover ${i} of ${FAILOVERS}`);
      let promoted, answered;
      const attached = cluster.database.failOver(async () => { await sleep(1000); promoted = performance.now(); });
      // Several senders, because one would wait behind an answer that takes seconds.
      const sender = async () => {
        while (!answered) {
          const at = promoted;
          if (await send() && at) answered ??= performance.now();
          await sleep(50);
        }
      };
      await Promise.all(Array.from({ length: 4 }, sender));
      await attached;
      seconds.push((answered - promoted) / 1000);
      await cluster.ready();
    }
  } finally {
    await cluster.close();
    await stub.stop();
  }
  return seconds;
}

// ---- the table ----

const pairs = (over, under) => median(over.map((rate, i) => rate / under[i]));

function* rowsOf({ rates, results, read, gaps }) {
  const row = (what, of, over, under, besideWhat, least) => ({ what, value: median(of[over]), beside: median(of[under]), besideWhat, ratio: pairs(of[over], of[under]), least, unit: '/s' });
  if (rates?.before) yield row('webhooks a second on SQLite', rates, 'sqlite', 'before', 'before', 0.98);
  if (rates) {
    yield row('webhooks a second, one daemon on PostgreSQL', rates, 'one', 'sqlite', 'SQLite', 0.35);
    yield row('webhooks a second, two daemons', rates, 'two', 'one', 'one', 1);
    yield row('webhooks a second, three daemons', rates, 'three', 'one', 'one', 0.9);
  }
  if (results) yield row('results a second, in reports of 2,000 with a known list', results, 'postgres', 'sqlite', 'SQLite', 0.5);
  if (read) yield { what: `the slowest page on ${n(RESULTS)} results (p99)`, value: read.postgres.p99, beside: read.sqlite.p99, besideWhat: 'SQLite', ratio: read.postgres.p99 / read.sqlite.p99, most: 2, unit: ' ms', digits: 1 };
  if (gaps) {
    yield { what: 'failover: promotion to the first 202', value: median(gaps), unit: ' s', digits: 1 };
    yield { what: `the slowest of ${gaps.length} failovers`, value: Math.max(...gaps), most: 5, unit: ' s', digits: 1 };
  }
}

const judged = (one) => ({ ...one, is_reached: (one.ratio ?? one.value) >= (one.least ?? -Infinity) && (one.ratio ?? one.value) <= (one.most ?? Infinity) });

function table(list) {
  const lines = [['', 'PostgreSQL', 'beside', 'ratio', 'expected', '']];
  for (const one of list) {
    const expected = one.least ? `≥ ${one.least}` : one.most ? `≤ ${one.most}` : '';
    lines.push([one.what, n(one.value, one.digits) + one.unit, one.beside === undefined ? '' : `${one.besideWhat} ${n(one.beside, one.digits)}${one.unit}`,
      one.ratio === undefined ? '' : n(one.ratio, 2), expected, expected && (one.is_reached ? '✓' : '✗')]);
  }
  const widths = lines[0].map((_, i) => Math.max(...lines.map((line) => line[i].length)));
  return lines.map((line, at) => {
    const text = line.map((cell, i) => (i === 0 || i === 4 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ');
    return at === 0 ? paint('1', text) : text.replace(/[✓✗]$/, (mark) => paint(mark === '✓' ? '32' : '31', mark));
  }).join('\n');
}

const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-bench-'));
try {
  const host = machine(dir);
  const parts = { rates: ['intake', intake], results: ['reports', reportRates], read: ['pages', pages], gaps: ['failover', failovers] };
  const only = values.only?.split(',');
  const measured = {};
  for (const [key, [name, measure]] of Object.entries(parts))
    if (!only || only.includes(name)) measured[key] = await measure(dir);
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  const list = [...rowsOf(measured)].map(judged);
  if (values.json) {
    console.log(JSON.stringify({ machine: host, seconds: (Date.now() - begun) / 1000, rows: list, ...measured }, null, 2));
  } else {
    console.log(`${host.cpu}, ${host.cores} cores, fsync ${n(host.fsync_ms, 2)} ms; the load, the database and the daemons run on the same cores`);
    console.log(`\n${table(list)}\n`);
    if (measured.read) console.log(measured.read.all.toSorted((a, b) => b.postgres / b.sqlite - a.postgres / a.sqlite).slice(0, 10)
      .map((one) => `${n(one.postgres / one.sqlite, 2).padStart(6)}  ${n(one.postgres, 2).padStart(8)} ms  ${n(one.sqlite, 2).padStart(8)} ms  ${one.path.slice(0, 90)}`).join('\n'));
  }
} finally {
  await fs.rm(dir, { recursive: true, force: true });
}
