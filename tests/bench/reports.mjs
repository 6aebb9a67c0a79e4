// Reports of many tests with a known list: the daemon's CPU from the socket to the verdicts, compared with Python's json.loads of the
// same body. The reports are about pushes, so that no comment is written.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fakeSha, push } from '../github/payloads.mjs';
import { until } from '../integration/lib/outpost.mjs';
import { sign } from '@octokit/webhooks-methods';
import { Load } from './load.mjs';
import { median, startOutpost } from './measures.mjs';
import { Stub } from './stub.mjs';

export const AT_A_TIME = 'callback of 2,000, eight at a time,';
const REPORT_PAUSE_MS = 650;
const KINDS = [
  { name: 'callback of 2,000', count: 2000, jobs: 60 },
  { name: AT_A_TIME, count: 2000, jobs: 88, senders: 8 },
  { name: 'callback of 20,000', count: 20_000, jobs: 12, isShort: true },
  { name: 'document of 2,000', count: 2000, jobs: 45, isDocument: true },
  { name: 'document of 20,000', count: 20_000, jobs: 12, isDocument: true },
  { name: 'document of 20,000, half red', count: 20_000, redOf: 2, jobs: 6, isDocument: true },
];

const VENDOR = { name: 'vendor-1', title: 'Vendor 1', level: 'L2', triggers: { push: { branches: ['main'] } }, runners: [{ name: 'ci', github: { repository: 'vendor-1/ci' } }] };
const MESSAGE = 'AssertionError: Tensor-likes are not close! Mismatched elements: 3 / 24 (12.5%) Greatest absolute difference: ';

// Like PyTorch's, in a few suites, with durations of milliseconds. A callback of 20,000 tests has room for short names only.
function tests(count, redOf, job, isShort) {
  return Array.from({ length: count }, (_, i) => {
    const isRed = redOf && i % redOf === 0;
    return {
      suite: ['test_ops', 'test_nn', 'test_torch', 'test_autograd'][i % 4], name: isShort ? `TestOps.test_case_${i}` : `TestCommonPRIVATEUSE1.test_noncontiguous_samples_case_${i}_privateuse1_float32`,
      status: isRed ? 'FAIL' : 'PASS', duration: ((i * 37 + job * 11) % 900) / 1000, ...(!isShort && { dtype: 'float32' }),
      ...(isRed && { message: `${MESSAGE}${i * 0.37} at index ${i}`, file: 'test/test_ops.py', line: 412 }),
    };
  });
}

// The CPU of all threads, in ms: exact, unlike /proc/PID/stat.
async function cpuOf(pid) {
  const threads = await fs.readdir(`/proc/${pid}/task`);
  const times = await Promise.all(threads.map((thread) => fs.readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8')));
  return times.reduce((sum, one) => sum + Number(one.split(' ')[0]), 0) / 1e6;
}

const PYTHON = `
import json, sys, time
body = open(sys.argv[1]).read()
def once():
    start = time.process_time(); json.loads(body); return time.process_time() - start
print(1000 * sorted(once() for i in range(15))[7])`;

// Opens a dispatch for each report of a kind. Returns {bodies, send}: send(i) sends the report bodies[i], i from 0 to `jobs`.
async function prepareReports({ outpost, stub, agent }, { name, count, redOf, jobs, isDocument, isShort }) {
  let changes = 0;
  const open = async () => {
    const body = JSON.stringify(push({ after: fakeSha(`report ${++changes}`) }));
    const { status, text } = await outpost.request('POST', '/github/webhook', { agent, body, headers: { 'content-type': 'application/json', 'x-github-event': 'push',
      'x-github-delivery': `00000000-0000-4000-8000-${String(changes).padStart(12, '0')}`, 'x-hub-signature-256': await sign(stub.secret, body) } });
    if (status !== 202) throw new Error(`a webhook got ${status} ${text}`);
  };
  const issued = await outpost.ctl('token', 'issue', 'vendor-1');
  if (issued.code !== 0) throw new Error(issued.stderr);
  const headers = { authorization: `Bearer ${issued.stdout.trim()}`, 'content-type': 'application/json' };
  const request = async (method, target, body) => {
    const answer = await outpost.request(method, target, { agent, body, headers });
    if (answer.status !== 200) throw new Error(`${method} ${target}: ${answer.status} ${answer.text}`);
    return answer.json;
  };
  for (let i = 0; i <= jobs; i++) await open();
  await until(() => stub.bodies.length > jobs, { what: 'the dispatches are sent' });
  const ids = stub.bodies.map((one) => one.client_payload.outpost.dispatch_id);
  const targets = [];
  const job = (i, more) => ({ status: 'completed', conclusion: redOf ? 'failure' : 'success', name: 'ci', job_name: name, run_id: changes * 100 + i, ...more });
  const bodies = ids.map((_, i) => Buffer.from(JSON.stringify(isDocument ? { schema: 1, tests: tests(count, redOf, i, isShort) } : job(i, { tests: tests(count, redOf, i, isShort) }))));
  if (isDocument) for (const [i, id] of ids.entries()) targets.push(`/api/v1/jobs/${(await request('POST', `/api/v1/dispatches/${id}/jobs`, JSON.stringify(job(i)))).job}/report`);
  else for (const id of ids) targets.push(`/api/v1/dispatches/${id}/jobs`);
  return { bodies, send: (i) => request(isDocument ? 'PUT' : 'POST', targets[i], bodies[i]) };
}

// Each kind has a daemon of its own, because a caller may send 100 reports a minute. start(): makes it.
async function measure({ dir, say, start = startOutpost }, kind) {
  const { name, count, jobs, senders = 1 } = kind;
  const stub = await Stub.start({ keepsBodies: true });
  const outpost = await start(dir, stub, [VENDOR]);
  const agent = new http.Agent({ keepAlive: true });
  try {
    const { bodies, send } = await prepareReports({ outpost, stub, agent }, kind);
    say(`reports: ${name}`);
    await send(0);
    await sleep(1500); // until the work of the planner and of the first report is done
    const before = await cpuOf(outpost.pid);
    const begun = performance.now();
    let next = 1;
    await Promise.all(Array.from({ length: senders }, async () => {
      for (let i; (i = next++) <= jobs;) await send(i);
    }));
    const ms = performance.now() - begun;
    const cpu = (await cpuOf(outpost.pid) - before) / jobs;
    const file = path.join(dir, 'report.json');
    await fs.writeFile(file, bodies[1]);
    const loads = Number(execFileSync('python3', ['-c', PYTHON, file], { encoding: 'utf8' }));
    return { bytes: bodies[1].length, cpu_ms: cpu, loads_ms: loads, ratio: cpu / loads, results_per_second: jobs * count / ms * 1000 };
  } finally {
    agent.destroy();
    await outpost.close();
    await stub.stop();
  }
}

// Webhooks over 64 connections, alone and beside reports of 20,000 tests, in alternating pairs. A vendor sends the reports as fast as one
// caller may (100 a minute).
export async function besideReports({ dir, pairs, seconds, say }) {
  const jobs = Math.ceil(pairs * (seconds * 1000 / REPORT_PAUSE_MS + 1)) + 1;
  const stub = await Stub.start({ keepsBodies: true });
  const load = await Load.prepare(dir, stub.secret);
  const outpost = await startOutpost(dir, stub, [VENDOR]);
  const agent = new http.Agent({ keepAlive: true });
  const out = { quiet: [], reports: [], sent: 0 };
  try {
    const { send } = await prepareReports({ outpost, stub, agent }, { name: 'beside webhooks', count: 20_000, redOf: 1000, jobs, isDocument: true });
    let next = 0;
    await send(next++); // brings the list of its tests
    for (let i = 1; i <= pairs; i++)
      for (const kind of i % 2 ? ['quiet', 'reports'] : ['reports', 'quiet']) {
        say(`webhooks and large reports, pair ${i} of ${pairs}: ${kind}`);
        let isOver = false;
        const run = load.run(`${outpost.url}/github/webhook`, { seconds }).finally(() => { isOver = true; });
        while (kind === 'reports' && !isOver && next <= jobs) {
          await Promise.all([send(next++), sleep(REPORT_PAUSE_MS)]);
          out.sent++;
        }
        out[kind].push(await run);
        if (out[kind].at(-1).refused + out[kind].at(-1).broken > 0) throw new Error('webhooks are refused beside large reports');
        await sleep(1500); // until the planner has done its work
      }
    return { ...out, ratio: median(out.reports.map((run, i) => run.p99 / out.quiet[i].p99)) };
  } finally {
    agent.destroy();
    await outpost.close();
    await stub.stop();
  }
}

// names: of the kinds to measure; none: all.
export async function reports({ names, ...options }) {
  const out = {};
  for (const kind of KINDS.filter(({ name }) => !names || names.includes(name))) out[kind.name] = await measure(options, kind);
  return out;
}
