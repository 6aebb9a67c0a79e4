// From experiments to the rows of "Run again". Pure: tests/web/experiments.test.mjs.
import { keyOf } from './change_rows.js';
import { STATUS } from './status_words.js';

// What an experiment came to where its test has no result.
const WITHOUT = {
  planned: { symbol: '…', word: 'waits', tone: 'running' },
  started: STATUS.running,
  done: STATUS.MISS,
  expired: { symbol: '?', word: 'no result in time', tone: 'miss' },
  cancelled: { symbol: '–', word: 'cancelled', tone: 'skip' },
};

function markOf({ state, reason }, { status }) {
  if (state === 'void') return { symbol: '–', word: `does not count${reason ? `: ${reason}` : ''}`, tone: 'skip' };
  return status ? STATUS[status] : WITHOUT[state] ?? STATUS.MISS;
}

// [{key, accelerator, cause, suite, test, dtype, head: [run], base: [run]}] with run = {id, round, of: its mark, job,
// isPending, counts: it says how the test ended}; accelerators in the order given, then by cause and name; the runs
// from the first on.
export function experimentRows(accelerators) {
  const rows = new Map();
  for (const { name, experiments } of accelerators) {
    for (const e of [...experiments].reverse()) {
      for (const result of e.results) {
        const key = JSON.stringify([name, e.cause, keyOf(result)]);
        if (!rows.has(key)) rows.set(key, { key, accelerator: name, cause: e.cause, suite: result.suite, test: result.test, dtype: result.dtype, head: [], base: [] });
        rows.get(key)[e.side].push({
          id: e.id, round: e.round, of: markOf(e, result), job: result.job ?? e.job, isPending: e.state === 'planned' || e.state === 'started', counts: e.state === 'done' && result.status !== null });
      }
    }
  }
  const place = new Map(accelerators.map(({ name }, i) => [name, i]));
  const text = (row) => `${row.cause} ${row.suite}/${row.test}/${row.dtype ?? ''}`;
  return [...rows.values()].sort((a, b) => place.get(a.accelerator) - place.get(b.accelerator) || (text(a) < text(b) ? -1 : 1));
}

// "3 of 10 passed", of several runs that have ended with a result; else nothing.
export function passedOf(runs) {
  const ended = runs.filter(({ counts }) => counts);
  return ended.length > 1 ? `${ended.filter(({ of }) => of === STATUS.PASS || of === STATUS.DONE).length} of ${ended.length} passed` : '';
}
