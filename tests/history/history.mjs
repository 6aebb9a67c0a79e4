// Ten histories with known truth in both modes, several at a time, and one combined matrix: make history.
//
//   node tests/history/history.mjs [--seeds 10] [--first 1] [--at-once 2×CORES] [--days 20] [--pulls 300] [--accelerators 4] [--tests 24] [--keep FOLDER]
//
// --keep writes each finished history to FOLDER/SEED-MODE.json, with the story of each missed cell.
// Exits with 1 if all seeds of a mode together miss a target, or if any seed excused a guilty cell.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { matrixText, targets, targetsText } from './judge.mjs';
import { MODES } from './simulate.mjs';

const SIMULATE = path.join(path.dirname(fileURLToPath(import.meta.url)), 'simulate.mjs');

async function play(seed, mode, size) {
  const child = spawn(process.execPath, [SIMULATE, '--json', '--seed', String(seed), '--mode', mode, ...size], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [out, [code]] = await Promise.all([readAll(child.stdout), once(child, 'exit')]);
  if (code !== 0) throw new Error(`seed ${seed}, ${mode} experiments: ended with ${code}`);
  return JSON.parse(out);
}

const option = (value) => ({ type: 'string', default: String(value) });
const { values } = parseArgs({ options: { seeds: option(10), first: option(1), 'at-once': option(2 * os.availableParallelism()), days: option(20), pulls: option(300), accelerators: option(4), tests: option(24), keep: { type: 'string' } } });
const size = ['days', 'pulls', 'accelerators', 'tests'].flatMap((name) => [`--${name}`, values[name]]);
const left = Array.from({ length: Number(values.seeds) }, (_, i) => Number(values.first) + i).flatMap((seed) => MODES.map((mode) => ({ seed, mode })));
const all = left.length, done = [], failed = [];
const began = performance.now();

async function player() {
  for (let next; (next = left.shift());) {
    const { seed, mode } = next;
    try {
      const history = await play(seed, mode, size);
      done.push(history);
      if (values.keep) await writeFile(path.join(values.keep, `${seed}-${mode}.json`), JSON.stringify(history));
      console.log(`${done.length} of ${all}: seed ${seed}, ${mode} experiments, ${history.wall.toFixed(0)} s: ${history.excused} of ${history.nGuilty} guilty cells excused, ${history.everExcused} in any version; ${history.extra.experiments} experiments`);
    } catch (error) {
      failed.push(error.message);
      console.log(`FAILED ${error.message}`);
    }
  }
}

await Promise.all(Array.from({ length: Number(values['at-once']) }, player));
let isGood = failed.length === 0;
for (const mode of MODES) {
  const list = done.filter((one) => one.mode === mode).sort((a, b) => a.seed - b.seed);
  const found = targets(list, mode);
  console.log(`\n${mode} experiments, ${list.length} seeds × ${values.pulls} pull requests in ${values.days} days, ${values.accelerators} accelerators, ${values.tests} tests\n${matrixText(list)}\n\n${targetsText(found)}`);
  for (const { seed, stories, problems } of list) {
    for (const line of [...stories.excused, ...problems].slice(0, 10)) console.log(`WRONG seed ${seed}: ${line}`);
    isGood &&= problems.length === 0;
  }
  isGood &&= found.every(({ holds }) => holds);
}
console.log(`\n${((performance.now() - began) / 60_000).toFixed(1)} minutes; one of them again: make history SEED=n MODE=with|without`);
process.exitCode = isGood ? 0 : 1;
