// The texts of the page of periodic runs. Pure: tests/web/nightly.test.mjs.
import { count, plural, shortSha } from './format.js';

// Worst first.
export const CELL_STATES = {
  regression: { symbol: '✗', word: 'regression', tone: 'fail', text: 'red in the newest run, green in the one before' },
  still_failing: { symbol: '✗', word: 'still failing', tone: 'fail', text: 'red for more than one run' },
  unstable: { symbol: '!', word: 'unstable', tone: 'error', text: 'changed three times or more within ten runs' },
  disappeared: { symbol: '?', word: 'disappeared', tone: 'miss', text: 'the newest run does not have it' },
  fixed: { symbol: '✓', word: 'fixed', tone: 'pass', text: 'green again in the newest run' },
  passing: { symbol: '✓', word: 'passing', tone: 'pass', text: 'green' },
  skipped: { symbol: '–', word: 'skipped', tone: 'skip', text: 'not run on purpose' },
};
const RANK = Object.keys(CELL_STATES);

export const FILTERS = ['state', 'accelerator', 'suite', 'q', 'days', 'until'];

// The API path for the page's address; other parameters are left out.
export function apiOf(search) {
  const given = new URLSearchParams(search);
  const kept = new URLSearchParams(FILTERS.filter((name) => given.get(name)).map((name) => [name, given.get(name)]));
  return `/api/v1/nightly${kept.size ? `?${kept}` : ''}`;
}

export function withFilter(search, name, value) {
  const params = new URLSearchParams(search);
  if (value) params.set(name, value);
  else params.delete(name);
  params.delete('cursor');
  return params.size ? `?${params}` : '';
}

// The page in one sentence.
export function nightlySentence({ counts, accelerators }) {
  const { regression = 0, still_failing: failing = 0, unstable = 0, disappeared = 0 } = counts;
  const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
  if (accelerators.length === 0) return { tone: 'plain', symbol: '', text: 'No periodic runs yet' };
  if (total === 0) return { tone: 'plain', symbol: '', text: 'No periodic run has reported a test yet' };
  const bad = [regression && plural(regression, 'regression'), failing && `${count(failing)} still failing`, unstable && `${count(unstable)} unstable`, disappeared && `${count(disappeared)} disappeared`].filter(Boolean);
  if (bad.length === 0) return { tone: 'pass', symbol: '✓', text: 'Every test is green in the newest periodic runs' };
  return { tone: regression || failing ? 'fail' : 'error', symbol: regression || failing ? '✗' : '!', text: `${bad.join(', ')} in the newest periodic runs` };
}

// The cells that get a line of their own, and the names of the other accelerators: [cells, names].
export function splitCells(cells) {
  const sorted = [...cells].sort((a, b) => RANK.indexOf(a.state) - RANK.indexOf(b.state));
  return [sorted.filter(({ state }) => state !== 'passing' && state !== 'skipped'), sorted.filter(({ state }) => state === 'passing' || state === 'skipped')];
}

// Between which commits the test broke: "Good at 5ab7ee6, bad at 943b6b2: 10 commits". Null: it is not known.
export function rangeText({ first_bad: bad, last_good: good, commits }) {
  if (!bad) return good ? `Last good at ${shortSha(good.upstream_sha)}` : null;
  if (!good) return `First bad at ${shortSha(bad.upstream_sha)}, none good before it`;
  if (bad.upstream_sha !== good.upstream_sha) return `Good at ${shortSha(good.upstream_sha)}, bad at ${shortSha(bad.upstream_sha)}${commits?.count ? `: ${plural(commits.count, 'commit')}` : ''}`;
  return `Good and bad at ${shortSha(bad.upstream_sha)}: ${bad.source_sha === good.source_sha ? 'the code did not change' : 'the vendor’s source changed'}`;
}

const GROUPS = [['FAIL', 'red'], ['ERROR', 'red'], ['MISS', 'without a result'], ['PASS', 'green'], ['DONE', 'measured'], ['SKIP', 'skipped']];

// A row of days in words: "3 red, 11 green"
export function daysInWords(days) {
  const n = new Map();
  for (const day of days) {
    const word = day && GROUPS.find(([status]) => status === day.status)?.[1];
    if (word) n.set(word, (n.get(word) ?? 0) + 1);
  }
  return [...n].map(([word, times]) => `${times} ${word}`).join(', ') || 'no result';
}

export const CAUSES = { schedule: 'scheduled', caught_up: 'caught up after being missed', operator: 'started by an operator', self_report: 'reported by the vendor’s own schedule' };
