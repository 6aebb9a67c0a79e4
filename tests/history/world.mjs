// A project and its accelerators with the truth: the real breakages of each commit and pull request, the flaky tests, and the bad
// machines with their times. Everything is drawn from one seed, and this module is synchronous.
import { createHash } from 'node:crypto';
import { Dice } from '../kill/story.mjs';
import { fill, harmless, newWord, patternOf, sameness } from './messages.mjs';
import { HOSTILE, MACHINE, SPECIFIC, VAGUE } from './shapes.mjs';

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
export const RELEASE = 'release/2.9';

const sha1 = (text) => createHash('sha1').update(text).digest('hex');
const SUITES = ['model', 'unit', 'op', 'benchmark'];
const FOLDERS = ['aten/src', 'c10/core', 'torch/nn', 'torch/_inductor', 'docs/source', 'test', 'tools/build', 'torch/distributed'];
const EVERY = [null, '30m', '2h', '6h', null, '12h']; // the intervals of scarce hardware
const JOBS = [['tests'], ['py310', 'py312'], ['part 0', 'part 1'], ['tests'], ['tests'], ['py311']];
const isMatrix = (jobs) => jobs.length > 1 && jobs[0].startsWith('py'); // each test runs in each job

// A breakage with the same message here and on main, so that no evidence can separate them.
const isAlike = (own, inherited) => inherited && (own === inherited || (own.status === inherited.status && sameness(own) === sameness(inherited)));

export class World {
  #broken = 0;

  // catalogue: {accelerators: [{name, title, …}], tests: [{suite, name, …}], titles, words} instead of invented ones, and a simple
  // project with one branch and good machines.
  constructor({ seed, days, pulls, accelerators, tests, start, catalogue }) {
    Object.assign(this, { seed, days, start, end: start + days * DAY, catalogue });
    const dice = this.dice('world');
    this.authors = Array.from({ length: Math.max(60, Math.round(pulls / 2)) }, (_, i) => `author-${i}`);
    this.unlinked = new Set(catalogue ? [] : this.authors.filter((_, i) => i % 14 === 3)); // their commits name a person, not a login
    this.files = Array.from({ length: 2000 }, (_, i) => `${FOLDERS[i % FOLDERS.length]}/file_${i}.${i % 3 ? 'py' : 'cpp'}`);
    this.tests = catalogue?.tests ?? Array.from({ length: tests }, (_, i) => ({ suite: SUITES[i % SUITES.length], name: `test_${newWord(dice)}_${i}` }));
    this.accelerators = Array.from({ length: catalogue?.accelerators.length ?? accelerators }, (_, i) => ({ ...this.#accelerator(i, dice), ...catalogue?.accelerators[i] }));
    this.main = [{ index: 0, branch: 'main', sha: sha1(`${seed} root`), author: this.authors[0], files: [this.files[0]], at: start - HOUR, broken: [], title: 'root' }];
    this.branches = new Map([['main', this.main]]);
    this.pushes = this.#plan(dice);
    this.releasePushes = catalogue ? [] : this.#planRelease(dice);
    this.pulls = this.#introduce(pulls, dice);
  }

  // Draws that are independent of the order of other draws.
  dice(...about) {
    return new Dice(Number.parseInt(sha1([this.seed, ...about].join('\n')).slice(0, 8), 16));
  }

  // ---- accelerators ----

  #accelerator(i, dice) {
    const jobs = JOBS[i % JOBS.length];
    const flaky = new Map();
    for (let n = dice.between(2, 4); n > 0; n--) {
      const cause = { rate: 0.01 * 30 ** dice.number(), ...this.#words(dice, 0.25), status: 'FAIL' };
      flaky.set(dice.below(this.tests.length), { ...cause, job: isMatrix(jobs) && dice.chance(0.25) ? dice.pick(jobs) : undefined });
    }
    const windows = (apart, longest, more) => {
      const list = [];
      for (let at = this.start + dice.number() * apart * DAY; at < this.end; at += (0.5 + dice.number()) * apart * DAY) list.push({ from: at, to: at + (2 + dice.number() * longest) * HOUR, ...more() });
      return list;
    };
    return {
      name: `chip-${String.fromCharCode(97 + i)}`, title: `Chip ${String.fromCharCode(65 + i)}`, level: ['L2', 'L4', 'L2', 'L3'][i % 4],
      isGithub: i % 2 === 0, every: EVERY[i % EVERY.length], jobs, hasPaths: i % 4 === 3, testsReleases: i % 3 === 0,
      slow: 0.3 + dice.number() * 2.5, flaky,
      outages: windows(40, 10, () => ({ isSilent: dice.chance(0.4), template: 'RuntimeError: {word}: no device found, tried {n} times', word: newWord(dice), status: 'FAIL' })), // all of the vendor's machines
      machines: Array.from({ length: dice.between(2, 4) }, () => windows(30, 8, () => this.#badMachine(dice))),
      gaps: windows(20, 40, () => ({})), // the vendor tests no pushes
      skips: windows(25, 70, () => ({ test: dice.below(this.tests.length) })), // a test is skipped by the code of main
    };
  }

  // The effect of a bad machine on each test.
  #badMachine(dice) {
    const kind = dice.pick(MACHINE);
    const text = dice.chance(0.2) ? dice.pick(HOSTILE) : dice.pick(kind.texts);
    const tests = kind.isWhole ? undefined : new Set(Array.from({ length: dice.between(1, 4) }, () => dice.below(this.tests.length)));
    return { template: text, word: newWord(dice), status: kind.status, tests };
  }

  outage(accelerator, at) { return accelerator.outages.find(({ from, to }) => at >= from && at < to); }
  isGap(accelerator, at) { return accelerator.gaps?.some(({ from, to }) => at >= from && at < to); }

  // ---- breakages ----

  #words(dice, vague) {
    if (this.catalogue) return { template: patternOf(dice), word: dice.pick(this.catalogue.words) };
    const [, template] = dice.chance(vague) ? dice.pick(VAGUE) : dice.pick(SPECIFIC);
    return { template, word: newWord(dice) };
  }

  // A breakage that fails always, beginning at its change. vague: the share without a message that identifies the cause. isOfMain:
  // its message must differ from all others of main.
  breakage(dice, { vague, spare = () => false }) {
    const cells = new Set();
    const everywhere = dice.chance(0.1);
    const where = everywhere ? this.accelerators : Array.from({ length: dice.between(1, 2) }, () => dice.pick(this.accelerators));
    const tests = Array.from({ length: dice.between(1, 3) }, () => dice.below(this.tests.length));
    const words = this.#words(dice, vague);
    for (const accelerator of where) {
      for (const test of tests) {
        const flakies = [...accelerator.flaky.keys()];
        const chosen = dice.chance(0.25) ? dice.pick(flakies) : test;
        if (spare(accelerator, chosen)) continue;
        cells.add(`${accelerator.name}/${chosen}`);
        // A really broken flaky test may have its usual message.
        const flaky = accelerator.flaky.get(chosen);
        if (flaky && !this.catalogue && dice.chance(0.1)) Object.assign(words, { template: flaky.template, word: flaky.word });
      }
    }
    const job = dice.chance(0.15) ? 'py312' : undefined; // if the test has this job
    return { id: ++this.#broken, ...words, job, status: dice.chance(0.85) ? 'FAIL' : 'ERROR', cells };
  }

  // A stable test that becomes flaky with this change.
  unsettled(dice) {
    const accelerator = dice.pick(this.accelerators);
    return { cell: `${accelerator.name}/${dice.below(this.tests.length)}`, rate: 0.3 + dice.number() * 0.4, ...this.#words(dice, 0.25), status: 'FAIL' };
  }

  title(dice) { return this.catalogue ? dice.pick(this.catalogue.titles) : harmless(dice); }

  get tip() { return this.main.at(-1); }
  tipOf(branch) { return this.branches.get(branch)?.at(-1); }

  // Adds a commit, which keeps the breakages of its branch except those that it fixes.
  land({ branch = 'main', at, author, files, title, breaks = [], fixes = [] }) {
    if (!this.branches.has(branch)) this.branches.set(branch, [this.tip]); // the branch is cut here
    const list = this.branches.get(branch), last = list.at(-1);
    const index = last.index + 1;
    const broken = [...last.broken.filter((one) => !fixes.includes(one)), ...breaks];
    const commit = { index, branch, sha: sha1(`${this.seed} ${branch} ${index}`), author, files, title, at, broken, breaks, fixes };
    list.push(commit);
    return commit;
  }

  someFiles(dice) {
    return Array.from({ length: dice.between(1, 4) }, () => dice.pick(this.files));
  }

  #someCommits(dice, most) {
    return Array.from({ length: dice.between(1, most) }, () => ({ author: dice.pick(this.authors), files: this.someFiles(dice), title: this.title(dice) }));
  }

  // Pushes without a pull request in this project: most break nothing, and some break main until another one fixes it.
  #plan(dice) {
    const pushes = [];
    for (let at = this.start; (at += -Math.log(1 - dice.number()) * 4 * HOUR) < this.end;)
      pushes.push({ at, commits: this.#someCommits(dice, 3), breaks: [], fixes: [] });
    const last = pushes.length - 1;
    for (let i = dice.below(8); i < last; i += dice.between(4, 14)) {
      // A flaky test that main breaks has two kinds of failures, which only their messages distinguish.
      const breakage = this.breakage(dice, { vague: 0.15, spare: (accelerator, test) => accelerator.flaky.has(test) });
      const until = pushes[i].at + 4 * HOUR * 18 ** dice.number();
      const fix = pushes.findIndex(({ at }, j) => j > i && at >= until);
      const fixed = fix < 0 ? last : fix;
      pushes[i].breaks.push(breakage);
      pushes[fixed].fixes.push(breakage);
      // A fix may be reverted and land again.
      if (this.catalogue || !dice.chance(0.2)) continue;
      const [back, again] = [fixed + dice.between(2, 8), fixed + dice.between(9, 16)];
      if (again > last) continue;
      pushes[back].breaks.push(breakage);
      pushes[back].commits.at(-1).files = pushes[fixed].commits.at(-1).files;
      pushes[again].fixes.push(breakage);
    }
    return pushes;
  }

  // A release branch that is cut early. Cherry-picks bring main's changes, even its breakages.
  #planRelease(dice) {
    const pushes = [];
    for (let at = this.start + this.days * 0.1 * DAY; (at += -Math.log(1 - dice.number()) * 14 * HOUR) < this.end;)
      pushes.push({ branch: RELEASE, at, commits: this.#someCommits(dice, 1), breaks: [], fixes: [], picks: dice.number() });
    return pushes;
  }

  // ---- pull requests ----

  #introduce(n, dice) {
    const kinds = this.catalogue
      ? [['harmless', 0.42], ['real', 0.34], ['lands broken', 0.08], ['stacked', 0.1], ['sibling', 0.06]]
      : [['harmless', 0.4], ['real', 0.28], ['lands broken', 0.07], ['stacked', 0.09], ['sibling', 0.05], ['same limit', 0.04], ['reverts a fix', 0.04], ['unsettles', 0.03]];
    return Array.from({ length: n }, (_, i) => {
      let left = dice.number();
      const [kind] = kinds.find(([, share]) => (left -= share) < 0) ?? kinds[0];
      return { kind, at: this.start + HOUR + ((i + dice.number()) / n) * (this.end - this.start - 4 * HOUR) };
    });
  }

  // The results of a run. head: {sha, base: commit, breaks: [breakage], unsettled}. only: ["suite/test"] (an experiment's),
  // inJobs: names of jobs; undefined: all. → [{name, conclusion, tests: [{suite, name, status, message, truth, cause}]}];
  // undefined: the vendor does not report
  run(accelerator, head, attempt, at, { only, inJobs } = {}) {
    const dice = this.dice('run', accelerator.name, head.sha, attempt, head.round ?? 0);
    const outage = this.outage(accelerator, at);
    if (outage?.isSilent) return undefined;
    const { jobs } = accelerator;
    return jobs.filter((name) => !inJobs || inJobs.includes(name)).map((name) => {
      const machine = accelerator.machines?.length ? dice.pick(accelerator.machines).find(({ from, to }) => at >= from && at < to) : undefined;
      const tests = this.tests.map((test, i) => ({ ...test, i }))
        .filter(({ suite, name: title, i }) => (isMatrix(jobs) || i % jobs.length === jobs.indexOf(name)) && (!only || only.includes(`${suite}/${title}`)))
        .map(({ i, ...test }) => ({ ...test, ...this.#result({ accelerator, head, i, test, job: name, bad: outage ?? machine, isOutage: Boolean(outage), dice }) }));
      return { name, tests, conclusion: tests.some(({ truth }) => truth) ? 'failure' : 'success' };
    });
  }

  #isHere(accelerator, i, job) {
    return (one) => one.cells.has(`${accelerator.name}/${i}`) && (!one.job || !isMatrix(accelerator.jobs) || one.job === job);
  }

  // The breakage of the merge base in this job of a test ("suite/test"), if there is one.
  brokenOnBase(accelerator, head, test, job) {
    const i = this.tests.findIndex(({ suite, name }) => `${suite}/${name}` === test);
    return head.base.broken.find(this.#isHere(accelerator, i, job));
  }

  #result({ accelerator, head, i, test, job, bad, isOutage, dice }) {
    const cell = `${accelerator.name}/${i}`;
    const isHere = this.#isHere(accelerator, i, job);
    const say = (cause, truth) => ({ status: cause.status, truth, cause, message: fill(cause.template, dice, test.name, cause.word) });
    const isFlaky = dice.number(), isUnsettled = dice.number(), isSkipped = dice.chance(0.01);
    if (bad && (!bad.tests || bad.tests.has(i))) return say(bad, isOutage ? 'outage' : 'infra');
    if (accelerator.skips?.some((one) => one.test === i && head.base.at >= one.from && head.base.at < one.to)) return { status: 'SKIP' };
    const own = head.breaks.find(isHere), inherited = head.base.broken.find(isHere);
    if (own && !isAlike(own, inherited)) return say(own, 'guilty');
    if (inherited) return say(inherited, own && own !== inherited ? 'both' : 'base');
    if (head.unsettled?.cell === cell && isUnsettled < head.unsettled.rate) return say(head.unsettled, 'unsettled');
    const flaky = accelerator.flaky.get(i);
    if (flaky && (!flaky.job || flaky.job === job) && isFlaky < flaky.rate) return say(flaky, 'flaky');
    return { status: isSkipped ? 'SKIP' : 'PASS' };
  }
}
