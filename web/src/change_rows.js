// From verdicts to the rows of the table. Pure: tests/web/change.test.mjs.
import { isRed } from './status_words.js';

// How urgent a cell is, by what the server counts it as: what the change broke comes first.
const URGENCY = { new: 0, unclassified: 1, missing: 2, base: 3, known: 4, flaky: 5, not_counted: 6 };

export function urgency(cell) {
  return cell.group ? URGENCY[cell.group] : cell.status === 'SKIP' ? 9 : 8;
}

// What may be the change's, and so is to be looked at first.
export const isToLookAt = ({ group }) => group === 'new' || group === 'unclassified';

export const keyOf = (v) => JSON.stringify([v.suite, v.test, v.dtype]);

// Pages of verdicts, what was read later replacing what was read before, as rows:
// [{key, suite, test, dtype, cells: Map accelerator → verdict, urgency}], worst first, then by name.
// What no job stands behind is an accelerator's silence and no row.
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

// filter: {q, status, group, accelerator}; an empty one lets everything through. A row stays if one of its
// cells fits all of it. status "red": FAIL, ERROR or MISS.
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

// How often each value is there, for the filters: {status: {FAIL: n}, group: {new: n}}
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

// What a message says but for its numbers, addresses and SHAs, which differ from run to run.
const wordsOf = (message) => message.replace(/\b(0x)?[0-9a-f]{7,}\b|\d+/gi, '#');

// Cells that broke in the same words and are judged alike stand together, where the first of them would:
// [{key, cells}]. Without a message nobody knows, and each stands alone.
export function groupAlike(cells) {
  const groups = new Map();
  for (const cell of cells) {
    const key = JSON.stringify(cell.message ? [cell.status, cell.group, wordsOf(cell.message)] : [cell.group, cell.accelerator, keyOf(cell)]);
    if (!groups.has(key)) groups.set(key, { key, cells: [] });
    groups.get(key).cells.push(cell);
  }
  return [...groups.values()];
}

// Accelerators in the order of the summary, which has the worst first.
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

// Why an accelerator has no cell for a test: {symbol, word, tone}. One that is not counted may be at work as well.
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
