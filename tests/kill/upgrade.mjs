// An upgrade under load loses and duplicates nothing: the story of kill.mjs, played undisturbed to one daemon with SQLite, and to daemons
// that are upgraded meanwhile, ends in the same state.
//
//   node tests/kill/upgrade.mjs [--rounds N] [--deliveries N] [--seed N]      three daemons behind nginx, upgraded one after the other to the
//                                                                             next release (lib/releases.mjs) and back, N times
//   node tests/kill/upgrade.mjs --before [--deliveries N] [--seed N]          the last daemon that does not work beside the present one, because
//                                                                             it uses the database alone, replaced by it behind nginx
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Cluster } from '../integration/lib/cluster.mjs';
import { OUTPOSTD, until } from '../integration/lib/outpost.mjs';
import { NextRelease, buildCommit, commitBeforeSchema } from '../integration/lib/releases.mjs';
import { FARM, Farm, LEASE_MS } from './farm.mjs';
import { playTwice } from './kill.mjs';
import { Stage } from './stage.mjs';
import { writeStory } from './story.mjs';

const config = { github: { writes_per_minute: 80 }, pull: { lease: `${LEASE_MS}ms` } };

// The daemons whose version is not `newest` have no seat, and the others have all of them.
const seatsAreWith = (cluster, newest) => until(async () => {
  const { nodes } = await cluster.api('status');
  return nodes.every(({ version, seats }) => version === newest || seats.length === 0) && nodes.flatMap(({ seats }) => seats).length > 0;
}, { what: `the seats are with ${newest}` });

async function thereAndBack(stage, release, rounds, { say }) {
  const cluster = stage.outpost;
  const programs = [...Array(rounds)].flatMap(() => [release.program, OUTPOSTD]);
  for (const [i, program] of programs.entries()) {
    await stage.reaches(i / programs.length);
    for (const [k, node] of cluster.nodes.entries()) {
      await cluster.replace(node, program);
      await cluster.ready([node]);
      const isMixed = program === release.program || k < cluster.nodes.length - 1; // a daemon of the next release is there
      if (isMixed) await seatsAreWith(cluster, release.version);
    }
    say(`${cluster.nodes.length} daemons have become ${program === release.program ? release.version : 'the present release'}, ${stage.delivered} webhooks accepted`);
  }
  return { 'rolling upgrade': rounds, 'way back': rounds };
}

// As the operator does it: the new daemon is started, and waits as long as the old one uses the database; then the old one stops.
async function takeOver(stage, { say }) {
  const cluster = stage.outpost;
  const [old, now] = cluster.nodes;
  await stage.reaches(0.3);
  cluster.mayFail = (node) => node === now; // systemd starts it again
  await cluster.start(now);
  await now.waitForLog(({ line }) => /another outpostd uses this database/.test(line));
  assert.ok(await cluster.isReady(old), 'the old daemon goes on');
  say(`the new daemon waits for the old one, ${stage.delivered} webhooks accepted`);
  await stage.reaches(0.5);
  old.isStarted = false;
  await old.stop();
  await cluster.ready([now]);
  cluster.mayFail = () => false;
  say(`the new daemon has taken over, ${stage.delivered} webhooks accepted`);
  // the old program does not come back
  await old.spawn();
  assert.equal((await old.exited).code, 1);
  assert.match(old.tail(5), /another outpostd uses this database/);
  await old.kill();
  return { 'upgrade of the release before': 1 };
}

// Two daemons behind nginx, of which only the first one runs, with another program.
async function prepareBefore(options, program) {
  const cluster = await Cluster.prepare({ ...options, nodes: 2 });
  const [old] = cluster.nodes;
  await old.configure({ program, config: { ...old.options.config, node: null } }); // it has no name among others
  cluster.spawn = () => cluster.start(old);
  return cluster;
}

async function upgradeTest({ seed, deliveries, prepare, upgrade, end }, say) {
  const farms = [];
  const begin = async (stage) => {
    await stage.ready();
    const farm = await Farm.open(stage.outpost, { seed });
    farms.push(farm);
    return () => farm.close();
  };
  try {
    return await playTwice({
      seed, begin, share: 0,
      write: () => writeStory({ seed, deliveries, pushShare: 0.5 }),
      open: (options) => Stage.open({ ...options, config, more: [FARM] }),
      openBroken: (options) => Stage.open({ ...options, config, more: [FARM], prepare }),
      disturb: upgrade, judgeMore: () => farms[1].problems,
    }, say);
  } finally {
    await end();
  }
}

async function main() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { rounds: text, deliveries: text, seed: text, before: { type: 'boolean' } } });
  const seed = Number(values.seed ?? process.env.SEED ?? Date.now() % 1_000_000), deliveries = Number(values.deliveries ?? 100), rounds = Number(values.rounds ?? 2);
  const started = Date.now();
  const say = (line) => console.log(`${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${line}`);
  let options;
  if (values.before) {
    const commit = await commitBeforeSchema();
    if (!commit) throw new Error('this clone lacks the history: git fetch --unshallow');
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-before-'));
    say(`building ${commit}`);
    const program = await buildCommit(commit, folder);
    options = { prepare: (of) => prepareBefore(of, program), upgrade: takeOver, end: () => fs.rm(folder, { recursive: true }) };
  } else {
    const next = await NextRelease.prepare();
    const release = await next.build();
    options = { prepare: (of) => Cluster.prepare(of), upgrade: (stage, how) => thereAndBack(stage, release, rounds, how), end: () => next.close() };
  }
  say(`seed ${seed}: ${deliveries} webhooks during ${values.before ? 'the upgrade of the last release that uses the database alone' : `${rounds} rolling upgrades and ways back`}`);
  const problems = await upgradeTest({ seed, deliveries, ...options }, say);
  for (const problem of problems) console.error(problem);
  say(problems.length === 0 ? 'no delivery, report or lease lost, no effect duplicated, every comment as in the undisturbed run' : `${problems.length} problems; SEED=${seed}`);
  process.exit(problems.length === 0 ? 0 : 1);
}

await main();
