// A project and its accelerators, with the truth: what each commit and each pull request really breaks, which
// tests are flaky, when a vendor's machines are down. Everything is drawn from one seed; nothing here is asynchronous.
import { createHash } from 'node:crypto';
import { Dice } from '../kill/story.mjs';
import { harmless, message, newWord, sameness } from './messages.mjs';

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

const sha1 = (text) => createHash('sha1').update(text).digest('hex');
const SUITES = ['model', 'unit', 'op', 'benchmark'];
const FOLDERS = ['aten/src', 'c10/core', 'torch/nn', 'torch/_inductor', 'docs/source', 'test', 'tools/build', 'torch/distributed'];
const EVERY = [null, '30m', '2h', '6h', null, '12h']; // scarce hardware tests only so often

// What breaks here and on main in the same words: nobody could tell the one from the other.
const isAlike = (own, inherited) => inherited && (own === inherited || (own.style === inherited.style && sameness(own) === sameness(inherited)));

export class World {
  #broken = 0;

  // catalogue: {accelerators: [{name, title, …}], tests: [{suite, name, …}], titles, words} instead of made-up ones.
  constructor({ seed, days, pulls, accelerators, tests, start, catalogue }) {
    Object.assign(this, { seed, days, start, end: start + days * DAY, catalogue });
    const dice = this.dice('world');
    this.authors = Array.from({ length: Math.max(60, Math.round(pulls / 2)) }, (_, i) => `author-${i}`);
    this.files = Array.from({ length: 2000 }, (_, i) => `${FOLDERS[i % FOLDERS.length]}/file_${i}.${i % 3 ? 'py' : 'cpp'}`);
    this.tests = catalogue?.tests ?? Array.from({ length: tests }, (_, i) => ({ suite: SUITES[i % SUITES.length], name: `test_${newWord(dice)}_${i}` }));
    this.accelerators = Array.from({ length: catalogue?.accelerators.length ?? accelerators }, (_, i) => ({ ...this.#accelerator(i, dice), ...catalogue?.accelerators[i] }));
    this.main = [{ index: 0, sha: sha1(`${seed} root`), author: this.authors[0], files: [this.files[0]], at: start - HOUR, broken: [], title: 'root' }];
    this.pushes = this.#plan(dice);
    this.pulls = this.#introduce(pulls, dice);
  }

  // Draws that do not depend on the order of the others.
  dice(...about) {
    return new Dice(Number.parseInt(sha1([this.seed, ...about].join('\n')).slice(0, 8), 16));
  }

  // ---- who tests ----

  #accelerator(i, dice) {
    const flaky = new Map();
    for (let n = dice.between(2, 4); n > 0; n--)
      flaky.set(dice.below(this.tests.length), { rate: 0.01 * 30 ** dice.number(), style: dice.chance(0.75) ? 'own' : 'generic', word: newWord(dice) });
    const outages = [];
    for (let at = this.start; (at += (4 + dice.number() * 24) * DAY) < this.end;)
      outages.push({ from: at, to: at + (2 + dice.number() * 12) * HOUR, isSilent: dice.chance(0.4), word: newWord(dice) });
    return {
      name: `chip-${String.fromCharCode(97 + i)}`, title: `Chip ${String.fromCharCode(65 + i)}`, level: ['L2', 'L4', 'L2', 'L3'][i % 4],
      isGithub: i % 2 === 0, every: EVERY[i % EVERY.length], jobs: i % 6 === 2 ? 2 : 1, hasPaths: i % 4 === 3,
      slow: 0.3 + dice.number() * 2.5, flaky, outages,
    };
  }

  outage(accelerator, at) {
    return accelerator.outages.find(({ from, to }) => at >= from && at < to);
  }

  // ---- what breaks ----

  // Something that fails for a reason, always, from the change on that brings it. vague: how many of a kind say
  // nothing that would tell them from others.
  breakage(dice, { vague, spare = () => false }) {
    const kind = dice.number();
    const style = kind < vague / 2 ? 'common' : kind < vague ? 'generic' : 'own';
    const cells = new Set();
    const everywhere = dice.chance(0.1);
    const where = everywhere ? this.accelerators : Array.from({ length: dice.between(1, 2) }, () => dice.pick(this.accelerators));
    const tests = Array.from({ length: dice.between(1, 3) }, () => dice.below(this.tests.length));
    for (const accelerator of where) {
      for (const test of tests) {
        const flakies = [...accelerator.flaky.keys()];
        const chosen = dice.chance(0.25) ? dice.pick(flakies) : test;
        if (!spare(accelerator, chosen)) cells.add(`${accelerator.name}/${chosen}`);
      }
    }
    return { id: ++this.#broken, word: this.#word(dice), style, status: dice.chance(0.85) ? 'FAIL' : 'ERROR', cells, generic: dice.below(100), common: dice.below(100) };
  }

  title(dice) { return this.catalogue ? dice.pick(this.catalogue.titles) : harmless(dice); }
  #word(dice) { return this.catalogue ? dice.pick(this.catalogue.words) : newWord(dice); }

  get tip() { return this.main.at(-1); }

  // One more commit on main; it keeps what is broken there, but what it fixes.
  land({ at, author, files, title, breaks = [], fixes = [] }) {
    const index = this.main.length;
    const broken = [...this.tip.broken.filter((one) => !fixes.includes(one)), ...breaks];
    const commit = { index, sha: sha1(`${this.seed} main ${index}`), author, files, title, at, broken };
    this.main.push(commit);
    return commit;
  }

  someFiles(dice) {
    return Array.from({ length: dice.between(1, 4) }, () => dice.pick(this.files));
  }

  // Pushes that are nobody's pull request here: most break nothing, some break main until another one mends it.
  #plan(dice) {
    const pushes = [];
    for (let at = this.start; (at += -Math.log(1 - dice.number()) * 4 * HOUR) < this.end;)
      pushes.push({ at, commits: Array.from({ length: dice.between(1, 3) }, () => ({ author: dice.pick(this.authors), files: this.someFiles(dice), title: this.title(dice) })), breaks: [], fixes: [] });
    const last = pushes.length - 1;
    for (let i = dice.below(8); i < last; i += dice.between(4, 14)) {
      // A flaky test that main breaks says two things at once; of those only the words can be told apart.
      const breakage = this.breakage(dice, { vague: 0.06, spare: (accelerator, test) => accelerator.flaky.has(test) });
      const until = pushes[i].at + 4 * HOUR * 18 ** dice.number();
      const fix = pushes.findIndex(({ at }, j) => j > i && at >= until);
      pushes[i].breaks.push(breakage);
      pushes[fix < 0 ? last : fix].fixes.push(breakage);
    }
    return pushes;
  }

  // ---- pull requests ----

  #introduce(n, dice) {
    const kinds = [['harmless', 0.42], ['real', 0.34], ['lands broken', 0.08], ['stacked', 0.1], ['sibling', 0.06]];
    return Array.from({ length: n }, (_, i) => {
      let left = dice.number();
      const [kind] = kinds.find(([, share]) => (left -= share) < 0) ?? kinds[0];
      return { kind, at: this.start + HOUR + ((i + dice.number()) / n) * (this.end - this.start - 4 * HOUR) };
    });
  }

  // What a run of the tests gives. `head` is {sha, base: commit of main, breaks: [breakage], isPull}.
  // → {jobs: [{name, conclusion, tests: [{suite, name, status, message, truth, word}]}], truth of what has no test}
  run(accelerator, head, attempt, at) {
    const dice = this.dice('run', accelerator.name, head.sha, attempt, head.round ?? 0);
    const outage = this.outage(accelerator, at);
    if (outage?.isSilent) return undefined;
    const infra = !outage && dice.chance(0.03);
    const results = this.tests.map((test, i) => ({ ...test, ...this.#result({ accelerator, head, i, outage, isInfra: infra && dice.chance(0.25), dice }) }));
    const jobs = Array.from({ length: accelerator.jobs }, (_, n) => ({ name: `part ${n}`, tests: results.filter((_result, i) => i % accelerator.jobs === n) }));
    for (const job of jobs) job.conclusion = job.tests.some(({ truth }) => truth) ? 'failure' : 'success';
    return jobs;
  }

  #result({ accelerator, head, i, outage, isInfra, dice }) {
    const cell = `${accelerator.name}/${i}`;
    const own = head.breaks.find(({ cells }) => cells.has(cell));
    const inherited = head.base.broken.find(({ cells }) => cells.has(cell));
    const flaky = accelerator.flaky.get(i);
    const isFlaky = flaky && dice.chance(flaky.rate);
    const say = (cause, status, truth) => ({ status, truth, style: cause.style, word: cause.word, message: message(cause, dice) });
    if (outage) return say({ style: 'outage', word: outage.word }, 'FAIL', 'outage');
    if (isInfra) return say({ style: this.catalogue ? 'outage' : 'infra', word: newWord(dice) }, dice.chance(0.5) ? 'MISS' : 'ERROR', 'infra');
    if (own && !isAlike(own, inherited)) return say(own, own.status, 'real');
    if (inherited) return { ...say(inherited, inherited.status, own && own !== inherited ? 'both' : 'base'), breakage: inherited };
    if (isFlaky) return say(flaky, 'FAIL', 'flaky');
    return { status: dice.chance(0.02) ? 'SKIP' : 'PASS' };
  }
}
