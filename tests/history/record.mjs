// The truth of each reported red cell, and all verdicts that Outpost showed for it, in the API and in each version of a comment.
import { sameness } from './messages.mjs';
import { commitOf, wordsIn } from './shown.mjs';

export const EXCUSES = ['KNOWN', 'BASE', 'FLAKY'];
const RED = ['FAIL', 'ERROR', 'MISS'];
// If a test is red in several jobs, the first of these truths counts for the cell.
const WORST = ['guilty', 'both', 'unsettled', 'base', 'flaky', 'infra', 'outage'];

const add = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));

export class Record {
  #play;
  #toLook = new Set();
  #texts = []; // comments since the last look
  #nSettled = 0; // of them: in `settled`, or replaced before the daemon was idle
  #results = new Map(); // "SHA accelerator suite/test" → {truth, statuses, before: its truths since the last look, reds: [{job, …}]}
  #titles;
  #moved = new Set(); // keys of results since the last look
  #inputs = new Map(); // SHA → the time of the last report, and of the comment that followed

  failures = new Map(); // "accelerator suite/test job" → [{at, same, status, author, files, sha, branch, truth}]
  runs = new Map(); // "accelerator suite/test job" → [{at, author, branch, same}]: all that passed or failed; same: the kind of failure
  passes = new Map(); // "SHA accelerator suite/test job" → [at]
  tested = new Map(); // accelerator → [{index, branch, at, jobs: "suite/test job" → result}] of pushes
  settled = []; // {number, body}: each comment as it was when the daemon was idle
  cells = new Map(); // "SHA accelerator suite/test" → {head, pull, result, verdicts: [{at, verdict, truth, reason, evidence}]}
  reported = new Map(); // "SHA accelerator" → the time of the last report
  redHeads = new Set(); // SHAs of pull requests' heads that ever had a red test
  excused = []; // {pull, cell, where, verdict, reason}
  rerunOnBase = new Map(); // accelerator → like `tested`, for experiments on merge bases
  experiments = []; // {head, accelerator, side, sha, tests}
  extra = new Map(); // SHA → the number of tests that were rerun for it

  constructor(play) {
    this.#play = play;
    for (const { name } of play.world.accelerators) this.tested.set(name, []);
    this.#titles = new Map(play.world.accelerators.map(({ title, name }) => [title, name]));
  }

  // ---- the truth ----

  // One attempt of all jobs of a run.
  note({ accelerator: { name }, head }, jobs, at) {
    const byTest = new Map(), kept = new Map();
    const branch = head.base.branch;
    for (const job of jobs) {
      for (const result of job.tests) {
        const test = `${result.suite}/${result.name}`, where = `${name} ${test} ${job.name}`;
        add(byTest, test, { ...result, job: job.name });
        if (result.truth) add(this.failures, where, { at, same: sameness(result.cause), status: result.status, author: head.author, files: head.files, sha: head.sha, branch: head.pull?.to ?? branch, truth: result.truth });
        if (result.truth || result.status === 'PASS') add(this.runs, where, { at, author: head.author, branch: head.pull?.to ?? branch, same: result.truth && sameness(result.cause) });
        if (!result.truth && result.status === 'PASS') add(this.passes, `${head.sha} ${where}`, at);
        kept.set(`${test} ${job.name}`, result);
      }
    }
    this.reported.set(`${head.sha} ${name}`, at);
    if (head.isMain) this.tested.get(name).push({ index: head.base.index, branch, at, jobs: kept });
    for (const [test, results] of byTest) {
      const key = `${head.sha} ${name} ${test}`, reds = results.filter(({ truth }) => truth);
      const truth = WORST.find((one) => reds.some((red) => red.truth === one));
      const before = [...this.#results.get(key)?.before ?? [], truth];
      this.#moved.add(key);
      this.#results.set(key, { truth, statuses: results.map(({ status }) => status), reds, before, ...reds.find((red) => red.truth === truth) });
      if (truth && head.isPull && reds.some(({ status }) => status !== 'MISS')) this.redHeads.add(head.sha);
    }
    if (head.isPull) this.#noteInput(head);
  }

  // An experiment that explains this head, and its results.
  asked(experiment) { this.experiments.push({ at: this.#play.clock.now(), ...experiment }); }

  proved({ head, side, accelerator: { name }, jobs }) {
    const n = jobs.reduce((sum, { tests }) => sum + tests.length, 0);
    this.extra.set(head.sha, (this.extra.get(head.sha) ?? 0) + n);
    if (side === 'base') {
      const results = jobs.flatMap((job) => job.tests.map((result) => [`${result.suite}/${result.name} ${job.name}`, result]));
      add(this.rerunOnBase, name, { index: head.base.index, branch: head.base.branch, at: this.#play.clock.now(), jobs: new Map(results) });
    }
    this.#noteInput(head);
  }

  // ---- Outpost's verdicts ----

  #noteInput(head) { this.#inputs.set(head.sha, { at: this.#play.clock.now() }); }

  // Seconds from the last report or experiment of each head with red tests to the comment that followed.
  get delays() {
    return [...this.#inputs].filter(([sha, { until }]) => until !== undefined && this.redHeads.has(sha)).map(([, { at, until }]) => (until - at) / 1000).sort((a, b) => a - b);
  }

  // Records a new version of a comment.
  commented(number, body) {
    this.#toLook.add(number);
    this.#texts.push({ number, body });
    const input = this.#inputs.get(commitOf(body));
    if (input) input.until ??= this.#play.clock.now();
  }

  // Marks this pull request as changed.
  wake(number) { this.#toLook.add(number); }

  // Called when the daemon is idle.
  commentsSettled() {
    const texts = this.#texts.slice(this.#nSettled);
    this.#nSettled = this.#texts.length;
    for (const [number, body] of new Map(texts.map((text) => [text.number, text.body]))) this.settled.push({ number, body });
  }

  async lookAround() {
    this.commentsSettled();
    const texts = this.#texts.splice(0);
    this.#nSettled = 0;
    for (const { number, body } of texts) this.#read(this.#play.project.byNumber.get(number), body);
    const numbers = [...this.#toLook];
    this.#toLook.clear();
    await Promise.all(numbers.map((number) => this.look(this.#play.project.byNumber.get(number))));
    for (const key of this.#moved) this.#results.get(key).before = [this.#results.get(key).truth];
    this.#moved.clear();
  }

  async look(pull) {
    this.#play.sent.looks++;
    const view = await this.#play.daemon.get(`/api/v1/pulls/${pull.number}`);
    if (view.head_sha !== pull.head.sha) {
      this.#play.problems.push(`#${pull.number}: shows ${view.head_sha}, its head is ${pull.head.sha}`);
      return;
    }
    const at = this.#play.clock.now();
    for (const verdict of view.verdicts) this.#readVerdict(pull, verdict, at);
  }

  // Only if the truth has not changed since the last look, because the text may be older than the last report.
  #read(pull, body) {
    const sha = commitOf(body);
    for (const { test, accelerator, verdict } of wordsIn(body)) {
      const key = `${sha} ${this.#titles.get(accelerator)} ${test}`;
      const result = this.#results.get(key);
      if (result?.before.every((truth) => truth === result.truth)) this.#judge(pull, key, 'a comment', verdict, result);
    }
  }

  #judge(pull, key, where, verdict, { truth, cause, message }, reason) {
    const isWrong = (truth === 'guilty' && EXCUSES.includes(verdict)) || (truth === 'unsettled' && ['KNOWN', 'BASE'].includes(verdict));
    if (isWrong && !this.excused.some((one) => one.key === key && one.verdict === verdict && one.where === where)) this.excused.push({ pull, key, where, verdict, truth, cause, message, reason });
  }

  #readVerdict(pull, verdict, at) {
    const test = `${verdict.suite}/${verdict.test}`;
    const key = `${pull.head.sha} ${verdict.accelerator} ${test}`;
    const result = this.#results.get(key) ?? (verdict.suite === 'dispatch' && { truth: 'outage', status: 'MISS', statuses: ['MISS'], reds: [] });
    if (!result?.statuses.includes(verdict.status)) {
      this.#play.problems.push(`#${pull.number} ${verdict.accelerator} ${test}: shows ${verdict.status}, reported was ${result?.statuses ?? 'nothing'}`);
      return;
    }
    if (!RED.includes(verdict.status)) {
      this.cells.delete(key); // it passed in a later attempt
      return;
    }
    const cell = this.cells.get(key) ?? { key, pull, head: pull.head, accelerator: verdict.accelerator, test, verdicts: [] };
    Object.assign(cell, { result, at, status: verdict.status, job: verdict.job });
    this.cells.set(key, cell);
    this.#judge(pull, key, 'the API', verdict.attribution, result, verdict.reason);
    const last = cell.verdicts.at(-1);
    if (last?.verdict !== verdict.attribution || last.truth !== result.truth)
      cell.verdicts.push({ at, verdict: verdict.attribution, truth: result.truth, reason: verdict.reason, evidence: verdict.evidence_url });
    else
      Object.assign(last, { reason: verdict.reason, evidence: verdict.evidence_url });
  }
}
