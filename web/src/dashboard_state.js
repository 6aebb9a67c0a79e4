// What an accelerator is at on upstream's branch, worst first. Pure: tests/web/dashboard.test.mjs.
import { listed, plural, roughly } from './format.js';

const SILENT_MS = 7 * 86_400_000; // nothing heard for a week

// A runner that let its deadline pass: the server has it as a test of this suite, without a job.
const isUnanswered = (s) => s.suite === 'dispatch' && s.job === null && s.tests.miss > 0 && s.tests.miss === Object.values(s.tests).reduce((sum, n) => sum + n, 0);

// The suites that tests are of: what was not answered is told by the state.
export const testedSuites = (a) => (a.suites ?? []).filter((s) => !isUnanswered(s));
export const columnsOf = ({ suites, accelerators }) => suites.filter((suite) => suite !== 'dispatch' || accelerators.some((a) => testedSuites(a).some((s) => s.suite === suite)));

// "overdue" | "red" | "unhealthy" | "silent" | "new" (nothing heard yet) | "unanswered" | "green"
export function stateOf(a, now) {
  if (a.overdue) return 'overdue';
  if (a.red_since) return 'red';
  if (a.health === 'unhealthy') return 'unhealthy';
  if (!a.last_report) return 'new';
  if (now - Date.parse(a.last_report) > SILENT_MS) return 'silent';
  return a.suites?.some(isUnanswered) ? 'unanswered' : 'green';
}

export const STATES = {
  overdue: { symbol: '✗', word: 'overdue', tone: 'fail' },
  red: { symbol: '✗', word: 'red', tone: 'fail' },
  unhealthy: { symbol: '!', word: 'unhealthy, not counted', tone: 'error' },
  silent: { symbol: '?', word: 'silent', tone: 'miss' },
  new: { symbol: '?', word: 'no report yet', tone: 'miss' },
  unanswered: { symbol: '?', word: 'no report', tone: 'miss' },
  green: { symbol: '✓', word: 'green', tone: 'pass' },
};

// "red for 2 d", "silent for 9 d"
export function stateText(a, now) {
  const state = stateOf(a, now);
  const { word } = STATES[state];
  const since = { overdue: a.red_since, red: a.red_since, silent: a.last_report }[state];
  if (!since) return word;
  const age = roughly(Math.max(0, (now - Date.parse(since)) / 1000));
  const what = (state !== 'silent' && a.suites?.length && testedSuites(a).length === 0 ? ', no report' : '') + (a.health === 'unhealthy' ? ', not counted' : '');
  return state === 'overdue' ? `red for ${age}, overdue${what}` : `${word} for ${age}${what}`;
}

export function stateCounts(accelerators, now) {
  const n = { overdue: 0, red: 0, unhealthy: 0, silent: 0, new: 0, unanswered: 0, green: 0 };
  for (const a of accelerators) n[stateOf(a, now)]++;
  return n;
}

// The sentence that a maintainer reads first: {tone, symbol, text, rest}
export function headline(accelerators, branch, now) {
  const n = stateCounts(accelerators, now);
  const total = accelerators.length;
  const nRed = n.red + n.overdue;
  const rest = [];
  const be = (k) => (k === 1 ? 'is' : 'are');
  if (n.overdue) rest.push(`${n.overdue} ${be(n.overdue)} overdue: red for more than 72 hours`);
  const nUnhealthy = accelerators.filter(({ health }) => health === 'unhealthy').length;
  if (nUnhealthy) rest.push(`${nUnhealthy} ${be(nUnhealthy)} unhealthy and not counted`);
  if (n.silent) rest.push(`${n.silent} ${be(n.silent)} silent`);
  if (n.unanswered) rest.push(`${n.unanswered} let a deadline pass without a report`);
  if (n.new) rest.push(`${n.new} ${n.new === 1 ? 'has' : 'have'} not reported yet`);
  const said = rest.length ? `${listed(rest).replace(/^./, (c) => c.toUpperCase())}.` : '';
  if (nRed) return { tone: 'fail', symbol: '✗', text: `${nRed} of ${plural(total, 'accelerator')} ${be(nRed)} red on ${branch}`, rest: said };
  if (n.green === 0) return { tone: 'miss', symbol: '?', text: n.new === total ? `No accelerator has reported on ${branch} yet` : `No accelerator is known to be green on ${branch}`, rest: n.new === total ? '' : said };
  if (n.green === total) return { tone: 'pass', symbol: '✓', text: total === 1 ? `The one accelerator is green on ${branch}` : `All ${plural(total, 'accelerator')} are green on ${branch}`, rest: '' };
  return { tone: 'pass', symbol: '✓', text: `Nothing is red on ${branch}`, rest: said };
}

// What a suite's cell says: {status, text, title}
export function suiteCell({ status, tests, red }) {
  const nRed = tests.fail + tests.error + tests.miss;
  const total = nRed + tests.pass + tests.done + tests.skip;
  const words = [['fail', 'failed'], ['error', 'broke'], ['miss', 'without a result'], ['pass', 'passed'], ['done', 'measured'], ['skip', 'skipped']];
  const title = words.filter(([key]) => tests[key]).map(([key, word]) => `${tests[key].toLocaleString('en-US')} ${word}`).join(', ');
  if (!nRed) return { status, text: (tests.pass || tests.done || tests.skip).toLocaleString('en-US'), note: '', title };
  return { status, text: nRed.toLocaleString('en-US'), note: red === 0 ? 'explained' : `of ${total.toLocaleString('en-US')} red`, title: red === nRed ? title : `${title}; ${red} not explained` };
}
