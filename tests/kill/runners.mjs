// The promises of pull runners: if either side is killed, or stopped for longer than a lease, at any moment, each job still runs
// once unless its lease really expired, and each job's report and log exist once and completely.
//
//   node tests/kill/runners.mjs [--kills N] [--jobs N] [--machines N] [--seed N]
//
// SEED (or --seed) repeats a run as far as timing allows. KEEP=1 keeps the folders.
import fs from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { random } from '../github/faults.mjs';
import { Outpost } from '../integration/lib/outpost.mjs';
import { Machine } from './machine.mjs';
import { ACCELERATOR, LEASE_MS, deliver, headsOf, jobsDone, jobsLeft, judge, machineConfig, serverOptions } from './runner_story.mjs';

// Kills one side or the other `kills` times; `tally` counts the kinds.
async function trouble({ outpost, machines, kills, rand, say }) {
  const tally = { runner: 0, server: 0, 'runner stopped for longer than a lease': 0 };
  for (let i = 0; i < kills; i++) {
    await sleep(rand() * 250);
    const dice = rand();
    const machine = machines[Math.floor(rand() * machines.length)];
    if (dice < 0.28) {
      tally.server++;
      await outpost.kill();
      await sleep(rand() * 300);
      await outpost.spawn();
    } else if (dice < 0.97) {
      tally.runner++;
      await machine.kill();
      await sleep(rand() * 400);
      await machine.start();
    } else {
      tally['runner stopped for longer than a lease']++;
      machine.child.kill('SIGSTOP');
      await sleep(LEASE_MS * 1.3);
      machine.child.kill('SIGCONT');
    }
    if ((i + 1) % 20 === 0) say(`killed ${i + 1} times`);
  }
  return tally;
}

// Returns the problems as sentences.
export async function killRunners({ seed, kills, jobs, machines: n }, say = () => {}) {
  const rand = random(seed);
  const outpost = await Outpost.start(serverOptions());
  const runsFile = path.join(outpost.dir, 'runs');
  const machines = [];
  try {
    await fs.writeFile(runsFile, '');
    for (let i = 0; i < n; i++)
      machines.push(await Machine.make({ outpost, name: `machine-${i}`, accelerator: ACCELERATOR.name, dir: path.join(outpost.dir, `machine-${i}`), config: machineConfig(runsFile) }));
    for (const machine of machines) await machine.start();
    const heads = headsOf(seed, jobs);
    const pushed = (async () => { for (const head of heads) await deliver(outpost, head); })();
    const troubled = trouble({ outpost, machines, kills, rand, say });
    await pushed;
    const tally = await troubled;
    say(`${Object.entries(tally).map(([what, k]) => `${k} × ${what}`).join(', ')} killed; ${await jobsLeft(outpost)} jobs to go`);
    await jobsDone(outpost).catch((error) => say(error.message));
    const { problems, handovers } = await judge(outpost, heads, runsFile);
    for (const machine of machines) {
      const { code, signal } = await machine.stop();
      if (code !== 0) problems.push(`${machine.name} ended with ${signal ?? code} on SIGTERM`);
    }
    say(`${heads.length} jobs, ${handovers} leases expired, ${machines.reduce((sum, { starts }) => sum + starts, 0)} starts of runners`);
    if (problems.length > 0) for (const machine of machines) say(`${machine.name}:\n${(await machine.log()).split('\n').slice(-30).join('\n')}`);
    return problems;
  } finally {
    for (const machine of machines) await machine.kill().catch(() => {});
    await outpost.close();
  }
}

async function main() {
  const { values } = parseArgs({ options: { kills: { type: 'string' }, jobs: { type: 'string' }, machines: { type: 'string' }, seed: { type: 'string' } } });
  const options = {
    seed: Number(values.seed ?? process.env.SEED ?? Date.now() % 1_000_000), kills: Number(values.kills ?? 200),
    jobs: Number(values.jobs ?? 300), machines: Number(values.machines ?? 4),
  };
  const started = Date.now();
  const say = (text) => console.log(`${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`);
  say(`seed ${options.seed}: ${options.kills} kills, ${options.jobs} jobs on ${options.machines} machines`);
  const problems = await killRunners(options, say);
  for (const problem of problems) console.error(problem);
  say(problems.length === 0 ? 'each job ran once, and once more for each expired lease; each report and log exists once' : `${problems.length} problems; SEED=${options.seed}`);
  process.exit(problems.length === 0 ? 0 : 1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
