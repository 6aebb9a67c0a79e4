// Periodic runs under kills: the same nights are played twice, undisturbed and with a daemon that is killed repeatedly. Each due
// time runs once, each run ends, no dispatch is sent twice, and the history is the same.
//
//   node tests/kill/nightly.mjs [--kills N] [--nights N] [--seed N] [--share X]
//
// SEED (or --seed) repeats a run as far as timing allows. KEEP=1 keeps the daemon's folder.
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fakeSha } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { GitDaemon } from '../integration/lib/git-daemon.mjs';
import { MovedClock, realNow } from '../integration/lib/moved-clock.mjs';
import { Outpost, until } from '../integration/lib/outpost.mjs';
import { Dice } from './story.mjs';
import { breakGithub } from './trouble.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'between Outpost and the lab';
const DAY = 86_400_000;
const EVE = Date.parse('2027-02-20T01:50:00Z'); // ten minutes before the first run, and before the end of a month
const NIGHT_MS = 120_000; // the limit of a night with kills
const TESTS = ['llama3', 'Qwen', 'resnet', 'add', 'matmul'];

// where: a repository, or the lab's webhook. The twins share a repository and their dispatches.
const ACCELERATORS = [
  { name: 'chip', where: 'Ascend/pytorch', hasSource: true },
  { name: 'lab-chip', where: 'lab' },
  { name: 'quiet', where: 'vllm-project/vllm', level: 'L1' },
  { name: 'twin-a', where: 'torch-spyre/torch-spyre', hasSource: true },
  { name: 'twin-b', where: 'torch-spyre/torch-spyre' },
];

const configured = (git, lab) => ACCELERATORS.map(({ name, where, level = 'L2', hasSource }) => ({
  name, title: name, level, ...(hasSource && { source: { git_url: git.url, branch: 'trunk' } }),
  triggers: { pull_request: false, schedule: ['0 2 * * *'] },
  runners: [where === 'lab' ? { name: 'lab', webhook: { url: lab.url, secret: 'hook' } } : { name: 'ci', github: { repository: where } }],
}));

// The events of each night: a new head of upstream, of the source, or neither. A head always has the same results.
function writeNights({ seed, nights }) {
  const dice = new Dice(seed);
  return Array.from({ length: nights }, (_, i) => ({
    sha: i === 0 || dice.chance(0.7) ? fakeSha(`story ${seed} night ${i}`) : undefined,
    hasCommit: i === 0 || dice.chance(0.3),
  }));
}

function resultsOf(name, sha) {
  const dice = new Dice(Number.parseInt(sha.slice(0, 6), 16) ^ (name.length * 7919));
  const tests = TESTS.flatMap((test) => {
    const n = dice.number();
    const status = n < 0.75 ? 'PASS' : n < 0.9 ? 'FAIL' : n < 0.95 ? 'SKIP' : undefined;
    return status ? [{ suite: 'model', name: test, status }] : [];
  });
  return { tests, conclusion: tests.some(({ status }) => status === 'FAIL') ? 'failure' : 'success' };
}

class Nights {
  arrivals = []; // {night, id, head, accelerator}
  problems = [];
  tokens = {};
  night = -1;
  #begun = new Set();
  #isBack; // a promise while a report waits for the daemon
  #reports = [];

  static async open() {
    const self = new Nights();
    [self.rig, self.lab, self.git] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET }), GitDaemon.start()]);
    self.git.commit('the first');
    self.outpost = await Outpost.prepare({ rig: self.rig, accelerators: configured(self.git, self.lab), wait: false, secrets: { 'lab-chip': { hook: SECRET } }, config: { schedule: { jitter: '0s' } } });
    self.clock = await MovedClock.of(self.outpost);
    self.outpost.options.env = self.clock.env;
    await self.clock.set(EVE - realNow());
    self.outpost.on('exit', ({ code, signal }) => {
      if (signal !== 'SIGKILL' && !self.isClosing) self.problems.push(`the daemon died by itself (${signal ?? code}):\n${self.outpost.tail()}`);
    });
    self.rig.on('dispatch', ({ client_payload: body }) => self.#take(body));
    self.lab.on('event', ({ valid, body }) => (valid ? self.#take(body) : self.problems.push('the lab received an event with a wrong signature')));
    return self;
  }

  async start() {
    await this.outpost.spawn();
    await this.ready();
    for (const { name } of ACCELERATORS) this.tokens[name] = (await this.outpost.ctl('token', 'issue', name)).stdout.trim();
    await until(async () => (await this.schedules())?.length === ACCELERATORS.length, { timeout: 60_000, what: 'every schedule is known' });
  }

  ready() {
    return until(async () => (await this.outpost.get('/readyz')).status === 200, { timeout: 20_000, interval: 5, what: '/readyz is 200' });
  }

  // A vendor runs each dispatch once and retries its report until it is accepted.
  #take({ event_type: type, payload, outpost }) {
    if (type !== 'nightly') return;
    for (const accelerator of outpost.accelerators) {
      this.arrivals.push({ night: this.night, id: outpost.dispatch_id, head: payload.after, accelerator, sources: outpost.sources });
      const key = `${outpost.dispatch_id} ${accelerator}`;
      if (this.#begun.has(key)) continue;
      this.#begun.add(key);
      this.#reports.push(this.#report(outpost.dispatch_id, accelerator, payload.after));
    }
  }

  async #report(id, accelerator, sha) {
    const workflow = workflowOf({ workflow: 'ci', job: 'test', run_id: `${id}-run`, ...resultsOf(accelerator, sha) }, 'completed');
    while (!this.isClosing) {
      const answer = await post(`${this.outpost.url}/api/v1/dispatches/${id}/jobs`, this.tokens[accelerator], workflow, { tries: 1 }).catch(() => undefined);
      if (answer && answer.status !== 503) {
        if (answer.status !== 200) this.problems.push(`a report of ${accelerator} got ${answer.status}: ${JSON.stringify(answer.body)}`);
        return;
      }
      await this.#back();
    }
  }

  // Waits until the daemon is back. All waiting reports share one poll.
  #back() {
    return this.#isBack ??= this.ready().catch(() => {}).finally(() => { this.#isBack = undefined; });
  }

  async schedules() {
    const { code, stdout } = await this.outpost.ctl('--json', 'nightly');
    return code === 0 ? JSON.parse(stdout).schedules : undefined;
  }

  async play(nights, disturb = async () => {}) {
    for (const [i, { sha, hasCommit }] of nights.entries()) {
      if (sha) this.rig.push(UPSTREAM, { sha });
      if (hasCommit) this.git.commit(`night ${i}`);
      const due = new Date(EVE + 10 * 60_000 + i * DAY).toISOString().replace('.000Z', 'Z');
      const isOver = async () => {
        const list = await this.schedules();
        return list?.every(({ last }) => last?.due_at === due && last.ended_at);
      };
      this.night = i;
      const begin = () => this.clock.set(EVE + i * DAY + 600_500 - realNow());
      await disturb(begin);
      await until(isOver, { timeout: NIGHT_MS, interval: 50, what: `night ${i} is over: ${JSON.stringify(await this.schedules())}` });
    }
    await Promise.all(this.#reports);
  }

  query(sql) { return this.outpost.database.query(sql); }

  // The page of all nights without numbers and times that differ between runs.
  async history(nights) {
    const last = new Date(EVE + (nights.length - 1) * DAY).toISOString().slice(0, 10);
    const { days, counts, accelerators, tests, next } = await this.outpost.api(`nightly?days=${nights.length}&until=${last}&limit=200`);
    const mark = (one) => one && [one.day, one.upstream_sha];
    return {
      days, counts, next,
      accelerators: accelerators.map(({ name, runs }) => ({ name, runs: runs.map((run) => run && [run.due_at, run.state, run.outcome, run.reason, run.upstream_sha]) })),
      tests: tests.map(({ name, cells }) => ({ name, cells: cells.map((cell) => [cell.accelerator, cell.state, cell.since, mark(cell.first_bad), mark(cell.last_good), cell.days.map((day) => day?.status ?? null)]) })),
    };
  }

  async* judge(nights) {
    yield* this.problems;
    for (const { method, path: where, what, problems } of this.rig.violations()) yield `GitHub refuses ${method} ${where} (${what}): ${JSON.stringify(problems)}`;
    const runs = await this.query('SELECT accelerator, due_ms, COUNT(*) AS n, SUM(ended_ms IS NULL) AS n_open FROM schedule_run GROUP BY accelerator, due_ms');
    if (runs.length !== nights.length * ACCELERATORS.length) yield `${runs.length} due times of ${nights.length} nights`;
    for (const { accelerator, due_ms: due, n, n_open: open } of runs)
      if (n !== 1 || open) yield `${accelerator} has ${n} runs of ${new Date(due).toISOString()}, ${open} of them open`;
    for (const { accelerator, head_sha: head, n, n_runs: meant } of await this.query(
      'SELECT s.accelerator, c.head_sha, (SELECT COUNT(DISTINCT round) FROM dispatch WHERE change_id = c.id AND accelerator = s.accelerator) AS n,'
      + ' COUNT(*) AS n_runs FROM schedule_run s JOIN change c ON c.id = s.change_id GROUP BY s.accelerator, c.id'))
      if (n !== meant) yield `${accelerator} ${head.slice(0, 7)}: ${n} rounds of ${meant} runs`;
    for (const { name, where } of ACCELERATORS) {
      // Accelerators that share a repository may start each other's run again.
      const most = ACCELERATORS.filter((one) => one.where === where).length;
      for (const night of nights.keys()) {
        const ids = new Set(this.arrivals.filter((one) => one.accelerator === name && one.night === night).map(({ id }) => id));
        if (ids.size > most) yield `night ${night}: ${ids.size} dispatches to ${name}`;
      }
    }
    for (const { id, sources } of this.arrivals)
      if (sources && !sources['twin-a']) yield `dispatch ${id} lists sources without twin-a's: ${JSON.stringify(sources)}`;
  }

  async close() {
    this.isClosing = true;
    await this.outpost.close();
    await Promise.all([...this.#reports, this.lab.stop(), this.git.close(), this.rig.close()]);
    MovedClock.right();
  }
}

async function quietly(nights) {
  const stage = await Nights.open();
  try {
    await stage.start();
    await stage.play(nights, (begin) => begin());
    const problems = [];
    for await (const one of stage.judge(nights)) problems.push(`undisturbed: ${one}`);
    return { problems, history: await stage.history(nights) };
  } finally {
    await stage.close();
  }
}

// Chooses when to kill: before the clock reaches the due time, during a request to GitHub, during a dispatch, or at a random time.
async function moment(stage, dice) {
  const within = AbortSignal.timeout(300);
  const once = (emitter, event) => new Promise((resolve) => {
    emitter.once(event, resolve);
    within.addEventListener('abort', resolve, { once: true });
  });
  const how = dice.number();
  if (how < 0.15) return sleep(dice.below(60));
  if (how < 0.35) await stage.ready().catch(() => {});
  else if (how < 0.6) for (let left = dice.between(1, 4); left > 0 && !within.aborted; left--) await once(stage.rig, 'request');
  else if (how < 0.8) await once(dice.chance(0.7) ? stage.rig : stage.lab, dice.chance(0.7) ? 'dispatch' : 'event');
  return sleep(dice.below(how < 0.8 ? 12 : 250));
}

async function disturbed(nights, { seed, kills, share }, say) {
  const stage = await Nights.open();
  const dice = new Dice(seed ^ 0xdead);
  let killed = 0;
  try {
    await stage.start();
    if (share > 0) breakGithub(stage.rig, seed, { share });
    await stage.play(nights, async (begin) => {
      const due = Math.round((kills * (stage.night + 1)) / nights.length);
      const at = dice.below(2); // before or after the first kill
      if (at === 0) await begin();
      for (let i = 0; killed < due; i++) {
        await moment(stage, dice);
        await stage.outpost.kill();
        killed++;
        if (i === 0 && at === 1) await begin();
        await sleep(dice.below(40));
        await stage.outpost.spawn();
      }
      await begin();
      if (stage.night % 5 === 4) say(`killed ${killed} times in ${stage.night + 1} nights`);
    });
    stage.rig.clearFaults();
    await stage.ready();
    const problems = [];
    for await (const one of stage.judge(nights)) problems.push(one);
    return { problems, history: await stage.history(nights) };
  } finally {
    await stage.close();
  }
}

// Returns the problems as sentences.
export async function killNights({ seed, kills, nights: n, share = 0 }, say = () => {}) {
  const nights = writeNights({ seed, nights: n });
  const quiet = await quietly(nights);
  if (quiet.problems.length > 0) return quiet.problems;
  const tally = {};
  for (const { runs } of quiet.history.accelerators) for (const run of runs) tally[run?.[2]] = (tally[run?.[2]] ?? 0) + 1;
  say(`undisturbed: ${Object.entries(tally).map(([what, count]) => `${count} ${what}`).join(', ')}`);
  const broken = await disturbed(nights, { seed, kills, share }, say);
  const [expected, got] = [quiet.history, broken.history].map((one) => JSON.stringify(one, null, 1).split('\n'));
  const at = expected.findIndex((line, i) => line !== got[i]);
  if (at >= 0 || expected.length !== got.length) broken.problems.push(`the history differs:\n${got.slice(Math.max(0, at - 12), at + 3).join('\n')}\nand was, undisturbed,\n${expected.slice(Math.max(0, at - 12), at + 3).join('\n')}`);
  return broken.problems;
}

async function main() {
  const { values } = parseArgs({ options: { kills: { type: 'string' }, nights: { type: 'string' }, seed: { type: 'string' }, share: { type: 'string' } } });
  const options = { seed: Number(values.seed ?? process.env.SEED ?? realNow() % 1_000_000), kills: Number(values.kills ?? 60), nights: Number(values.nights ?? 20), share: Number(values.share ?? 0.3) };
  const started = realNow();
  const say = (text) => console.log(`${((realNow() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`);
  say(`seed ${options.seed}: ${options.kills} kills in ${options.nights} nights`);
  const problems = await killNights(options, say);
  for (const problem of problems) console.error(problem);
  say(problems.length === 0 ? 'each due time ran once, no dispatch was sent twice, the history as in the undisturbed run' : `${problems.length} problems; SEED=${options.seed}`);
  process.exit(problems.length === 0 ? 0 : 1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
