// Speed, as ratios within one run: webhook intake compared with nginx as a proxy of the same requests, API requests per dispatch,
// fan-out, memory; and every answer and page on a database of 200 million results.
//
//   node tests/bench/bench.mjs [BUILD_FOLDER] [--json] [--seconds N] [--pairs N] [--pages] [--crowds] [--turns N] [--results N] [--database FILE]
//       [--before PROGRAM]
//
// --pages: only the answers and pages, each with its times; --crowds: only the eight readers of a page; --database: on a copy of this database (from tests/bench/fill.c);
// --before: only the results a second, in turns with an outpostd of another commit. The table goes to standard output, progress to a
// terminal's standard error. It takes some ten minutes.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals: [build] } = parseArgs({ allowPositionals: true, options: {
  json: { type: 'boolean' }, seconds: { type: 'string' }, pairs: { type: 'string' }, pages: { type: 'boolean' }, crowds: { type: 'boolean' }, turns: { type: 'string' }, results: { type: 'string' }, database: { type: 'string' }, before: { type: 'string' },
} });
if (build) process.env.OUTPOSTD ??= path.resolve(build, 'outpostd');
if (build) process.env.OUTPOSTCTL ??= path.resolve(build, 'outpostctl');

const { machine } = await import('./load.mjs');
const { dispatching, fanOut, intake, median, requestsPerDispatch, startOutpost, waitingRunners } = await import('./measures.mjs');
const { pages } = await import('./pages.mjs');
const { AT_A_TIME, besideReports, reports } = await import('./reports.mjs');

const started = Date.now();
const say = (text) => { if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`); };
const paint = (code, text) => (process.stdout.isTTY && !process.env.NO_COLOR ? `\x1b[${code}m${text}\x1b[0m` : text);

const n = (value, digits = 0) => value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

function crowdRows({ crowds }) {
  return crowds.flatMap(({ path: page, p50, p99 }) => [
    { what: `${page} for eight readers (p50)`, value: p50, most: 10, unit: ' ms', digits: 1 },
    { what: `${page} for eight readers (p99)`, value: p99, beside: p50, besideWhat: 'p50', ratio: p99 / p50, most: 3, unit: ' ms', digits: 1 },
  ]);
}

function pageRows(read) {
  const slowest = read.answers.toSorted((a, b) => b.p99 - a.p99)[0];
  const rate = (who) => median(read.intake[who].map((run) => run.rate));
  const database = [
    { what: `a database of ${n(read.results)} results`, value: read.bytes / 1e6, beside: read.bytes / read.results, besideWhat: 'each', unit: ' MB', digits: 2 },
    { what: 'the start on it, until /readyz', value: read.ready_ms, most: 100, unit: ' ms' },
  ];
  return [
    ...database,
    { what: `dropping the oldest ${n(read.drop.n)} results`, value: read.drop.wall_ms, unit: ' ms' },
    { what: 'its longest hold of the writer', value: read.drop.longest_ms, most: 20, unit: ' ms', digits: 1 },
    { what: `the slowest page or answer on ${n(read.results)} results (p99)`, value: slowest.p99, beside: read.answers.find((one) => one.path === '/healthz').p99, besideWhat: '/healthz', most: 10, unit: ' ms', digits: 1 },
    ...crowdRows(read),
    ...(read.intake.quiet.length === 0 ? [] : [{ what: 'webhooks a second while pages are read', value: rate('read'), beside: rate('quiet'), besideWhat: 'no page is read', ratio: read.ratio, least: 0.9, unit: '/s' }]),
  ];
}

const judged = (list) => list.map((row) => ({ ...row, is_reached: (row.ratio ?? row.value) >= (row.least ?? -Infinity) && (row.ratio ?? row.value) <= (row.most ?? Infinity) }));

// What a result costs the writer (results.c): reports of 2,000 tests, and the longest transaction of a report of 20,000.
function results(folder, build) {
  const measure = (...size) => Object.fromEntries(execFileSync(path.resolve(build, 'bench', 'results'), [folder, ...size], { encoding: 'utf8' })
    .trim().split('\n').map((line) => JSON.parse(line)).map((one) => [one.kind, one]));
  return { usual: measure('200', '2000'), large: measure('10', '20000') };
}

function resultRows({ usual, large }) {
  const cost = (kind) => usual[kind].put_us + usual[kind].cells_us + usual[kind].commit_us;
  return [
    { what: 'bytes a result takes, green, known list', value: usual.green.bytes, most: 3, unit: ' B', digits: 2 },
    { what: 'bytes a result takes, one in 1,000 red', value: usual.mixed.bytes, most: 8, unit: ' B', digits: 2 },
    { what: 'CPU of the writer for a green result', value: cost('green'), unit: ' µs', digits: 2 },
    { what: 'CPU of the writer, one in 1,000 red', value: cost('mixed'), unit: ' µs', digits: 2 },
    { what: 'a report of 20,000 tests holds the writer, green', value: large.green.longest_ms, most: 10, unit: ' ms', digits: 1 },
    { what: 'the same, half of it red', value: large['half-red'].longest_ms, most: 40, unit: ' ms', digits: 1 },
    { what: 'the same, green, all tests new', value: large['new-lists'].longest_ms, unit: ' ms', digits: 1 },
  ];
}

function dispatchRows({ one, further_us }) {
  return [
    { what: 'CPU of a pull request, socket to wire', value: one.cpu_us / 1000, most: 0.8, unit: ' ms', digits: 2 },
    { what: 'the same for each further repository', value: further_us / 1000, most: 0.15, unit: ' ms', digits: 2 },
    { what: 'pull requests a second on the wire', value: one.per_second, least: 1000, unit: '/s' },
    { what: 'webhook to wire at 20 a second (p99)', value: one.p99_ms, most: 15, unit: ' ms', digits: 1 },
  ];
}

// From the socket to the verdicts, beside json.loads of the same body (reports.mjs).
function reportRows(measured) {
  return Object.entries(measured).flatMap(([name, one]) => [
    { what: `CPU of a ${name} tests`, value: one.cpu_ms, beside: one.loads_ms, besideWhat: 'json.loads', ratio: one.ratio, ...(!name.includes('red') && { most: 3 }), unit: ' ms', digits: 1 },
    { what: 'results a second, with verdicts', value: one.results_per_second, unit: '/s' },
  ]);
}

const besideReportsRow = ({ quiet, reports: beside, ratio }) => ({
  what: 'webhooks beside reports of 20,000 tests (p99)', value: median(beside.map(({ p99 }) => p99)), beside: median(quiet.map(({ p99 }) => p99)), besideWhat: 'quiet', ratio, most: 1.5, unit: ' ms', digits: 1,
});

// The results a second of this outpostd and of another one, in turns.
async function besideBefore({ dir, program, turns, say }) {
  const rates = { before: [], now: [] };
  const rate = async (one) => (await reports({ dir, say, names: [AT_A_TIME], start: (...args) => startOutpost(...args, one) }))[AT_A_TIME].results_per_second;
  for (let i = 0; i < turns; i++) {
    rates.before.push(await rate(program));
    rates.now.push(await rate());
  }
  return rates;
}

const beforeRows = ({ before, now }) => [{
  what: 'results a second, with verdicts', value: median(now), beside: median(before), besideWhat: 'before', ratio: median(now.map((rate, i) => rate / before[i])), unit: '/s',
}];

function rows({ intakeRuns, dispatch, dispatches, fan, waiting, read, results: ofResults, reports: ofReports, besideReports: ofLoad }) {
  const of = (server, key) => median(intakeRuns[server].map((run) => run[key]));
  const pairs = (key) => median(intakeRuns.outpost.map((run, i) => run[key] / intakeRuns.nginx[i][key]));
  return [
    { what: 'webhooks a second, verified and on disk', value: of('outpost', 'rate'), beside: of('nginx', 'rate'), ratio: pairs('rate'), unit: '/s' },
    { what: 'the slowest of a hundred (p99)', value: of('outpost', 'p99'), beside: of('nginx', 'p99'), ratio: pairs('p99'), most: 1.5, aim: 1.1, unit: ' ms', digits: 1 },
    { what: 'CPU of a webhook', value: of('outpost', 'cpu_us'), beside: of('outpost', 'floor_us'), besideWhat: 'HMAC and zstd', ratio: median(intakeRuns.outpost.map((run) => run.cpu_us / run.floor_us)), most: 2.2, aim: 1.8, unit: ' µs', digits: 1 },
    { what: 'bytes written for a webhook', value: of('outpost', 'written') / 1000, most: 10, unit: ' KB', digits: 1 },
    { what: 'API requests per dispatch, warm token', value: dispatch.requests / dispatch.dispatches, most: 1, unit: '', digits: 2 },
    ...dispatchRows(dispatches),
    { what: 'one webhook to 100 repositories', value: fan.warm_ms, beside: fan.sequential_ms, besideWhat: 'one by one', ratio: fan.warm_ms / fan.sequential_ms, most: 0.2, unit: ' ms' },
    { what: 'memory, idle', value: median(intakeRuns.memory_idle), most: 6, unit: ' MiB', digits: 1 },
    { what: 'memory, full load', value: Math.max(...intakeRuns.memory_load), most: 16, unit: ' MiB', digits: 1 },
    { what: `memory, ${n(waiting.count)} waiting runners`, value: waiting.mib, most: 32, unit: ' MiB', digits: 1 },
    { what: 'webhook to one of them (p99)', value: waiting.p99_ms, most: 50, unit: ' ms', digits: 1 },
    ...resultRows(ofResults),
    ...reportRows(ofReports),
    besideReportsRow(ofLoad),
    ...pageRows(read),
  ];
}

// Each answer, the slowest first.
function answersTable({ answers }) {
  const width = Math.max(...answers.map((one) => one.path.length));
  return answers.toSorted((a, b) => b.p99 - a.p99).map((one) => `${one.path.slice(0, 90).padEnd(Math.min(width, 90))}  ${n(one.p50, 2).padStart(7)} ms  p99 ${n(one.p99, 2).padStart(7)} ms  ${n(one.bytes / 1024, 1).padStart(8)} KiB`).join('\n');
}

// Notes below the table.
function notes({ read, intakeRuns, fan }, seconds) {
  const beside = (key) => median(read.intake.read.map((run) => run[key]));
  console.log(`\non a file of ${n(read.bytes / 2 ** 20)} MiB it was ready after ${n(read.ready_ms)} ms; each answer asked ${n(Math.min(...read.answers.map((one) => one.requests)))} times and more`);
  if (read.intake.read.length) console.log(`five readers, a tenth of a second between an answer and their next question, beside the webhooks: ${n(beside('reads') / seconds)}/s, median ${n(beside('reads_p50'), 1)} ms, p99 ${n(beside('reads_p99'), 1)} ms`);
  if (intakeRuns) {
    console.log(`nginx passes requests on as it does by default, a connection each; over kept ones it does ${n(intakeRuns.nginx_kept.rate)}/s`);
    console.log(`with cold tokens the 100 repositories take ${n(fan.cold_ms)} ms (GitHub answers after ${fan.delay_ms} ms, three requests each)`);
    console.log('memory is RssAnon; each waiting runner holds a long poll with a token of its own');
  }
}

function table(list) {
  const lines = [['', 'outpost', 'beside', 'ratio', 'expected', '']];
  for (const row of list) {
    const expected = row.least === undefined && row.most === undefined ? '' : `${row.least ? `≥ ${row.least}` : `≤ ${row.most}`}${row.aim ? `, aim ${row.aim}` : ''}`;
    lines.push([row.what, n(row.value, row.digits) + row.unit, row.beside === undefined ? '' : `${row.besideWhat ?? 'nginx'} ${n(row.beside, row.digits)}${row.unit}`,
      row.ratio === undefined ? '' : n(row.ratio, 2), expected, expected && (row.is_reached ? '✓' : '✗')]);
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
  const seconds = Number(values.seconds ?? 5);
  const measured = {};
  if (values.before) measured.before = await besideBefore({ dir, program: path.resolve(values.before), turns: Number(values.turns ?? 5), say });
  else if (!values.pages && !values.crowds) {
    measured.intakeRuns = await intake({ dir, build: build ?? 'build/release', pairs: Number(values.pairs ?? 3), seconds, say });
    measured.dispatch = await requestsPerDispatch({ dir, changes: 20, say });
    measured.dispatches = await dispatching({ dir, build: build ?? 'build/release', say });
    measured.fan = await fanOut({ dir, targets: 100, delay: 20, rounds: 3, say });
    say('results in the writer');
    measured.results = results(dir, build ?? 'build/release');
    measured.reports = await reports({ dir, say });
    measured.besideReports = await besideReports({ dir, pairs: 5, seconds, say });
    measured.waiting = await waitingRunners({ dir, count: 1000, jobs: 300, say });
  }
  if (!values.before) measured.read = await pages({ dir, seconds, pairs: Number(values.pairs ?? 3), turns: Number(values.turns ?? 3), results: Number(values.results ?? 200_000_000), database: values.database, onlyCrowds: values.crowds, say });
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  const { intakeRuns, fan, read } = measured;
  const list = judged(values.before ? beforeRows(measured.before) : values.crowds ? crowdRows(read) : values.pages ? pageRows(read) : rows(measured));
  if (values.json) {
    console.log(JSON.stringify({ machine: host, seconds: (Date.now() - started) / 1000, rows: list, intake: intakeRuns, dispatch: measured.dispatch, dispatching: measured.dispatches, fan_out: fan, waiting: measured.waiting, beside_reports: measured.besideReports, results: measured.results, reports: measured.reports, pages: read, before: measured.before }, null, 2));
  } else {
    console.log(`${host.cpu}, ${host.cores} cores, fsync ${n(host.fsync_ms, 2)} ms, nginx ${host.nginx}; the load runs on the same cores`);
    if (intakeRuns) console.log(`${n(intakeRuns.body_bytes)} bytes a webhook, 64 connections, ${seconds} s each, median of ${intakeRuns.outpost.length} alternating pairs`);
    console.log(`\n${table(list)}\n`);
    if (read?.answers) console.log(answersTable(read));
    for (const { path: page, runs } of read?.crowds ?? []) console.log(`each turn of ${page}: ${runs.map((run) => `${n(run.rate)}/s, p99 ${n(run.p99 / run.p50, 2)} × ${n(run.p50, 2)} ms`).join('; ')}`);
    if (read?.answers) notes(measured, seconds);
  }
} finally {
  await fs.rm(dir, { recursive: true, force: true });
}
