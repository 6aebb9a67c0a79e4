// The daemon is killed while experiments run: none is lost, duplicated under another id or stuck, and the comments end as in an
// undisturbed run. Each pull request has a flaky test, one that is broken on its merge base and one that it breaks itself, at a
// vendor's own CI and on a machine that claims work.
//
//   node tests/kill/experiments.mjs [--kills N] [--pulls N] [--seed N] [--share X]
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fakeSha, pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startWebhookVendor } from '../github/vendors.mjs';
import { Outpost, until } from '../integration/lib/outpost.mjs';
import { Puller } from '../integration/lib/puller.mjs';
import { plain } from './judge.mjs';
import { Dice } from './story.mjs';
import { breakGithub } from './trouble.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const FIRST = 100;
const PATIENCE_MS = 300_000;
const MOST = 4; // experiments of a head: two rounds, each a run of the head and one of the merge base
const KINDS = ['flaky', 'broken', 'guilty'];

// True if a test of this name fails, in a first run (side undefined) or in an experiment.
const fails = (name, side) => (name.startsWith('flaky') ? !side : name.startsWith('broken') ? true : side !== 'base');

// The tests of one pull request or of an experiment.
function testsOf(number, experiment) {
  const names = experiment ? experiment.tests.map((one) => one.replace(/^model\//, '')) : KINDS.map((kind) => `${kind}_${number}`);
  return names.map((name) => ({
    suite: 'model', name, status: fails(name, experiment?.side) ? 'FAIL' : 'PASS', ...(fails(name, experiment?.side) && { message: `expected 1.0 in layer ${wordOf(name)}, got 0.7` }),
  }));
}
// A message of its own, because one message in tests of three changes at once is an outage, whose reruns wait for hours.
const wordOf = (name) => name.replace(/\d/g, (digit) => 'abcdefghij'[digit]);
const conclusionOf = (tests) => (tests.some(({ status }) => status === 'FAIL') ? 'failure' : 'success');

class Stage {
  problems = [];
  leases = []; // {dispatch, experiment}

  static async open({ seed, pulls }) {
    const self = Object.assign(new Stage(), { seed, numbers: Array.from({ length: pulls }, (_, i) => FIRST + i) });
    self.rig = await startRig();
    self.lab = await startWebhookVendor({
      secret: SECRET, once: true, tries: 200, script: ({ payload, outpost: { experiment } }) => {
        const tests = testsOf(payload.number, experiment);
        return [{ workflow: 'lab', job: 'suite', conclusion: conclusionOf(tests), tests, hold: 100 }];
      },
    });
    self.outpost = await Outpost.start({
      rig: self.rig, secrets: { lab: { hook: SECRET } },
      accelerators: [
        { name: 'lab', title: 'Lab', level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'lab', reruns: 'tests', webhook: { url: self.lab.url, secret: 'hook' } }] },
        { name: 'farm', title: 'Farm', level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'farm', reruns: 'whole', pull: { labels: [], max_parallel: 2 } }] },
      ],
    });
    self.machine = await Puller.add(self.outpost, 'farm-1', 'farm');
    return self;
  }

  // The machine works until the stage closes. A claim whose answer is lost is repeated with the same id.
  async work() {
    for (let id; !this.isClosing;) {
      try {
        id ??= crypto.randomUUID();
        const answer = await this.machine.claim({ id, wait: 2 });
        if (answer.status !== 200) continue;
        const lease = answer.json;
        this.leases.push({ dispatch: lease.dispatch_id, experiment: lease.experiment?.id });
        const tests = testsOf(lease.change.number, lease.experiment);
        await sleep(100);
        for (let answered; ![200, 404, 409].includes(answered) && !this.isClosing;)
          answered = await this.machine.finish(lease, { conclusion: conclusionOf(tests), tests }).then(({ status }) => status, () => sleep(50));
        id = undefined;
      } catch {
        await sleep(50);
      }
    }
  }

  async run() {
    for (const number of this.numbers) {
      const pull = this.rig.openPull(UPSTREAM, { number, author: `author-${number}`, headSha: fakeSha(`experiments head ${number}`), baseSha: fakeSha(`experiments base ${number}`) });
      await this.rig.deliver('pull_request', pullRequestOf('opened', pull)).catch(() => {});
    }
    // Redelivers the webhooks that failed while the daemon was down, as an operator does.
    for (const number of this.numbers)
      await until(async () => {
        if ((await this.outpost.get(`/api/v1/pulls/${number}`)).status === 200) return true;
        await this.rig.deliver('pull_request', pullRequestOf('opened', this.rig.pull(UPSTREAM, number)));
        return false;
      }, { timeout: PATIENCE_MS, interval: 300, what: `#${number} is known` });
  }

  comment(number) {
    return plain(this.rig.comments(UPSTREAM, number).find(({ author }) => author === this.rig.bot)?.body ?? '', this);
  }

  async experiments(number) {
    return (await this.outpost.api(`pulls/${number}`)).accelerators.flatMap(({ name, experiments }) => experiments.map((one) => ({ accelerator: name, ...one })));
  }

  // The reasons why the story is not over yet.
  async left() {
    const list = [];
    for (const number of this.numbers) {
      const { accelerators } = await this.outpost.api(`pulls/${number}`);
      for (const { name, dispatches, experiments } of accelerators) {
        if (dispatches[0]?.state !== 'done') list.push(`#${number} ${name} is ${dispatches[0]?.state}`);
        for (const one of experiments) if (['planned', 'started'].includes(one.state)) list.push(`#${number} ${name}: experiment ${one.id} is ${one.state}`);
        if (experiments.length === 0) list.push(`#${number} ${name} has no experiments`);
      }
      if (!this.comment(number) || /re-running/.test(this.comment(number))) list.push(`the comment of #${number} is not final`);
    }
    return list;
  }

  async settle(isDone) {
    let why = ['nothing was looked at'];
    await until(async () => {
      why = await this.left();
      return why.length === 0 && isDone();
    }, { timeout: PATIENCE_MS, interval: 200, what: 'all experiments are over' }).catch((error) => this.problems.push(`${error.message}: ${why.join('; ')}`));
  }

  // Each experiment has one dispatch, even if its request was sent several times.
  judge() {
    const seen = new Map(); // experiment → dispatches
    const note = (id, dispatch) => seen.set(id, (seen.get(id) ?? new Set()).add(dispatch));
    for (const { event, body } of this.lab.events) if (event === 'experiment') note(body.outpost.experiment.id, body.outpost.dispatch_id);
    for (const { experiment, dispatch } of this.leases) if (experiment) note(experiment, dispatch);
    for (const [id, dispatches] of seen) if (dispatches.size !== 1) this.problems.push(`experiment ${id} has ${dispatches.size} dispatches`);
  }

  async judgeRounds() {
    for (const number of this.numbers) {
      const count = new Map();
      for (const { accelerator } of await this.experiments(number)) count.set(accelerator, (count.get(accelerator) ?? 0) + 1);
      for (const [what, n] of count) if (n > MOST) this.problems.push(`#${number} ${what}: ${n} experiments`);
    }
  }

  async close() {
    this.isClosing = true;
    await this.outpost.close().finally(() => Promise.all([this.working, this.lab.stop(), this.rig.close()]));
  }
}

// kills 0: undisturbed. Returns the problems and the comments.
async function play({ seed, pulls, kills, share }, expected, say) {
  const stage = await Stage.open({ seed, pulls });
  try {
    const dice = new Dice(seed);
    if (kills > 0) breakGithub(stage.rig, seed, { share });
    stage.working = stage.work();
    const ended = stage.run();
    ended.catch(() => {});
    for (let i = 0; i < kills; i++) {
      await sleep(dice.between(50, 1200));
      await stage.outpost.restart({ hard: true });
    }
    await ended;
    stage.rig.clearFaults();
    await stage.settle(() => !expected || stage.numbers.every((number) => stage.comment(number) === expected.get(number)));
    stage.judge();
    await stage.judgeRounds();
    for (const number of expected ? stage.numbers : [])
      if (stage.comment(number) !== expected.get(number)) stage.problems.push(`#${number} has the comment\n${stage.comment(number)}\nand, undisturbed,\n${expected.get(number)}`);
    say(`${kills} kills: ${stage.lab.events.filter(({ event }) => event === 'experiment').length} requests and ${stage.leases.filter(({ experiment }) => experiment).length} leases of experiments`);
    return { problems: stage.problems, comments: new Map(stage.numbers.map((number) => [number, stage.comment(number)])) };
  } finally {
    await stage.close();
  }
}

// Returns the problems as sentences.
export async function killExperiments({ seed, kills, pulls, share = 0.5 }, say = () => {}) {
  const quiet = await play({ seed, pulls, kills: 0 }, undefined, say);
  if (quiet.problems.length > 0) return quiet.problems.map((what) => `undisturbed: ${what}`);
  return (await play({ seed, pulls, kills, share }, quiet.comments, say)).problems;
}

async function main() {
  const { values } = parseArgs({ options: { kills: { type: 'string' }, pulls: { type: 'string' }, seed: { type: 'string' }, share: { type: 'string' } } });
  const seed = Number(values.seed ?? process.env.SEED ?? Date.now() % 1_000_000);
  const problems = await killExperiments({ seed, kills: Number(values.kills ?? 100), pulls: Number(values.pulls ?? 20), share: Number(values.share ?? 0.5) }, console.log);
  for (const problem of problems) console.error(problem);
  console.log(problems.length === 0 ? 'no experiment lost, doubled or stuck' : `${problems.length} problems; SEED=${seed}`);
  process.exit(problems.length === 0 ? 0 : 1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
