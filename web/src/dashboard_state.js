// What an accelerator is at on upstream's branch, worst first. Pure: tests/web/dashboard.test.mjs.
import { count, listed, plural, roughly, visible } from './format.js';

const SILENT_MS = 7 * 86_400_000; // nothing heard for a week

// A runner that let its deadline pass: the server has it as a test of this suite, without a job.
const isUnanswered = (s) => s.suite === 'dispatch' && s.job === null && s.tests.miss > 0 && s.tests.miss === Object.values(s.tests).reduce((sum, n) => sum + n, 0);

// The suites that tests are of: what was not answered is told by the state.
export const testedSuites = (a) => (a.suites ?? []).filter((s) => !isUnanswered(s));
export const columnsOf = ({ suites, accelerators }) => suites.filter((suite) => suite !== 'dispatch' || accelerators.some((a) => testedSuites(a).some((s) => s.suite === suite)));

// Nothing is red but deadlines that passed: no report is no test.
const isSilence = (a) => a.red_by === 'silence';

// "overdue" | "red" | "unhealthy" | "silent" | "new" (nothing heard yet) | "unanswered" | "green"
export function stateOf(a, now) {
  if (a.overdue) return 'overdue';
  if (a.red_since && !isSilence(a)) return 'red';
  if (a.health === 'unhealthy') return 'unhealthy';
  if (!a.last_report) return 'new';
  if (now - Date.parse(a.last_report) > SILENT_MS) return 'silent';
  return a.red_since || a.no_report || a.suites?.some(isUnanswered) ? 'unanswered' : 'green';
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

// "red for 2 d", "silent for 9 d", "no report for 20 min"
export function stateText(a, now) {
  const state = stateOf(a, now);
  const { word } = STATES[state];
  const since = { overdue: a.red_since, red: a.red_since, silent: a.last_report, unanswered: a.red_since ?? a.no_report?.since }[state];
  if (!since) return word;
  const age = roughly(Math.max(0, (now - Date.parse(since)) / 1000));
  const more = (a.no_report && state !== 'silent' && !isSilence(a) && state !== 'unanswered' ? ', no report' : '') + (a.health === 'unhealthy' ? ', not counted' : '');
  return state === 'overdue' ? `${isSilence(a) ? 'no report' : 'red'} for ${age}, overdue${more}` : `${word} for ${age}${more}`;
}

export function stateCounts(accelerators, now) {
  const n = { overdue: 0, red: 0, unhealthy: 0, silent: 0, new: 0, unanswered: 0, green: 0 };
  for (const a of accelerators) n[stateOf(a, now)]++;
  return n;
}

// How the newest periodic run that has ended went, where that is bad news: an outcome's name, or null.
export function badNightly(a) {
  const last = a.nightly?.findLast(({ outcome }) => outcome && outcome !== 'running' && outcome !== 'skipped');
  return last && last.outcome !== 'green' ? last.outcome : null;
}

const NAMED = 3; // so many are named, more are counted
const nameOf = ({ name, title }) => visible((title || name).slice(0, 40));

// "A and B are silent"; what is said of the same ones is one sentence: [[accelerators, one, many], …]
function sentences(said) {
  const parts = [];
  for (const [of, one, many] of said.filter(([list]) => list.length > 0)) {
    const who = of.length > NAMED ? count(of.length) : listed(of.map(nameOf));
    const same = parts.find((part) => part.of.length === of.length && part.of.every((a, i) => a === of[i]));
    if (same) same.what.push(of.length === 1 ? one : many);
    else parts.push({ of, who, what: [of.length === 1 ? one : many] });
  }
  return parts.length ? `${parts.map(({ who, what }) => `${who} ${listed(what)}`).join('; ')}.` : '';
}

// The sentence that a maintainer reads first: {tone, symbol, text, rest}
export function headline(accelerators, branch, now) {
  const n = stateCounts(accelerators, now);
  const total = accelerators.length;
  const nRed = n.red + n.overdue;
  const of = (state) => accelerators.filter((a) => stateOf(a, now) === state);
  const worse = sentences([
    [of('overdue'), 'is overdue (more than 72 hours)', 'are overdue (more than 72 hours)'],
    [accelerators.filter(({ health }) => health === 'unhealthy'), 'is unhealthy, so not counted', 'are unhealthy, so not counted'],
    [of('silent'), 'is silent', 'are silent'],
    [of('unanswered'), 'let a deadline pass without a report', 'let a deadline pass without a report'],
    [of('new'), 'has not reported yet', 'have not reported yet'],
    [of('green').filter((a) => badNightly(a)), 'is green, but its newest periodic run is not', 'are green, but their newest periodic runs are not'],
  ]);
  if (nRed) return { tone: 'fail', symbol: '✗', text: `${nRed} of ${plural(total, 'accelerator')} ${nRed === 1 ? 'is' : 'are'} red on ${branch}`, rest: worse };
  if (n.green === 0) return { tone: 'miss', symbol: '?', text: n.new === total ? `No accelerator has reported on ${branch} yet` : `No accelerator is known to be green on ${branch}`, rest: n.new === total ? '' : worse };
  if (n.green === total) return { tone: 'pass', symbol: '✓', text: total === 1 ? `The one accelerator is green on ${branch}` : `All ${plural(total, 'accelerator')} are green on ${branch}`, rest: worse };
  return { tone: 'pass', symbol: '✓', text: `Nothing is red on ${branch}`, rest: worse };
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
