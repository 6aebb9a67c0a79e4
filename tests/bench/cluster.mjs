// PostgreSQL compared with SQLite, and several daemons with one, as ratios within one run on the cores that also run the database, the load
// and nginx.
//
//   node tests/bench/cluster.mjs [BUILD_FOLDER] [--json] [--pairs N] [--results N] [--before BUILD_FOLDER] [--only PART,PART]
//
// before (with --before): the intake on SQLite, compared with the build of an older commit. intake: signed webhooks, on disk (fsync) before
// their 202, by as many daemons as stated, without a proxy. On PostgreSQL nothing is planned meanwhile: several daemons would plan more than one
// does beside its intake, and the rates would compare different amounts of work. reports: of 2,000 tests with a known list, one after the
// other, until their verdicts are written. pages: each answer and page on the same rows (tests/bench/fill.c). failover: from the promotion of
// the synchronous standby to the first 202 through nginx.
//
// The kinds of a part take short turns, in an order that alternates, so that the noise of the machine meets all of them. A ratio is the
// median over the rounds; in brackets is its interval of 95 %. Each part prints its rows when it is done (--json: an object in a line).
import { execFile } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';

const { values, positionals: [build = 'build/release'] } = parseArgs({ allowPositionals: true, options: {
  json: { type: 'boolean' }, pairs: { type: 'string' }, results: { type: 'string' }, before: { type: 'string' }, only: { type: 'string' },
} });
process.env.OUTPOSTD ??= path.resolve(build, 'outpostd');
process.env.OUTPOSTCTL ??= path.resolve(build, 'outpostctl');
delete process.env.OUTPOST_TEST_DATABASE; // each daemon has the database that a measurement gives it

const { Load, machine } = await import('./load.mjs');
const { ACCELERATORS, addresses, latencies, vendor } = await import('./pages.mjs');
const { reports } = await import('./reports.mjs');
const { Stub } = await import('./stub.mjs');
const { Cluster } = await import('../integration/lib/cluster.mjs');
const { Outpost, until } = await import('../integration/lib/outpost.mjs');

const RESULTS = Number(values.results ?? 13_000_000);
const SECONDS = 2; // of a turn of intake
// A turn of intake differs by some percent from the next one. The median of 30 ratios of two turns shows a difference of 2 %.
const rounds = (usual) => Number(values.pairs ?? usual);
const CONNECTIONS = 60; // of all daemons together
const FAILOVERS = 3;
const REPORT = 'document of 2,000'; // the kind of report (reports.mjs)

const begun = Date.now();
const SAY_EVERY_MS = 5000; // in a file
let said = -Infinity;
const say = (text) => {
  const line = `${((Date.now() - begun) / 1000).toFixed(0).padStart(4)} s  ${text}`;
  if (process.stderr.isTTY) return process.stderr.write(`\r\x1b[K${line}`);
  if (Date.now() - said < SAY_EVERY_MS) return false;
  said = Date.now();
  return process.stderr.write(`${line}\n`);
};
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

// Takes the turn of deciding transactions for a number of seconds, as another daemon would. Intake never waits for it. Returns {end}, the
// promise of its end.
async function takeTurn(database, seconds) {
  const end = database.query(`SELECT pg_advisory_lock(1333097588), pg_sleep(${seconds})`);
  await until(async () => (await database.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")).length > 0, { what: 'the turn is taken' });
  return { end };
}

async function onPostgres(dir, stub, load, nodes) {
  const cluster = await Cluster.prepare({ ...options(stub, dir, [CI]), nodes, database: { isDurable: true } });
  try {
    await cluster.spawn();
    await cluster.ready();
    await sleep(500);
    const turn = await takeTurn(cluster.database, SECONDS + 1);
    const rate = await rateOf(load, cluster.nodes);
    await turn.end;
    return rate;
  } finally {
    for (const node of cluster.nodes) await cluster.killNode(node); // their planner would still work
    await cluster.close();
  }
}

// kinds: {name: a function that measures}. Returns {name: the values of the rounds}.
async function turns(part, n, kinds) {
  const measured = Object.fromEntries(Object.keys(kinds).map((name) => [name, []]));
  for (let i = 1; i <= n; i++)
    for (const [name, measure] of i % 2 ? Object.entries(kinds) : Object.entries(kinds).toReversed()) {
      say(`${part}, round ${i} of ${n}: ${name}`);
      measured[name].push(await measure());
    }
  return measured;
}

async function withLoad(dir, work) {
  const stub = await Stub.start();
  try {
    return await work(stub, await Load.prepare(dir, stub.secret));
  } finally {
    await stub.stop();
  }
}

const intakeBefore = (dir) => withLoad(dir, (stub, load) => turns('intake', rounds(30), {
  before: () => onSqlite(dir, stub, load, path.resolve(values.before, 'outpostd')), sqlite: () => onSqlite(dir, stub, load),
}));

const intake = (dir) => withLoad(dir, (stub, load) => turns('intake', rounds(6), {
  sqlite: () => onSqlite(dir, stub, load), ...Object.fromEntries(['one', 'two', 'three'].map((name, i) => [name, () => onPostgres(dir, stub, load, i + 1)])),
}));

// ---- reports ----

async function startOnPostgres(dir, stub, accelerators) {
  const cluster = await Cluster.prepare({ ...options(stub, dir, accelerators), nodes: 1, database: { isDurable: true } });
  await cluster.spawn();
  await cluster.ready();
  const [node] = cluster.nodes;
  return { pid: node.pid, request: (...args) => node.request(...args), ctl: (...args) => node.ctl(...args), close: () => cluster.close() };
}

// The results a second.
function reportRates(dir) {
  const rate = async (start) => {
    const measured = await reports({ dir, names: [REPORT], start, say: () => {} });
    return measured[REPORT].results_per_second;
  };
  return turns('reports', rounds(6), { sqlite: () => rate(), postgres: () => rate(startOnPostgres) });
}

// ---- pages ----

// PostgreSQL gets a copy of the rows of SQLite's file. Its statistics and its visibility map are made at once, as autovacuum has made
// them on a database that grew over months, and the writing of dirty pages ends before the first turn.
async function fillBoth(sqlite, { database }) {
  say(`pages: a database of ${n(RESULTS)} results`);
  await promisify(execFile)(path.join(build, 'bench', 'fill'), [path.join(sqlite.stateDir, 'outpost.db'), String(RESULTS)]);
  say('pages: its copy on PostgreSQL');
  const { code, stderr } = await sqlite.ctl('store', 'copy', '--to', database.url());
  if (code !== 0) throw new Error(stderr);
  await database.primary.sql('VACUUM (ANALYZE)', 'outpost');
  await database.primary.sql('CHECKPOINT', 'outpost');
}

async function pages(dir) {
  const stub = await Stub.start();
  const agent = new http.Agent({ keepAlive: true });
  const all = options(stub, dir, Array.from({ length: ACCELERATORS }, (_, i) => vendor(i)));
  const sqlite = await Outpost.prepare(all);
  const cluster = await Cluster.prepare({ ...all, nodes: 1, database: { isDurable: true } });
  try {
    await fillBoth(sqlite, cluster);
    await sqlite.spawn();
    await cluster.spawn();
    await cluster.ready();
    const [{ ownUrl }] = cluster.nodes;
    const [onSqlite, onPostgres] = await latencies({
      dir, urls: [sqlite.url, ownUrl], paths: await addresses(sqlite.url, agent), turns: rounds(3), agent, say: (text) => say(`pages: ${text}`),
    });
    return onSqlite.map((one, i) => ({ path: one.path, sqlite: one, postgres: onPostgres[i] }));
  } finally {
    agent.destroy();
    await sqlite.kill();
    await sqlite.close();
    await cluster.killNode(cluster.nodes[0]);
    await cluster.close();
    await stub.stop();
  }
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

const ratios = (over, under) => over.map((value, i) => value / under[i]).toSorted((a, b) => a - b);

// From order statistics; of fewer than seven values, all of them.
function intervalOf(sorted) {
  const at = Math.max(0, Math.floor(sorted.length / 2 - 0.98 * Math.sqrt(sorted.length)));
  return [sorted[at], sorted.at(-1 - at)];
}

function ratioRow(what, of, over, under, besideWhat, least) {
  const sorted = ratios(of[over], of[under]);
  return { what, value: median(of[over]), beside: median(of[under]), besideWhat, ratio: median(sorted), interval: intervalOf(sorted), least, unit: '/s' };
}

function pageRow(read) {
  const slowest = (engine) => Math.max(...read.map((one) => one[engine].p99));
  const [value, beside] = [slowest('postgres'), slowest('sqlite')];
  return { what: `the slowest page on ${n(RESULTS)} results (p99)`, value, beside, besideWhat: 'SQLite', ratio: value / beside, most: 2, unit: ' ms', digits: 1 };
}

const PARTS = {
  ...(values.before && { before: { measure: intakeBefore, rows: (rates) => [ratioRow('webhooks a second on SQLite', rates, 'sqlite', 'before', 'before', 0.98)] } }),
  intake: { measure: intake, rows: (rates) => [
    ratioRow('webhooks a second, one daemon on PostgreSQL', rates, 'one', 'sqlite', 'SQLite', 0.35),
    ratioRow('webhooks a second, two daemons', rates, 'two', 'one', 'one', 1),
    ratioRow('webhooks a second, three daemons', rates, 'three', 'one', 'one', 0.9),
  ] },
  reports: { measure: reportRates, rows: (rates) => [ratioRow('results a second, in reports of 2,000 with a known list', rates, 'postgres', 'sqlite', 'SQLite', 0.5)] },
  pages: { measure: pages, rows: (read) => [pageRow(read)], more: pageLines },
  failover: { measure: failovers, rows: (seconds) => [
    { what: 'failover: promotion to the first 202', value: median(seconds), unit: ' s', digits: 1 },
    { what: `the slowest of ${seconds.length} failovers`, value: Math.max(...seconds), most: 5, unit: ' s', digits: 1 },
  ] },
};

const judged = (one) => ({ ...one, is_reached: (one.ratio ?? one.value) >= (one.least ?? -Infinity) && (one.ratio ?? one.value) <= (one.most ?? Infinity) });

const COLUMNS = [['', 56], ['PostgreSQL', 12], ['beside', 18], ['ratio', 18], ['expected', 8], ['', 1]]; // and their widths
const line = (cells) => cells.map((cell, i) => (i === 0 || i === 4 ? cell.padEnd(COLUMNS[i][1]) : cell.padStart(COLUMNS[i][1]))).join('  ');

function rowLine(one) {
  const expected = one.least ? `≥ ${one.least}` : one.most ? `≤ ${one.most}` : '';
  const interval = one.interval ? ` (${one.interval.map((value) => n(value, 2)).join('…')})` : '';
  const text = line([one.what, n(one.value, one.digits) + one.unit, one.beside === undefined ? '' : `${one.besideWhat} ${n(one.beside, one.digits)}${one.unit}`,
    one.ratio === undefined ? '' : n(one.ratio, 2) + interval, expected, expected && (one.is_reached ? '✓' : '✗')]);
  return text.replace(/[✓✗]$/, (mark) => paint(mark === '✓' ? '32' : '31', mark));
}

// The pages that lose most, by their medians, which a busy machine disturbs least; and their p99.
function pageLines(read) {
  const ratio = (one) => one.postgres.p50 / one.sqlite.p50;
  const times = ({ p50, p99 }) => `${n(p50, 1).padStart(7)} ${n(p99, 1).padStart(7)} ms`;
  return ['ratio   PostgreSQL: p50, p99   SQLite: p50, p99', ...read.toSorted((a, b) => ratio(b) - ratio(a))
    .map((one) => `${n(ratio(one), 2).padStart(5)}   ${times(one.postgres)}     ${times(one.sqlite)}   ${one.path.slice(0, 90)}`)];
}

const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-bench-'));
try {
  const host = machine(dir);
  const only = values.only?.split(',') ?? Object.keys(PARTS);
  if (values.json) console.log(JSON.stringify({ machine: host }));
  else console.log(`${host.cpu}, ${host.cores} cores, fsync ${n(host.fsync_ms, 2)} ms; the load, the database and the daemons run on the same cores\n\n${paint('1', line(COLUMNS.map(([title]) => title)))}`);
  for (const [name, { measure, rows, more }] of Object.entries(PARTS).filter(([part]) => only.includes(part))) {
    const measured = await measure(dir);
    const list = rows(measured).map(judged);
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
    if (values.json) console.log(JSON.stringify({ part: name, seconds: (Date.now() - begun) / 1000, rows: list, measured }));
    else console.log([...list.map(rowLine), ...(more?.(measured).map((one) => `  ${one}`) ?? [])].join('\n'));
  }
} finally {
  await fs.rm(dir, { recursive: true, force: true });
}
