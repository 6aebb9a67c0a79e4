// The work of pull runners in the kill and cut tests, and the conditions at its end.
import { createHmac, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import { rsaKey } from '../github/keys.mjs';
import { fakeSha, push } from '../github/payloads.mjs';
import { until } from '../integration/lib/outpost.mjs';

export const LEASE_MS = 3000;
const LINES = 30;
export const SECRET = 'kept between GitHub and the operator';

// Records its run, writes numbered lines for a while, and writes a report. It appends to $RUNS with one write, so that the line
// is complete or missing.
const STEP = `echo "$OUTPOST_DISPATCH_ID $OUTPOST_ATTEMPT" >> "$RUNS"
i=0
while [ $i -lt ${LINES} ]; do
  i=$((i + 1)); echo "line $i of $OUTPOST_DISPATCH_ID attempt $OUTPOST_ATTEMPT"; sleep 0.0$((i % 5))
done
cat > "$OUTPOST_RESULTS/junit.xml" <<END
<testsuite name="unit"><testcase name="one"/><testcase name="two"><failure message="of $OUTPOST_DISPATCH_ID attempt $OUTPOST_ATTEMPT"/></testcase></testsuite>
END
`;

export const ACCELERATOR = {
  name: 'farm-xpu', title: 'Farm XPU', vendor: 'A farm', level: 'L2', trust: 'merged',
  runners: [{ name: 'farm', pull: { labels: ['any'], max_parallel: 100 } }],
  triggers: { push: { branches: ['main'] } },
};

export async function deliver(outpost, head) {
  const body = JSON.stringify(push({ after: head, message: `commit ${head.slice(0, 7)}` }));
  const headers = {
    'content-type': 'application/json', 'x-github-event': 'push', 'x-github-delivery': randomUUID(),
    'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
  };
  await until(async () => [200, 202].includes((await outpost.request('POST', '/github/webhook', { headers, body })).status), { timeout: 60_000, interval: 50, what: 'the push is accepted' });
}

export const sql = (outpost, query) => outpost.database.query(query);

const group = (rows, key) => rows.reduce((map, row) => map.set(key(row), [...(map.get(key(row)) ?? []), row]), new Map());

async function judgeLog(outpost, job) {
  const { status, text } = await outpost.get(`/api/v1/jobs/${job.id}/log`);
  if (status !== 200) return `the log of job ${job.id} answers ${status}`;
  const numbers = [...text.matchAll(/^line (\d+) of (\S+) attempt (\d+)$/gm)];
  const expected = Array.from({ length: LINES }, (_, i) => `${i + 1} ${job.dispatch_id} ${job.run_attempt}`).join('\n');
  const got = numbers.map(([, n, dispatch, attempt]) => `${n} ${dispatch} ${attempt}`).join('\n');
  return got === expected ? null : `the log of job ${job.id} (attempt ${job.run_attempt}) has gaps or doubles:\n${text}`;
}

// Returns the problems as sentences.
export async function judge(outpost, heads, runsFile) {
  const problems = [];
  const dispatches = await sql(outpost, "SELECT d.id, d.state, c.head_sha FROM dispatch d JOIN change c ON c.id = d.change_id WHERE d.kind = 'pull'");
  const leases = group(await sql(outpost, 'SELECT dispatch_id, attempt, state FROM lease'), (row) => row.dispatch_id);
  const jobs = group(await sql(outpost, 'SELECT id, dispatch_id, run_attempt, status, conclusion, is_current FROM job'), (row) => row.dispatch_id);
  const runs = group((await fs.readFile(runsFile, 'utf8')).trim().split('\n').map((line) => line.split(' ')), ([id]) => id);

  if (dispatches.length !== heads.length) problems.push(`${dispatches.length} dispatches for ${heads.length} pushes`);
  for (const { id, state } of dispatches) {
    const ran = (runs.get(id) ?? []).map(([, attempt]) => Number(attempt));
    const held = leases.get(id) ?? [];
    const expired = held.filter((lease) => lease.state === 'expired').length;
    if (state !== 'done') problems.push(`${id} is ${state}: ${JSON.stringify(held)}`);
    if (new Set(ran).size !== ran.length) problems.push(`${id}: one attempt ran twice: ${ran}`);
    if (ran.length > 1 + expired) problems.push(`${id} ran ${ran.length} times, ${expired} of its leases expired`);
    const current = (jobs.get(id) ?? []).filter((job) => job.is_current);
    if (current.length !== 1) { problems.push(`${id} shows ${current.length} jobs`); continue; }
    const [job] = current;
    const rows = JSON.parse((await outpost.get(`/api/v1/jobs/${job.id}`)).text).tests.map(({ suite, name, status }) => `${suite}/${name} ${status}`).join(', ');
    if (job.status !== 'completed' || rows !== 'unit/one PASS, unit/two FAIL') problems.push(`${id}: job ${job.id} is ${job.status} ${job.conclusion} with ${rows || 'no results'}`);
    const wrong = await judgeLog(outpost, job);
    if (wrong) problems.push(wrong);
  }
  return { problems, handovers: [...leases.values()].flat().filter(({ state }) => state === 'expired').length };
}

// Options for Outpost.start(). It needs no GitHub, because the test sends signed pushes and Outpost writes nothing back.
export function serverOptions() {
  return { accelerators: [ACCELERATOR], secret: SECRET, logFile: '/dev/null', privateKey: rsaKey(), config: { comment: { enabled: false }, pull: { lease: `${LEASE_MS}ms` }, log: { level: 'warn' } } };
}

// For Machine.make(): the steps, and the file in which each run is recorded.
export const machineConfig = (runsFile) => ({
  environment: { RUNS: runsFile }, steps: [{ name: 'test', run: STEP, timeout: '1m' }], report: { files: ['results/*.xml'], format: 'junit' }, keep: 0,
});

export const headsOf = (seed, n) => Array.from({ length: n }, (_, i) => fakeSha(`head ${seed} ${i}`));

export const jobsLeft = async (outpost) => (await sql(outpost, "SELECT COUNT(*) AS n FROM dispatch WHERE kind = 'pull' AND state <> 'done'"))[0].n;

export const jobsDone = (outpost) => until(async () => (await jobsLeft(outpost)) === 0, { timeout: 600_000, interval: 500, what: 'every job is done' });
