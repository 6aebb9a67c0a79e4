// From verdicts to the rows of the table. Pure: tests/web/change.test.mjs.
import { isRed } from './status_words.js';

// How urgent a cell is, by the server's group: failures that the change may have caused come first.
const URGENCY = { new: 0, unclassified: 1, missing: 2, base: 3, known: 4, flaky: 5, not_counted: 6 };

export function urgency(cell) {
  return cell.group ? URGENCY[cell.group] : cell.status === 'SKIP' ? 9 : 8;
}

// Failures that the change may have caused, which the reader looks at first.
export const isToLookAt = ({ group }) => group === 'new' || group === 'unclassified';

export const keyOf = (v) => JSON.stringify([v.suite, v.test, v.dtype]);

// Turns pages of verdicts into rows; a later page replaces the verdicts of an earlier one:
// [{key, suite, test, dtype, cells: Map accelerator → verdict, urgency}], worst first, then by name.
// A verdict without a job means that the accelerator did not report; it is not a row.
export function rowsOf(verdicts) {
  const rows = new Map();
  for (const v of verdicts) {
    if (v.status === 'MISS' && v.job === null) continue;
    const key = keyOf(v);
    if (!rows.has(key)) rows.set(key, { key, suite: v.suite, test: v.test, dtype: v.dtype, cells: new Map(), urgency: 9 });
    const row = rows.get(key);
    row.cells.set(v.accelerator, v);
  }
  for (const row of rows.values()) for (const cell of row.cells.values()) row.urgency = Math.min(row.urgency, urgency(cell));
  const text = (row) => `${row.suite}/${row.test}/${row.dtype ?? ''}`;
  return [...rows.values()].map((row) => ({ row, name: text(row) })).sort((a, b) => a.row.urgency - b.row.urgency || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)).map(({ row }) => row);
}

// filter: {q, status, group, accelerator}; an empty filter keeps every row. A row stays if one of its
// cells fits the whole filter. status "red": FAIL, ERROR or MISS.
export function filterRows(rows, { q = '', status = '', group = '', accelerator = '' }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const cellFits = (cell) => (!status || (status === 'red' ? isRed(cell.status) : cell.status === status)) && (!group || cell.group === group);
  return rows.filter((row) => {
    const cells = accelerator ? [row.cells.get(accelerator)].filter(Boolean) : [...row.cells.values()];
    if (!cells.some(cellFits)) return false;
    if (words.length === 0) return true;
    const name = `${row.suite}/${row.test} ${row.dtype ?? ''}`.toLowerCase();
    return words.every((word) => name.includes(word) || cells.some((cell) => cellFits(cell) && (cell.message ?? '').toLowerCase().includes(word)));
  });
}

// The number of cells with each value, for the filters: {status: {FAIL: n}, group: {new: n}}
export function tallyCells(rows) {
  const n = { status: {}, group: {} };
  for (const row of rows) {
    for (const { status, group } of row.cells.values()) {
      n.status[status] = (n.status[status] ?? 0) + 1;
      if (group) n.group[group] = (n.group[group] ?? 0) + 1;
    }
  }
  return n;
}

// The message without its numbers, addresses and SHAs, which differ from run to run.
const wordsOf = (message) => message.replace(/\b(0x)?[0-9a-f]{7,}\b|\d+/gi, '#');

// Groups cells that failed with the same message and the same cause, at the place of the first one:
// [{key, cells}]. A cell without a message is a group of its own.
export function groupAlike(cells) {
  const groups = new Map();
  for (const cell of cells) {
    const key = JSON.stringify(cell.message ? [cell.status, cell.group, wordsOf(cell.message)] : [cell.group, cell.accelerator, keyOf(cell)]);
    if (!groups.has(key)) groups.set(key, { key, cells: [] });
    groups.get(key).cells.push(cell);
  }
  return [...groups.values()];
}

// The accelerators in the order of the summary, the worst first.
export function columnsOf(body) {
  const place = new Map((body.summary.accelerators ?? []).map(({ name }, i) => [name, i]));
  return body.accelerators.map((a, i) => ({ a, at: place.get(a.name) ?? 1000 + i })).sort((x, y) => x.at - y.at).map(({ a }) => a);
}

export const OUTCOMES = {
  new: { symbol: '✗', word: 'new failures', tone: 'fail' },
  unclassified: { symbol: '✗', word: 'not classified', tone: 'fail' },
  missing: { symbol: '?', word: 'no report', tone: 'miss' },
  lacking: { symbol: '?', word: 'required results are missing', tone: 'miss' },
  running: { symbol: '…', word: 'at work', tone: 'running' },
  waiting: { symbol: '…', word: 'waits for a machine', tone: 'running' },
  held: { symbol: '‖', word: 'held', tone: 'miss' },
  merged_only: { symbol: '–', word: 'runs after the merge', tone: 'skip' },
  cancelled: { symbol: '–', word: 'cancelled', tone: 'skip' },
  unrelated: { symbol: '✓', word: 'nothing new is red', tone: 'pass' },
  passed: { symbol: '✓', word: 'passed', tone: 'pass' },
  nothing: { symbol: '•', word: 'finished without a test that passed or failed', tone: 'done' },
  not_counted: { symbol: '!', word: 'unhealthy, not counted', tone: 'error' },
};

export const UNREPORTED = { symbol: '·', word: 'not reported', tone: 'skip' };

// Why an accelerator has no cell for a test: {symbol, word, tone}. An accelerator that does not count may be running, too.
export function whyNothing(a, outcome) {
  const { running, waiting, missing, held } = OUTCOMES;
  const found = { running, waiting, missing, held }[outcome];
  if (found) return found;
  return a.jobs.some(({ status }) => status !== 'completed') ? running : UNREPORTED;
}

export const VERDICTS = {
  pass: { symbol: '✓', word: 'pass', tone: 'pass' },
  fail: { symbol: '✗', word: 'fail', tone: 'fail' },
  pending: { symbol: '…', word: 'pending', tone: 'running' },
  unknown: { symbol: '?', word: 'unknown', tone: 'miss' },
};
