// Plays the same histories on SQLite and on PostgreSQL, and compares all rows, every comment and every verdict.
//
//   node tests/history/engines.mjs [--seeds 10] [--first 1] [--mode with|without] [--days 8] [--pulls 100] [--accelerators 3] [--tests 24]
//       [--keep FOLDER] [--engines sqlite,sqlite]
//
// Prints the first differences and exits with 1 if there are any. On the server of OUTPOST_TEST_DATABASE, or on a temporary one. OUTPOSTD
// and OUTPOSTCTL name the programs. --keep writes the verdicts of each seed to FOLDER/SEED-MODE.json. --engines sqlite,sqlite shows that a
// history repeats.
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { needPostgres } from '../postgres.mjs';
import { MODES, simulate } from './simulate.mjs';
import { Names, comparable, readTables } from './tables.mjs';

const ENGINES = ['sqlite', 'postgresql'];
const LINES_SHOWN = 6;
const MOST_SHOWN = 1000; // characters of a row or a text
const AGE = / · updated .* UTC|\d+ (?:minutes?|hours?|days?) old/g; // the parts of a comment that follow from the wall clock

// Texts that differ from the text of the same pull request before them. Between two equal ones there was another one while the daemon worked.
function withoutRepetitions(list) {
  const last = new Map();
  return list.filter(({ number, text }) => {
    const isNew = last.get(number) !== text;
    last.set(number, text);
    return isNew;
  }).map(({ text }) => text);
}

async function playOn(engine, seed, mode, size) {
  const { verdicts, problems, wall, warnings, extra, tables, comments, written, names } = await simulate({ seed, mode, ...size, engine, isExact: true, atEnd: async ({ outpost, play, github }) => {
    await outpost.stop();
    const rows = await readTables(outpost), named = new Names(rows);
    const textsOf = (list) => list.map(({ number, body }) => ({ number, text: `#${number}\n${named.ofText(body).replace(AGE, '…')}` }));
    return { names: named, tables: comparable(rows, named), comments: withoutRepetitions(textsOf(play.record.settled)), written: textsOf(github.bodies) };
  } });
  const nUnchanged = written.length - withoutRepetitions(written).length;
  if (nUnchanged) problems.push(`${nUnchanged} comments were written again without a change`);
  const textOf = ({ verdict, truth, reason, evidence }) => `${verdict} of ${truth}: ${reason}${evidence ? ` (${names.ofText(evidence)})` : ''}`;
  const parts = { ...tables, verdicts: verdicts.map(({ key, verdicts: list }) => `${key}\n${list.map(textOf).join('\n')}`), comments };
  return { wall, verdicts, warnings, parts, problems, rows: Object.values(tables).flat().length, comments: comments.length, nExperiments: extra.experiments };
}

// The texts that only one of two lists has.
function differences(a, b) {
  const left = new Map();
  for (const text of b) left.set(text, (left.get(text) ?? 0) + 1);
  const onlyA = a.filter((text) => {
    const n = left.get(text) ?? 0;
    if (n > 0) left.set(text, n - 1);
    return n === 0;
  });
  return [onlyA, [...left].flatMap(([text, n]) => Array.from({ length: n }, () => text))];
}

const partsOf = (text) => text.split(/\n|(?<=[,}])(?=")/);

// Of the other engine's texts the one that resembles this text most, and the lines in which they differ.
function explain(text, others) {
  const own = partsOf(text);
  const found = others.map((other) => differences(own, partsOf(other))).sort((a, b) => a.flat().length - b.flat().length)[0] ?? [own, []];
  return found.map((lines) => lines.slice(0, LINES_SHOWN).join(' '));
}

// Lines about the parts that differ, with the first difference of each.
function compare([a, b], engines) {
  return Object.keys(a.parts).flatMap((part) => {
    const only = differences(a.parts[part], b.parts[part]);
    if (only.flat().length === 0) return [];
    const i = only[0].length > 0 ? 0 : 1, text = only[i][0];
    const [own, other] = explain(text, (i ? a : b).parts[part]);
    return [`${part}: ${only.map((list, k) => `${list.length} only on ${engines[k]}`).join(', ')}`, `  ${text.replaceAll('\n', ' ').slice(0, MOST_SHOWN)}`, `  ${engines[i]}: ${own}`, `  ${engines[1 - i]}: ${other}`];
  });
}

// Plays one history on each engine, on the server of OUTPOST_TEST_DATABASE. → {runs, lines}: the problems of the runs and their differences
export async function playBoth({ seed, mode, size, engines = ENGINES }) {
  const runs = [];
  for (const engine of engines) runs.push({ engine, ...await playOn(engine, seed, mode, size) });
  return { runs, lines: [...runs.flatMap(({ engine, problems }) => problems.map((problem) => `on ${engine}: ${problem}`)), ...compare(runs, engines)] };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (value) => ({ type: 'string', default: String(value) });
  const { values } = parseArgs({ options: {
    seeds: option(10), first: option(1), mode: { type: 'string', multiple: true, default: MODES }, days: option(8), pulls: option(100), accelerators: option(3), tests: option(24),
    engines: option(ENGINES.join()), keep: { type: 'string' },
  } });
  const size = Object.fromEntries(['days', 'pulls', 'accelerators', 'tests'].map((name) => [name, Number(values[name])]));
  const seeds = Array.from({ length: Number(values.seeds) }, (_, i) => Number(values.first) + i);
  needPostgres();
  for (const { seed, mode } of values.mode.flatMap((one) => seeds.map((seed) => ({ seed, mode: one })))) {
    const { runs, lines } = await playBoth({ seed, mode, size, engines: values.engines.split(',') });
    if (values.keep) await writeFile(path.join(values.keep, `${seed}-${mode}.json`), JSON.stringify(runs.map(({ engine, verdicts }) => ({ engine, verdicts }))));
    const { rows, verdicts, comments } = runs[0];
    console.log(`seed ${seed}, ${mode} experiments: ${lines.length ? 'WRONG' : 'equal'}: ${rows} rows, ${verdicts.length} red cells, ${comments} texts of comments; ${runs.map(({ engine, wall }) => `${engine} ${wall.toFixed(0)} s`).join(', ')}`);
    for (const line of lines) console.log(`  ${line}`);
    if (lines.length) for (const { engine, warnings } of runs) console.log(`  warnings in the log of ${engine}: ${JSON.stringify(warnings)}`);
    if (lines.length) process.exitCode = 1;
  }
}
