// From experiments to the rows of "Run again". Pure: tests/web/experiments.test.mjs.
import { keyOf } from './change_rows.js';
import { count } from './format.js';
import { STATUS } from './status_words.js';

// The mark of an experiment whose test has no result.
const WITHOUT = {
  planned: { symbol: '…', word: 'waits', tone: 'running' },
  started: STATUS.running,
  later: { symbol: '…', word: 'waits for a good machine', tone: 'running' },
  done: STATUS.MISS,
  expired: { symbol: '?', word: 'no result in time', tone: 'miss' },
  cancelled: { symbol: '–', word: 'cancelled', tone: 'skip' },
};

const isLater = ({ state, not_before_at: at }) => state === 'planned' && Boolean(at);

function markOf(experiment, { status }) {
  const { state, reason } = experiment;
  if (state === 'void') return { symbol: '–', word: `does not count${reason ? `: ${reason}` : ''}`, tone: 'skip' };
  return status ? STATUS[status] : WITHOUT[isLater(experiment) ? 'later' : state] ?? STATUS.MISS;
}

// [{key, accelerator, cause, suite, test, dtype, head: [run], base: [run]}] with run = {id, round, of: its mark, job,
// isPending, isLater: it waits for a good machine, counts: it has a result of the test}; accelerators in the given order, then by cause and name;
// the first run comes first.
export function experimentRows(accelerators) {
  const rows = new Map();
  for (const { name, experiments } of accelerators) {
    for (const e of [...experiments].reverse()) {
      for (const result of e.results) {
        const key = JSON.stringify([name, e.cause, keyOf(result)]);
        if (!rows.has(key)) rows.set(key, { key, accelerator: name, cause: e.cause, suite: result.suite, test: result.test, dtype: result.dtype, head: [], base: [] });
        rows.get(key)[e.side].push({
          id: e.id, round: e.round, of: markOf(e, result), job: result.job ?? e.job, isPending: e.state === 'planned' || e.state === 'started', isLater: isLater(e), counts: e.state === 'done' && result.status !== null });
      }
    }
  }
  const place = new Map(accelerators.map(({ name }, i) => [name, i]));
  const text = (row) => `${row.cause} ${row.suite}/${row.test}/${row.dtype ?? ''}`;
  return [...rows.values()].sort((a, b) => place.get(a.accelerator) - place.get(b.accelerator) || (text(a) < text(b) ? -1 : 1));
}

// ", 2 running, 1 waits for a good machine" for the rows that are still open, or "".
export function openOf(rows) {
  const runsOf = rows.map(({ head, base }) => [...head, ...base].filter(({ isPending }) => isPending)).filter(({ length }) => length > 0);
  const later = runsOf.filter((runs) => runs.every(({ isLater: isWaiting }) => isWaiting)).length;
  const running = runsOf.length - later;
  return `${running > 0 ? `, ${count(running)} running` : ''}${later > 0 ? `, ${count(later)} ${later === 1 ? 'waits' : 'wait'} for a good machine` : ''}`;
}

// "3 of 10 passed" if several runs ended with a result, or "".
export function passedOf(runs) {
  const ended = runs.filter(({ counts }) => counts);
  return ended.length > 1 ? `${ended.filter(({ of }) => of === STATUS.PASS || of === STATUS.DONE).length} of ${ended.length} passed` : '';
}
