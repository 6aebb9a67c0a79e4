// The effect of attacks from one address on other addresses: the share of signed webhooks, reports and heartbeats that are
// answered within a second of the quiet p99 during the attack.
//
//   node tests/bench/attacks.mjs [BUILD_FOLDER] [--seconds N] [--attack NAME]… [--json]
//
// Each attack has its own daemon, which is first measured without the attack. The table goes to standard output. An attack takes a
// minute by default, and all take some ten minutes.
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { sign } from '@octokit/webhooks-methods';
import { fakeSha, pullRequest } from '../github/payloads.mjs';

const { values, positionals: [build] } = parseArgs({ allowPositionals: true, options: { json: { type: 'boolean' }, seconds: { type: 'string' }, attack: { type: 'string', multiple: true } } });
if (build) process.env.OUTPOSTD ??= path.resolve(build, 'outpostd');
if (build) process.env.OUTPOSTCTL ??= path.resolve(build, 'outpostctl');

const { Outpost } = await import('../integration/lib/outpost.mjs');
const { Puller } = await import('../integration/lib/puller.mjs');
const { ATTACKS } = await import('./attacker.mjs');
const { largestPullRequest, machine } = await import('./load.mjs');
const { Stub } = await import('./stub.mjs');

const SECONDS = Number(values.seconds ?? 60);
const QUIET_SECONDS = Math.min(15, SECONDS);
const SHARE_REQUIRED = 0.99;
const LATE_MS = 1000; // an answer later than this after the quiet p99 counts as missing
const PATIENCE_MS = 10_000;
const VENDORS = 8; // each vendor may report a hundred times a minute
const PULL = 5;
const TESTS = 1500; // the number of tests on the large page

const started = Date.now();
const say = (text) => { if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`); };
const paint = (code, text) => (process.stdout.isTTY && !process.env.NO_COLOR ? `\x1b[${code}m${text}\x1b[0m` : text);
const quantile = (list, q) => list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))];

// The legitimate clients. Each has its own address and opens a new connection for each request, as GitHub does, because an attack
// on connections hits these most. `ask` returns the parts of a request. The visitor requests the attacked resource: a page, a
// followed log (expected = 'followers') or an event stream ('streams').
async function callers(outpost, stub, expected) {
  const body = JSON.stringify(largestPullRequest());
  const signature = await sign(stub.secret, body);
  const dispatches = await outpost.waitForApi(`pulls/${PULL}`, ({ accelerators }) => accelerators.length === VENDORS + 1 && accelerators, { timeout: 20_000 })
    .then(({ accelerators }) => new Map(accelerators.map((one) => [one.name, one.dispatches[0].id])));
  const vendors = [];
  for (let i = 0; i < VENDORS; i++) {
    const { code, stdout, stderr } = await outpost.ctl('token', 'issue', `vendor-${i}`);
    if (code !== 0) throw new Error(stderr);
    vendors.push({ token: stdout.trim(), target: `/api/v1/dispatches/${dispatches.get(`vendor-${i}`)}/jobs` });
  }
  const puller = await Puller.add(outpost, 'machine', 'farm', { labels: ['any'] });
  const lease = (await Puller.ready(() => puller.claim({ wait: 10 }))).json;
  const report = (i, tests = []) => {
    const { token, target } = vendors[i % VENDORS];
    return { method: 'POST', target, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ status: 'completed', conclusion: 'success', name: 'ci', job_name: `job ${i}`, run_id: String(1000 + i), run_attempt: 1, tests }) };
  };
  const log = `/api/v1/jobs/${lease.job_id}/log`;
  const endless = { followers: `${log}?follow=1`, streams: '/api/v1/events?watch=dashboard' }[expected];
  const visit = { method: 'GET', target: endless ?? `/pulls/${PULL}`, is_endless: endless !== undefined };
  return {
    log, report,
    all: [
      { kind: 'webhook', address: '127.0.0.2', every: 100, status: 202, ask: () => ({ method: 'POST', target: '/github/webhook', body,
        headers: { 'content-type': 'application/json', 'x-github-event': 'pull_request', 'x-github-delivery': randomUUID(), 'x-hub-signature-256': signature } }) },
      { kind: 'report', address: '127.0.0.3', every: 125, status: 200, ask: report },
      { kind: 'heartbeat', address: '127.0.0.4', every: 100, status: 200, ask: () => ({ method: 'POST', target: `/api/v1/runner/leases/${lease.lease_id}/renew`, body: '{"wait":0}',
        headers: { authorization: `Bearer ${puller.token}`, 'content-type': 'application/json' } }) },
      { kind: 'visitor', address: '127.0.0.5', every: 500, status: 200, ask: () => visit },
    ],
  };
}

// {ms, status}, or {ms, error} without an answer. For an endless answer the head is enough.
function ask(port, localAddress, { method, target, headers, body, is_endless }) {
  const begun = performance.now();
  return new Promise((resolve) => {
    const end = (answer) => { clearTimeout(timer); resolve({ ms: performance.now() - begun, ...answer }); };
    const request = http.request({ port, host: '127.0.0.1', localAddress, method, path: target, agent: false, headers: { ...headers, ...(body && { 'content-length': Buffer.byteLength(body) }) } }, (response) => {
      response.on('error', (error) => end({ error: error.code })).on('end', () => end({ status: response.statusCode })).resume();
      if (is_endless) {
        end({ status: response.statusCode });
        request.destroy();
      }
    });
    const timer = setTimeout(() => { request.destroy(); end({ error: 'no answer' }); }, PATIENCE_MS);
    request.on('error', (error) => end({ error: error.code })).end(body);
  });
}

let asked = 0; // each report is for a new job

// All clients send requests at a steady pace, even if the answers are slow. Returns {kind: [{ms, status, error}]}.
async function measure(outpost, all, seconds) {
  const until = performance.now() + seconds * 1000;
  return Object.fromEntries(await Promise.all(all.map(async ({ kind, address, every, ask: make }) => {
    const pending = [];
    for (let at = performance.now(); at < until; at += every) {
      await sleep(Math.max(0, at - performance.now()));
      pending.push(ask(outpost.port, address, make(asked++)));
    }
    return [kind, await Promise.all(pending)];
  })));
}

async function underAttack(dir, name) {
  const stub = await Stub.start();
  const outpost = await Outpost.start({
    rig: stub, logFile: path.join(dir, `${name}.log`), config: { log: { level: 'info' }, comment: { enabled: false }, reconcile: { interval: '1h' } },
    accelerators: [
      ...Array.from({ length: VENDORS }, (_, i) => ({ name: `vendor-${i}`, title: `Vendor ${i}`, level: 'L2', trust: 'anyone', runners: [{ name: 'ci', github: { repository: `vendor-${i}/ci` } }] })),
      { name: 'farm', title: 'Farm', level: 'L2', trust: 'anyone', runners: [{ name: 'farm', pull: { labels: ['any'] } }] },
    ],
  });
  let attacker;
  try {
    say(`${name}: a change with ${TESTS} tests`);
    const opened = JSON.stringify(pullRequest('opened', { number: PULL, headSha: fakeSha('attacks') }));
    await must(outpost, 202, { method: 'POST', target: '/github/webhook', body: opened,
      headers: { 'content-type': 'application/json', 'x-github-event': 'pull_request', 'x-github-delivery': randomUUID(), 'x-hub-signature-256': await sign(stub.secret, opened) } });
    const { log, report, all } = await callers(outpost, stub, name);
    const tests = Array.from({ length: TESTS }, (_, i) => ({ suite: 'model', name: `test_${i}`, status: 'FAIL', message: `${i} `.padEnd(1000, 'x') }));
    await must(outpost, 200, report(0, tests));
    const target = { log, page: `/api/v1/pulls/${PULL}` };
    const page_bytes = (await outpost.get(target.page)).text.length;
    await measure(outpost, all, 1); // warm-up
    say(`${name}: ${QUIET_SECONDS} s of quiet`);
    const quiet = await measure(outpost, all, QUIET_SECONDS);
    const memory_before = await memory(outpost.pid);
    attacker = fork(path.join(import.meta.dirname, 'attacker.mjs'), [name, JSON.stringify({ port: outpost.port, seconds: SECONDS + 30, ...target })]);
    await once(attacker, 'message', { signal: AbortSignal.timeout(60_000) });
    say(`${name}: ${SECONDS} s of attack`);
    const attacked = await measure(outpost, all, SECONDS);
    return summary(name, all, quiet, attacked, { page_bytes, memory_before, memory_after: await memory(outpost.pid) });
  } finally {
    attacker?.kill('SIGKILL');
    await outpost.kill();
    await outpost.close();
    await stub.stop();
  }
}

async function must(outpost, status, request) {
  const answer = await ask(outpost.port, '127.0.0.2', request);
  if (answer.status !== status) throw new Error(`${request.target} is ${answer.status ?? answer.error}`);
}

async function memory(pid) {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(await fs.readFile(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}

// By kind, because a heartbeat is compared with the quiet heartbeats.
function summary(name, all, quiet, attacked, more) {
  const kinds = {};
  for (const { kind, status } of all) {
    const wrong = quiet[kind].find((answer) => answer.status !== status);
    if (wrong) throw new Error(`in quiet a ${kind} got ${wrong.status ?? wrong.error}`);
    const quiet_p99 = quantile(quiet[kind].map(({ ms }) => ms), 0.99);
    const good = attacked[kind].filter((answer) => answer.status === status && answer.ms <= quiet_p99 + LATE_MS);
    const failures = {};
    for (const answer of attacked[kind]) {
      if (good.includes(answer)) continue;
      const what = answer.status === status ? 'late' : String(answer.status ?? answer.error);
      failures[what] = (failures[what] ?? 0) + 1;
    }
    kinds[kind] = { requests: attacked[kind].length, good: good.length, share: good.length / attacked[kind].length, quiet_p99, p99: quantile(attacked[kind].map(({ ms }) => ms), 0.99), failures };
  }
  const { visitor, ...judged } = kinds;
  const sum = (key) => Object.values(judged).reduce((total, one) => total + one[key], 0);
  const worst = (key) => Math.max(...Object.values(judged).map((one) => one[key]));
  return { attack: name, requests: sum('requests'), share: sum('good') / sum('requests'), quiet_p99: worst('quiet_p99'), p99: worst('p99'), visitor: visitor.share, kinds, ...more };
}

// Three digits, never rounded up to 100 %.
const percent = (share) => `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;

function table(rows) {
  const lines = [['attack from one address', 'requests', 'quiet p99', 'p99 under attack', 'in time', 'expected', '', "a visitor"]];
  for (const row of rows)
    lines.push([ATTACKS[row.attack].title, String(row.requests), `${row.quiet_p99.toFixed(1)} ms`, `${row.p99.toFixed(1)} ms`, percent(row.share), `≥ ${SHARE_REQUIRED * 100} %`, row.share >= SHARE_REQUIRED ? '✓' : '✗', percent(row.visitor)]);
  const widths = lines[0].map((_, i) => Math.max(...lines.map((line) => line[i].length)));
  return lines.map((line, at) => {
    const text = line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ');
    return at === 0 ? paint('1', text) : text.replace(/[✓✗]/, (mark) => paint(mark === '✓' ? '32' : '31', mark));
  }).join('\n');
}

function missed({ attack, kinds }) {
  return Object.entries(kinds).filter(([, { failures }]) => Object.keys(failures).length > 0)
    .map(([kind, { requests, failures }]) => `${ATTACKS[attack].title}: of ${requests} ${kind} requests ${Object.entries(failures).map(([what, n]) => `${n} ${what}`).join(', ')}`);
}

const names = values.attack ?? Object.keys(ATTACKS);
for (const name of names) if (!ATTACKS[name]) throw new Error(`no attack is called ${name}: ${Object.keys(ATTACKS).join(', ')}`);
const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-attacks-'));
try {
  const host = machine(dir);
  const rows = [];
  for (const name of names) rows.push(await underAttack(dir, name));
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  if (values.json) {
    console.log(JSON.stringify({ machine: host, seconds: SECONDS, rows }, null, 2));
  } else {
    console.log(`${host.cpu}, ${host.cores} cores; ${SECONDS} s of each attack; who attacks and who measures share the cores`);
    console.log(`\n${table(rows)}\n`);
    console.log('in time: a signed webhook, a report or a heartbeat has its answer within a second of the quiet p99 of its kind');
    console.log('a visitor: the same for someone who asks for the page, log or stream that is attacked');
    for (const row of rows) for (const line of missed(row)) console.log(line);
  }
} finally {
  await fs.rm(dir, { recursive: true, force: true });
}
