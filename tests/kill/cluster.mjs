// Several daemons behind nginx on one database lose and duplicate nothing while processes, networks and the database fail: the story
// of kill.mjs, played undisturbed to one daemon with SQLite and disturbed to three daemons, ends in the same state.
//
//   node tests/kill/cluster.mjs [--faults N] [--deliveries N] [--seed N] [--nodes N] [--lanes N] [--share X] [--standby] [--cables]
//
// SEED (or --seed) repeats the faults; --standby: with a synchronous standby and failovers; --cables (as root): the networks that are cut
// are those of namespaces, not proxies. KEEP=1 keeps the folders.
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Cluster } from '../integration/lib/cluster.mjs';
import { noNamespaces } from '../integration/lib/network.mjs';
import { FARM, Farm, LEASE_MS } from './farm.mjs';
import { playTwice } from './kill.mjs';
import { Stage } from './stage.mjs';
import { Dice, writeStory } from './story.mjs';
import { moment } from './trouble.mjs';

const GONE_MS = 28_000; // after 25 s without a sign of life the others take a daemon's work over
const FROZEN_MS = 32_000;
const FAULTS_END_MS = 20_000; // a daemon may still end because of a fault that is over

// What GitHub permits one App, in spans of so many ms. A new publisher may follow the old one at once, so short spans have some slack.
const WRITES = [{ span: 10_000, most: 13 }, { span: 60_000, most: 65 }, { span: 3_600_000, most: 500 }];

// ---- the faults ----

const onNode = (kind, weight, act) => ({ kind, weight, act, on: 'node' });
const onDatabase = (kind, weight, act) => ({ kind, weight, act, on: 'database' });

function linkFault(where, kind, weight, begin, { isForgotten, isLong }) {
  return onNode(`${kind} ${where === 'github' ? 'GitHub' : 'the database'}`, weight, async (cluster, node, dice) => {
    for (const link of node.links[where]) begin(link);
    await sleep(isLong ? GONE_MS : dice.between(200, 4000));
    for (const link of node.links[where]) link.restore({ isForgotten });
  });
}

const cut = (link) => link.cut();
const silence = (link) => link.silence();

const FAULTS = [
  onNode('killed', 6, async (cluster, node, dice) => {
    await cluster.killNode(node);
    await sleep(dice.below(1000));
    await cluster.start(node);
  }),
  onNode('stopped for a moment', 3, (cluster, node, dice) => stopNode(cluster, node, dice.between(100, 4000))),
  onNode('stopped until it counts as gone', 1, (cluster, node) => stopNode(cluster, node, FROZEN_MS)),
  linkFault('database', 'cut off from', 3, cut, {}),
  linkFault('database', 'cut off for long from', 1, cut, { isLong: true }),
  linkFault('database', 'late answers from', 2, silence, {}),
  linkFault('database', 'half-open connections to', 2, silence, { isForgotten: true }),
  linkFault('database', 'half-open for long to', 1, silence, { isForgotten: true, isLong: true }),
  linkFault('github', 'cut off from', 2, cut, {}),
  linkFault('github', 'late answers from', 1, silence, {}),
  linkFault('github', 'half-open connections to', 1, silence, { isForgotten: true }),
  onDatabase('PostgreSQL stopped', 1, (cluster, dice) => restartDatabase(cluster, 'fast', dice.between(500, 4000))),
  onDatabase('PostgreSQL restarted', 1, (cluster) => restartDatabase(cluster, 'fast', 0)),
  onDatabase('PostgreSQL killed', 2, (cluster, dice) => restartDatabase(cluster, 'immediate', dice.below(1000))),
  { ...onDatabase('PostgreSQL failed over', 2, (cluster, dice) => cluster.database.failOver(() => sleep(dice.below(1000)))), needsStandby: true },
];

async function stopNode(cluster, node, ms) {
  while (!cluster.signal(node, 'SIGSTOP')) await sleep(50);
  node.isStopped = true;
  await sleep(ms);
  node.isStopped = false;
  cluster.signal(node, 'SIGCONT');
}

async function restartDatabase({ database }, mode, ms) {
  await database.stop(mode);
  await sleep(ms);
  await database.start();
}

// The faults of a seed: each kind once, if there are enough, and the others by their weight, in any order.
export function planFaults({ seed, count, nodes, hasStandby }) {
  const dice = new Dice(seed ^ 0xfa17);
  const possible = FAULTS.filter(({ needsStandby }) => hasStandby || !needsStandby);
  const urn = possible.flatMap((fault) => Array(fault.weight).fill(fault));
  const list = [...possible, ...Array.from({ length: Math.max(0, count - possible.length) }, () => dice.pick(urn))];
  for (let i = list.length - 1; i > 0; i--) {
    const other = dice.below(i + 1);
    [list[i], list[other]] = [list[other], list[i]];
  }
  return list.slice(0, count).map((fault) => ({ ...fault, node: dice.below(nodes), seed: dice.below(1e9) }));
}

// Causes the faults, `lanes` at a time but one for each daemon and for the database, spread over the story's deliveries. Returns their
// number by kind.
export async function causeFaults(stage, { seed, count, lanes, say }) {
  const cluster = stage.outpost;
  const faults = planFaults({ seed, count, nodes: cluster.nodes.length, hasStandby: cluster.database.hasStandby });
  const dice = new Dice(seed ^ 0xdead);
  const tally = {};
  const busy = new Map(); // what a fault is on → resolves at its end
  const reaches = new Map(cluster.nodes.map((node) => [node, 0])); // the end of the last fault that may end a daemon
  const target = (fault) => (fault.on === 'node' ? cluster.nodes[fault.node] : cluster.database);
  cluster.mayFail = (node) => Date.now() < reaches.get(node);
  let begun = 0;
  const cause = async (fault) => {
    await stage.reaches(begun++ / count);
    await moment(stage, dice);
    const touched = fault.on === 'node' ? [target(fault)] : cluster.nodes;
    for (const node of touched) reaches.set(node, Infinity);
    await fault.act(cluster, ...(fault.on === 'node' ? touched : []), new Dice(fault.seed));
    for (const node of touched) reaches.set(node, Date.now() + FAULTS_END_MS);
    tally[fault.kind] = (tally[fault.kind] ?? 0) + 1;
    const n = Object.values(tally).reduce((sum, each) => sum + each, 0);
    if (n % 20 === 0) say(`${n} faults, ${stage.delivered} webhooks accepted`);
  };
  // Takes the first fault on something that has none now.
  const lane = async () => {
    while (faults.length > 0) {
      const i = faults.findIndex((fault) => !busy.has(target(fault)));
      if (i < 0) {
        await Promise.race(busy.values());
        continue;
      }
      const [fault] = faults.splice(i, 1);
      busy.set(target(fault), cause(fault).finally(() => busy.delete(target(fault))));
      await busy.get(target(fault));
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  await cluster.ready();
  return tally;
}

// ---- the judge ----

const isContentWrite = ({ method, path }) => method !== 'GET' && /\/(comments|reactions|check-runs|issues)(\/\d+)?$/.test(path);

// The largest number of content writes of one App's installation in any span, by all daemons together.
export function* checkWrites(requests) {
  const byOwner = new Map();
  for (const one of requests.filter(isContentWrite)) {
    const owner = one.path.split('/')[2];
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), Date.parse(one.time)]);
  }
  for (const [owner, times] of byOwner)
    for (const { span, most } of WRITES)
      for (const [i, at] of times.entries()) {
        if (i < most || at - times[i - most] >= span) continue;
        yield `${most + 1} content writes to ${owner} within ${at - times[i - most]} ms, at ${new Date(at).toISOString()}`;
        break;
      }
}

// The reports that were accepted: the job has the results.
async function* checkReports(stage) {
  const names = (tests) => tests.map(({ name, status }) => `${name} ${status}`).sort().join(', ');
  for (const [who, { reports }] of Object.entries(stage.vendors))
    for (const { step, status, answer } of reports) {
      if (status !== 'completed' || answer.status !== 200 || !answer.body.job) continue;
      const { status: is, conclusion, tests } = await stage.outpost.api(`jobs/${answer.body.job}`);
      if (is !== 'completed' || conclusion !== step.conclusion || names(tests) !== names(step.tests)) yield `job ${answer.body.job} of ${who}: ${is} ${conclusion}, ${names(tests)}`;
    }
}

// ---- the test ----

// Returns the problems as sentences.
export function clusterTest({ seed, faults, deliveries, pushShare, nodes = 3, lanes = 2, hasStandby = false, links = 'proxies', ...trouble }, say = () => {}) {
  const config = { github: { writes_per_minute: 80 }, pull: { lease: `${LEASE_MS}ms` } };
  let disturbedFarm;
  const begin = async (stage, { isDisturbed }) => {
    await stage.ready();
    const farm = await Farm.open(stage.outpost, { seed, machines: Math.max(3, Math.ceil(deliveries / 150)), sleepy: isDisturbed ? 0.05 : 0 });
    if (isDisturbed) disturbedFarm = farm;
    return () => farm.close();
  };
  return playTwice({
    seed, ...trouble, begin, width: 12,
    write: () => writeStory({ seed, deliveries, pushShare }),
    open: (options) => Stage.open({ ...options, config, more: [FARM] }),
    openBroken: (options) => Stage.open({ ...options, config, more: [FARM], prepare: (of) => Cluster.prepare({ ...of, nodes, links, database: { hasStandby } }) }),
    disturb: (stage) => causeFaults(stage, { seed, count: faults, lanes, say }),
    judgeMore: async (stage) => {
      await disturbedFarm.checkLogs();
      const lost = [];
      for await (const problem of checkReports(stage)) lost.push(problem);
      say(`${disturbedFarm.leases.size} leases, ${disturbedFarm.logs.size} logs, ${Object.values(stage.vendors).reduce((sum, { reports }) => sum + reports.length, 0)} reports`);
      return [...disturbedFarm.problems, ...lost, ...checkWrites(stage.rig.requests())];
    },
  }, say);
}

async function main() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { faults: text, deliveries: text, seed: text, nodes: text, lanes: text, share: text, pushes: text, standby: { type: 'boolean' }, cables: { type: 'boolean' } } });
  const options = {
    seed: Number(values.seed ?? process.env.SEED ?? Date.now() % 1_000_000), faults: Number(values.faults ?? 20), deliveries: Number(values.deliveries ?? 60),
    nodes: Number(values.nodes ?? 3), lanes: Number(values.lanes ?? 2), share: Number(values.share ?? 0.3), pushShare: Number(values.pushes ?? 0.1), hasStandby: values.standby ?? false, links: values.cables ? 'cables' : 'proxies',
  };
  const why = values.cables && noNamespaces();
  if (why) { console.error(why); process.exit(1); }
  const started = Date.now();
  const say = (line) => console.log(`${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${line}`);
  say(`seed ${options.seed}: ${options.faults} faults in ${options.deliveries} webhooks to ${options.nodes} daemons`);
  const problems = await clusterTest(options, say);
  for (const problem of problems) console.error(problem);
  say(problems.length === 0 ? 'no delivery, report or lease lost, no effect duplicated, every comment as in the undisturbed run' : `${problems.length} problems; SEED=${options.seed}`);
  process.exit(problems.length === 0 ? 0 : 1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
