// Packed results under kills. A database of version 7 is upgraded, vendors report jobs with known, similar and new lists of tests,
// retry and repeat their reports, and retention drops old changes with their lists. The story is played twice, undisturbed and
// with a daemon that is killed repeatedly: the API answers alike, and the database has no part of a report and no list too many.
// Then the daemon is killed while it writes reports of 20,000 tests, half of them red, which takes it several transactions: each is
// there in full or not at all, whether the vendor repeats it or not.
//
//   node tests/kill/packed.mjs [--kills N] [--changes N] [--large N] [--seed N]
//
// SEED (or --seed) repeats a run as far as timing allows. KEEP=1 keeps the daemon's folder.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fakeSha } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { workflowOf } from '../github/vendors.mjs';
import { Clock } from '../history/clock.mjs';
import { Outpost, until } from '../integration/lib/outpost.mjs';
import { Dice } from './story.mjs';

const SQL = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../src/db');
const MINUTE = 60_000;
const DAY = 86_400_000;
const START = Date.parse('2027-02-20T12:00:00Z');
const ACCELERATORS = ['chip-a', 'chip-b', 'chip-c'];
const JOBS = ['shard 1', 'shard 2'];
const TESTS = 150;
const OLD_TESTS = ['stays', 'skipped', 'measured', 'broken'];

/* ---- the story ---- */

const uuid = (dice) => `${Array.from({ length: 8 }, () => dice.below(16).toString(16)).join('')}-0000-4000-8000-${Array.from({ length: 12 }, () => dice.below(16).toString(16)).join('')}`;

// Version 7 knows the tests in another order than a job runs them: their ids do not follow each other, so a similar list is worth
// its difference.
const caseNames = (accelerator, job) => Array.from({ length: TESTS }, (_, i) => `${accelerator} ${job} case ${i}`);
function usualNames(accelerator, job) {
  const dice = new Dice(accelerator.charCodeAt(accelerator.length - 1) * 1000 + job.charCodeAt(job.length - 1));
  return caseNames(accelerator, job).map((name) => [dice.number(), name]).sort(([a], [b]) => a - b).map(([, name]) => name);
}

// The tests of a job: those of the last time, a few others, another order, or none that anybody knows.
function namesOf(dice, accelerator, job, what) {
  const names = usualNames(accelerator, job);
  const n = dice.number();
  if (n < 0.35) for (let i = dice.between(1, 3); i > 0; i--) names[dice.below(TESTS)] = `${what} changes ${i}`;
  else if (n < 0.45) names.splice(dice.below(TESTS), dice.between(1, 5));
  else if (n < 0.55) names.reverse();
  else if (n < 0.75) return names.map((_, i) => `${what} case ${i}`);
  return names;
}

function testsOf(dice, accelerator, job, what) {
  const isGreen = dice.chance(0.5);
  const tests = namesOf(dice, accelerator, job, what).map((name, i) => {
    const n = dice.number();
    const status = n < 0.9 ? 'PASS' : n < 0.95 || isGreen ? 'SKIP' : 'FAIL';
    return { suite: 'unit', name, status, duration: dice.below(5000) / 1000, ...(status === 'FAIL' && { message: `expected ${i}, got ${dice.below(9)}` }) };
  });
  // tests that the version before had, and which it skipped or only measured
  for (const name of dice.chance(0.5) ? OLD_TESTS : []) tests.push({ suite: 'old', name, status: 'PASS', duration: 0.5 });
  return tests;
}

// kind   "dropped": retention drops it after its reports; "upgraded": version 7 has a job of it; "later": its reports come while
//        others are dropped
function writeChanges({ seed, changes: n }) {
  const dice = new Dice(seed);
  return Array.from({ length: n }, (_, id) => {
    const kind = ['dropped', 'upgraded', 'later'][id % 3];
    const sha = fakeSha(`packed ${seed} change ${id}`);
    const dispatches = ACCELERATORS.map((accelerator) => {
      const reports = JOBS.flatMap((job) => {
        const list = [];
        const attempts = dice.chance(0.3) ? 2 : 1;
        for (let attempt = 1; attempt <= attempts; attempt++) {
          const tests = testsOf(dice, accelerator, job, `change ${id} attempt ${attempt}`);
          const conclusion = tests.some(({ status }) => status === 'FAIL') ? 'failure' : 'success';
          const step = { workflow: 'ci', job, run_id: `${id}`, run_attempt: attempt, tests, conclusion, started_at: '2027-02-20T11:00:00Z' };
          if (dice.chance(0.3)) list.push({ ...step, status: 'in_progress' });
          list.push({ ...step, status: 'completed', document: dice.chance(0.2) ? testsOf(dice, accelerator, job, `document ${id} ${attempt}`) : undefined });
          if (dice.chance(0.3)) list.push(list.at(-1));
        }
        return list;
      });
      return { id: uuid(dice), accelerator, reports };
    });
    return { id: id + 1, kind, sha, dispatches };
  });
}

/* ---- a database of version 7 ---- */

const text = (value) => `'${String(value).replaceAll("'", "''")}'`;

// Version 7 stored a row for each result and each cell. A change that retention drops has one old job, too.
function* oldRows({ id, kind, sha, dispatches }) {
  const active = kind === 'dropped' ? START : START + 100 * DAY;
  yield `INSERT INTO change (id, kind, repository, repository_key, head_sha, ref, state, created_ms, active_ms) VALUES (${id}, 'push', 'pytorch/pytorch', 'pytorch/pytorch', ${text(sha)}, 'refs/heads/side', 'open', ${START}, ${active})`;
  for (const { id: dispatch, accelerator } of dispatches)
    yield `INSERT INTO dispatch (id, accelerator, runner, change_id, kind, target, target_key, round, round_ms, is_current, state, is_held_for_good, number, delivery_guid, event_type, sent_action, original_action, acknowledge_ms, start_ms, finish_ms, created_ms, sent_ms)
 VALUES (${text(dispatch)}, ${text(accelerator)}, 'ci', ${id}, 'github', 'lab/${accelerator}', 'lab/${accelerator}', 1, ${START}, 1, 'acknowledged', 0, 0, ${text(dispatch)}, 'push', 'push', 'push', 600000, 7200000, 21600000, ${START}, ${START})`;
  if (kind === 'later') return;
  const job = 100_000 + id;
  yield `INSERT INTO job (id, change_id, dispatch_id, accelerator, runner, workflow, name, run_id, run_attempt, status, conclusion, verdict, is_current, is_late, is_push, digest, n_tests, n_red, completed_ms, reported_ms)
 VALUES (${job}, ${id}, ${text(dispatches[0].id)}, 'chip-a', 'ci', 'ci', 'before', '1', 1, 'completed', 'failure', 'FAIL', 1, 0, 1, x'01', ${OLD_TESTS.length}, 1, ${START}, ${START})`;
  for (const [i, status] of ['PASS', 'SKIP', 'DONE', 'FAIL'].entries()) {
    yield `INSERT INTO result (job_id, ordinal, test_id, status, duration_ms, message) VALUES (${job}, ${i}, ${i + 1}, '${status}', ${i}, ${status === 'FAIL' ? "'it differs'" : 'NULL'})`;
    yield `INSERT INTO verdict (change_id, accelerator, test_id, status, attribution, message, job_id, is_late) VALUES (${id}, 'chip-a', ${i + 1}, '${status}', ${status === 'FAIL' ? "'UNCLASSIFIED', 'it differs'" : 'NULL, NULL'}, ${job}, 0)`;
  }
}

function writeOldDatabase(file, changes) {
  rmSync(file, { force: true });
  const old = changes.filter(({ kind }) => kind !== 'later').length;
  const input = [
    'PRAGMA page_size = 16384', 'PRAGMA application_id = 0x4f757470', 'BEGIN',
    ...[1, 2, 3, 4, 5, 6, 7].map((n) => readFileSync(path.join(SQL, `schema_${n}.sql`), 'utf8')), 'PRAGMA user_version = 7',
    ...OLD_TESTS.map((name, i) => `INSERT INTO test (id, suite, name, dtype) VALUES (${i + 1}, 'old', '${name}', '')`),
    ...ACCELERATORS.flatMap((accelerator) => JOBS.flatMap((job) => caseNames(accelerator, job))).map((name) => `INSERT INTO test (suite, name, dtype) VALUES ('unit', '${name}', '')`),
    ...changes.flatMap((change) => [...oldRows(change)]),
    `INSERT OR REPLACE INTO counter (name, n) VALUES ('job', ${old}), ('result', ${old * OLD_TESTS.length}), ('dispatch.acknowledged', ${changes.length * ACCELERATORS.length})`,
    'COMMIT',
  ].map((one) => one.trim().replace(/;?$/, ';\n')).join('');
  execFileSync('sqlite3', ['-bail', file], { input });
}

/* ---- the stage ---- */

class Packed {
  problems = [];
  tokens = {};
  n_reports = 0;
  #isBack;

  static async open(changes) {
    const self = new Packed();
    self.changes = changes;
    self.rig = await startRig();
    self.outpost = await Outpost.prepare({
      rig: self.rig, wait: false, config: { retention: { results: '30d' }, comment: { enabled: false } },
      accelerators: ACCELERATORS.map((name) => ({ name, title: name, level: 'L2', triggers: { pull_request: false, push: { branches: ['main'] } }, runners: [{ name: 'ci', github: { repository: `lab/${name}` } }] })),
    });
    self.file = path.join(self.outpost.stateDir, 'outpost.db');
    writeOldDatabase(self.file, changes);
    self.clock = new Clock(self.outpost.dir, START);
    self.outpost.options.env = self.clock.environment;
    self.outpost.on('exit', ({ code, signal }) => {
      if (signal !== 'SIGKILL' && !self.isClosing) self.problems.push(`the daemon died by itself (${signal ?? code}):\n${self.outpost.tail()}`);
    });
    return self;
  }

  ready() {
    return until(async () => (await this.outpost.get('/readyz')).status === 200, { interval: 5, what: '/readyz is 200' });
  }

  async start() {
    await this.outpost.spawn();
    await this.ready();
    for (const name of ACCELERATORS) this.tokens[name] = (await this.outpost.ctl('token', 'issue', name)).stdout.trim();
  }

  // Waits until the daemon is back. All waiting vendors share one poll.
  #back() {
    return this.#isBack ??= this.ready().catch(() => {}).finally(() => { this.#isBack = undefined; });
  }

  sendOnce(method, target, accelerator, body) {
    return this.outpost.request(method, target, { headers: { authorization: `Bearer ${this.tokens[accelerator]}` }, body: JSON.stringify(body) });
  }

  // Sends until there is an answer.
  async send(method, target, accelerator, body) {
    for (;;) {
      const answer = await this.sendOnce(method, target, accelerator, body).catch(() => undefined);
      if (answer?.status === 200) return answer.json;
      if (answer?.status === 429) this.clock.advance(MINUTE);
      else if (answer && answer.status !== 503) {
        this.problems.push(`${method} ${target} got ${answer.status}: ${answer.text}`);
        return undefined;
      }
      await this.#back();
    }
  }

  // The reports of one accelerator, one after the other; the accelerators report at the same time.
  async report(kinds) {
    await Promise.all(ACCELERATORS.map(async (accelerator) => {
      for (const { kind, dispatches } of this.changes) {
        if (!kinds.includes(kind)) continue;
        const { id, reports } = dispatches.find((one) => one.accelerator === accelerator);
        for (const { status, document, ...step } of reports) {
          const answer = await this.send('POST', `/api/v1/dispatches/${id}/jobs`, accelerator, { ...workflowOf(step, status, new Date(START)), completed_at: null });
          if (document && answer) await this.send('PUT', `/api/v1/jobs/${answer.job}/report`, accelerator, { schema: 1, tests: document });
          this.n_reports++;
        }
      }
    }));
  }

  // Retention begins ten minutes after the start.
  wakeRetention() { this.clock.advance(11 * MINUTE); }

  async play() {
    await this.report(['dropped']);
    this.clock.advance(31 * DAY);
    this.isDropping = true;
    this.wakeRetention();
    await this.report(['upgraded', 'later']);
    await until(async () => {
      if (await this.count("SELECT COUNT(*) FROM change WHERE active_ms < ?", START + 30 * DAY) + await this.count(UNUSED_LISTS) === 0) return true;
      this.wakeRetention(); // a restart begins its wait again
      await this.outpost.get('/readyz'); // and a request makes the daemon look at the clock
      return false;
    }, { interval: 50, what: 'retention has dropped all old changes and lists' });
  }

  query(sql) { return this.outpost.database.query(sql); }

  async count(sql, value) {
    const [row] = await this.query(sql.replace('?', value));
    return Object.values(row)[0];
  }

  // What the API shows of the changes that stay, without numbers and times that differ between runs.
  async shown() {
    const all = {};
    for (const { kind, sha } of this.changes) {
      if (kind === 'dropped') continue;
      const change = await this.outpost.api(`commits/${sha}`);
      const jobs = change.accelerators.flatMap(({ jobs: list }) => list.map(({ id }) => id));
      all[sha] = plain(change);
      for (const id of jobs) {
        const { accelerator, name, workflow, run_attempt: attempt, ...job } = await this.outpost.api(`jobs/${id}`);
        all[`${sha} ${accelerator?.name ?? accelerator} ${workflow} ${name} ${attempt}`] = plain(job);
      }
    }
    return all;
  }

  async* judge() {
    yield* this.problems;
    for (const [sql, what] of CHECKS) {
      const rows = await this.query(sql);
      if (rows.length > 0) yield `${what}: ${JSON.stringify(rows.slice(0, 5))}`;
    }
  }

  async close() {
    this.isClosing = true;
    this.clock.close();
    await this.outpost.close();
    await this.rig.close();
  }
}

const UNUSED_LISTS = 'SELECT COUNT(*) FROM test_list l WHERE NOT EXISTS (SELECT 1 FROM packed_job WHERE list_id = l.id) AND NOT EXISTS (SELECT 1 FROM test_list WHERE base_id = l.id)';
const PACKED = '(SELECT COALESCE(SUM(n), 0) FROM packed_job WHERE job_id = j.id)';
const ROWS = (isPacked) => `(SELECT COUNT(*) FROM result WHERE job_id = j.id AND is_packed = ${isPacked})`;
const CHECKS = [
  ["SELECT * FROM (SELECT integrity_check AS what FROM pragma_integrity_check) WHERE what <> 'ok'", 'the database is damaged'],
  ['SELECT p.id, p.job_id FROM packed_job p LEFT JOIN test_list l ON l.id = p.list_id WHERE l.id IS NULL OR l.n <> p.n', 'packed results without their list'],
  ['SELECT p.id FROM packed_job p WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = p.job_id)', 'packed results without their job'],
  ['SELECT r.job_id FROM result r WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = r.job_id)', 'results without their job'],
  ['SELECT l.id FROM test_list l WHERE l.base_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM test_list b WHERE b.id = l.base_id AND b.base_id IS NULL)', 'lists without the list that they resemble'],
  [`SELECT * FROM (${UNUSED_LISTS.replace('COUNT(*)', 'l.id')})`, 'lists that nobody uses'],
  [`SELECT j.id, j.n_tests FROM job j WHERE j.n_tests <> ${PACKED} + ${ROWS(0)}`, 'jobs with a part of their results'],
  [`SELECT j.id FROM job j WHERE ${ROWS(1)} <> (SELECT COALESCE(SUM(n_rows), 0) FROM packed_job WHERE job_id = j.id)`, 'jobs with a part of their rows'],
  ['SELECT * FROM staged', 'reports that do not go on'],
  ["SELECT n FROM counter WHERE name = 'job' AND n <> (SELECT COUNT(*) FROM job)", 'the number of jobs is wrong'],
  [`SELECT n FROM counter WHERE name = 'result' AND n <> (SELECT SUM(${PACKED} + ${ROWS(0)}) FROM job j)`, 'the number of results is wrong'],
];

/* ---- large reports ---- */

const MANY = 20_000;
const largeTests = (list) => Array.from({ length: MANY }, (_, i) => ({ suite: 'large', name: `${list} ${i}`, status: i % 2 ? 'PASS' : 'FAIL', ...(i % 2 === 0 && { message: 'differs' }) }));

// The reports of one change. Three accelerators report each list, the first one as a new list; half of the reports are documents of
// a job that was reported before.
class Large {
  problems = [];
  whole = [];
  #typical = 1000;

  constructor(stage, dice) {
    Object.assign(this, { stage, dice, change: stage.changes[2] });
  }

  #target(i) {
    const { id, accelerator } = this.change.dispatches[i % ACCELERATORS.length];
    const tests = largeTests(`list ${Math.floor(i / ACCELERATORS.length)}`);
    const jobOf = (status, more) => ({ ...workflowOf({ workflow: 'large', job: `large ${i}`, run_id: '1', ...more }, status, new Date(START)), completed_at: null });
    const jobs = `/api/v1/dispatches/${id}/jobs`;
    return { accelerator, jobs, begun: jobOf('in_progress'), ended: jobOf('completed', { tests: [{ suite: 'small', name: `small ${i}`, status: 'PASS' }] }), tests, report: jobOf('completed', { tests, conclusion: 'failure' }) };
  }

  // How many tests of the job and how many red cells of the change the API shows.
  async #shown(i) {
    const { accelerators, verdicts_total: red } = await this.stage.outpost.api(`commits/${this.change.sha}?limit=1&status=FAIL`);
    const job = accelerators[i % ACCELERATORS.length].jobs.find(({ name }) => name === `large ${i}`);
    return { red, tests: job ? (await this.stage.outpost.api(`jobs/${job.id}?limit=1`)).tests_total : 0 };
  }

  async #judge(i, before, mustBeWhole) {
    const { red, tests } = await this.#shown(i);
    const isWhole = tests === before + MANY;
    if (!isWhole && (mustBeWhole || tests !== before)) this.problems.push(`large ${i} shows ${tests} tests, ${before} without the report`);
    if (red !== (this.whole.length + isWhole) * MANY / 2) this.problems.push(`after large ${i} there are ${red} red cells, with ${this.whole.length} other reports`);
    return isWhole;
  }

  async #moment(pending) {
    const begun = performance.now();
    let isOver = false;
    pending.finally(() => { isOver = true; });
    if (this.dice.chance(0.6)) {
      while (!isOver && await this.stage.count('SELECT COUNT(*) FROM staged WHERE owner <> 0') === 0) await sleep(1);
      await sleep(this.dice.below(30));
      return;
    }
    await Promise.race([pending, sleep(this.dice.below(this.#typical))]);
    if (isOver) this.#typical = performance.now() - begun;
  }

  async report(i) {
    const { stage } = this;
    const { accelerator, jobs, begun, ended, tests, report } = this.#target(i);
    const isDocument = i % 2 === 1;
    const before = isDocument ? 1 : 0;
    let target = ['POST', jobs, accelerator, report];
    if (isDocument) target = ['PUT', `/api/v1/jobs/${(await stage.send('POST', jobs, accelerator, ended)).job}/report`, accelerator, { schema: 1, tests }];
    else if (i % 4 === 0) await stage.send('POST', jobs, accelerator, begun);
    const pending = stage.sendOnce(...target).catch(() => undefined);
    await this.#moment(pending);
    const parts = await stage.count('SELECT COUNT(*) FROM staged WHERE owner <> 0');
    await stage.outpost.kill();
    const answer = await pending;
    await stage.outpost.spawn();
    await stage.ready();
    let isWhole = await this.#judge(i, before, answer?.status === 200);
    if (!isWhole && this.dice.chance(0.6)) {
      await stage.send(...target);
      isWhole = await this.#judge(i, before, true);
    }
    if (isWhole) this.whole.push(i);
    return parts > 0;
  }

  // Nothing of the others remains, and each failure has a cause.
  async finish() {
    const { stage } = this;
    await until(async () => await stage.count('SELECT COUNT(*) FROM attribution_due') === 0, { what: 'all changes are attributed' });
    await until(async () => {
      if (await stage.count('SELECT COUNT(*) FROM staged') === 0) return true;
      stage.wakeRetention();
      await stage.outpost.get('/readyz');
      return false;
    }, { interval: 50, what: 'retention has dropped the parts of reports' });
    const [{ n, decided }] = await stage.query(`SELECT COUNT(*) AS n, SUM(attribution IS NOT NULL AND reason IS NOT NULL) AS decided FROM verdict WHERE change_id = ${this.change.id} AND status = 'FAIL'`);
    if (n !== this.whole.length * MANY / 2 || (n > 0 && decided !== n)) this.problems.push(`${n} red cells, ${decided} of them attributed, of ${this.whole.length} reports`);
  }
}

// Returns the problems as sentences.
export async function killLarge({ seed, kills }, say = () => {}) {
  const dice = new Dice(seed ^ 0x1a49e);
  const stage = await Packed.open(writeChanges({ seed, changes: 3 }));
  try {
    await stage.start();
    const large = new Large(stage, dice);
    let inParts = 0;
    for (let i = 0; i < kills; i++) inParts += await large.report(i);
    await large.finish();
    stage.isClosing = true;
    await stage.outpost.stop();
    for await (const one of stage.judge()) large.problems.push(one);
    say(`killed ${kills} times in large reports, ${inParts} of them between two parts; ${large.whole.length} were recorded`);
    return large.problems;
  } finally {
    await stage.close();
  }
}

// Ids follow the order of the reports. Attribution depends on it, too, because it looks at other changes.
const UNSTEADY = /^(id|job|job_id|jobs_url|url|change_url|html_url|log_url|report_url|address|evidence\w*|attribution\w*|reason|is_flaky|superseded_by|triage|.*_at|queue\w*|run_ms|waited\w*|took\w*|seconds|age\w*)$/;

function plain(value) {
  if (Array.isArray(value)) return value.map(plain).map((one) => [JSON.stringify(one), one]).sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !UNSTEADY.test(key)).map(([key, one]) => [key, plain(one)]));
}

async function finish(stage) {
  const shown = await stage.shown();
  stage.isClosing = true;
  await stage.outpost.stop();
  const problems = [];
  for await (const one of stage.judge()) problems.push(one);
  return { problems, shown };
}

async function quietly(story, say) {
  const stage = await Packed.open(writeChanges(story));
  try {
    await stage.start();
    await stage.play();
    const { problems, shown } = await finish(stage);
    say(`undisturbed: ${stage.n_reports} reports, ${(await stage.query('SELECT COUNT(*) AS n, SUM(base_id IS NOT NULL) AS similar FROM test_list')).map(({ n, similar }) => `${n} lists of which ${similar} resemble another`)}`);
    return { problems: problems.map((one) => `undisturbed: ${one}`), shown };
  } finally {
    await stage.close();
  }
}

async function disturbed(story, { kills }, say) {
  const dice = new Dice(story.seed ^ 0xdead);
  const stage = await Packed.open(writeChanges(story));
  try {
    const early = Math.ceil(kills / 3);
    for (let i = 0; i < early; i++) { // while the upgrade starts
      await stage.outpost.spawn();
      await sleep(dice.below(i % 2 ? 400 : 120));
      await stage.outpost.kill();
    }
    await stage.start();
    let isOver = false, killed = early;
    const played = stage.play().finally(() => { isOver = true; });
    played.catch(() => {});
    const total = story.changes * ACCELERATORS.length * JOBS.length * 1.7; // reports, about
    while (killed < kills) {
      const due = (total * (killed - early)) / (kills - early);
      while (stage.n_reports < due && !isOver && !stage.isDropping) await sleep(2);
      await stage.ready();
      if (stage.isDropping) stage.wakeRetention();
      await sleep(dice.below(dice.chance(0.5) ? 30 : 250));
      await stage.outpost.kill();
      killed++;
      await sleep(dice.below(20));
      await stage.outpost.spawn();
    }
    await played;
    await stage.ready();
    const { problems, shown } = await finish(stage);
    say(`killed ${killed} times, ${early} of them at the start`);
    return { problems, shown };
  } finally {
    await stage.close();
  }
}

// Returns the problems as sentences.
export async function killPacked({ seed, kills, changes }, say = () => {}) {
  const story = { seed, changes };
  const quiet = await quietly(story, say);
  if (quiet.problems.length > 0) return quiet.problems;
  const { problems, shown } = await disturbed(story, { kills }, say);
  for (const key of new Set([...Object.keys(quiet.shown), ...Object.keys(shown)])) {
    const [expected, got] = [quiet.shown[key], shown[key]].map((one) => (JSON.stringify(one, null, 1) ?? '').split('\n'));
    const at = expected.findIndex((line, i) => line !== got[i]);
    if (at >= 0 || expected.length !== got.length) problems.push(`${key} differs:\n${got.slice(Math.max(0, at - 8), at + 4).join('\n')}\nand was, undisturbed,\n${expected.slice(Math.max(0, at - 8), at + 4).join('\n')}`);
  }
  return problems;
}

async function main() {
  const { values } = parseArgs({ options: { kills: { type: 'string' }, changes: { type: 'string' }, large: { type: 'string' }, seed: { type: 'string' } } });
  const options = { seed: Number(values.seed ?? process.env.SEED ?? Date.now() % 1_000_000), kills: Number(values.kills ?? 100), changes: Number(values.changes ?? 60), large: Number(values.large ?? 30) };
  console.log(`seed ${options.seed}: ${options.kills} kills over ${options.changes} changes`);
  const problems = [...await killPacked(options, console.log), ...await killLarge({ seed: options.seed, kills: options.large }, console.log)];
  for (const problem of problems) console.error(problem);
  console.log(problems.length === 0 ? 'no report is lost or half stored, every list is used, the API answers as in the undisturbed run' : `${problems.length} problems; SEED=${options.seed}`);
  process.exit(problems.length === 0 ? 0 : 1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
