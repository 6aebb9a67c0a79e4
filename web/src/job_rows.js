// From a job's answer to the content of its page. Pure: tests/web/job.test.mjs.
import { listed } from './format.js';
import { ATTRIBUTION, isRed } from './status_words.js';

const SUITES = {
  build: 'Build', unit: 'PyTorch unit tests', benchmark: 'Benchmarks', model: 'Model runs', integration: 'Integration',
};
const ORDER = Object.keys(SUITES);
const RANK = { FAIL: 0, ERROR: 1, MISS: 2, PASS: 3, DONE: 4, SKIP: 5 };

export const suiteTitle = (suite) => SUITES[suite] ?? suite;

const placeOf = (suite) => (ORDER.indexOf(suite) + 1 || ORDER.length + 1);

// Groups by suite: those with red tests first, then in the order build, unit, …, then the vendor's own by name. In each
// group the red tests come first.
export function groupTests(tests) {
  const groups = new Map();
  for (const test of tests) {
    if (!groups.has(test.suite)) groups.set(test.suite, { suite: test.suite, tests: [], counts: {} });
    const group = groups.get(test.suite);
    group.tests.push(test);
    group.counts[test.status] = (group.counts[test.status] ?? 0) + 1;
  }
  for (const group of groups.values()) group.tests.sort((a, b) => RANK[a.status] - RANK[b.status]); // else as reported
  const isGreen = (group) => !group.tests.some(({ status }) => isRed(status));
  return [...groups.values()].sort((a, b) => isGreen(a) - isGreen(b) || placeOf(a.suite) - placeOf(b.suite) || (a.suite < b.suite ? -1 : 1));
}

export function countStatuses(tests) {
  const counts = {};
  for (const { status } of tests) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

// q: in the name, the type or the message. status: '' or one, or 'red'. suite: '' or one.
export function filterTests(tests, { q, status, suite }) {
  const word = q.trim().toLowerCase();
  return tests.filter((test) => (!suite || test.suite === suite)
    && (!status || (status === 'red' ? isRed(test.status) : test.status === status))
    && (!word || `${test.suite}/${test.name} ${test.dtype ?? ''} ${test.message ?? ''}`.toLowerCase().includes(word)));
}

// Removes tests that were read twice, in a page and with the red ones; the first place stays.
export function uniqueTests(tests) {
  const seen = new Set();
  return tests.filter(({ suite, name, dtype }) => {
    const key = JSON.stringify([suite, name, dtype]);
    return !seen.has(key) && seen.add(key);
  });
}

const KNOWN = ['accelerator', 'device', 'os', 'driver', 'torch', 'torch_commit', 'extension'];

const flat = (value) => (value === null || typeof value !== 'object' ? String(value) : null);

// The other members of an environment as [[name, text], …]; nested names are joined with dots.
export function otherFacts(environment, before = '') {
  return Object.entries(environment ?? {}).flatMap(([key, value]) => {
    if (!before && KNOWN.includes(key)) return [];
    const name = before ? `${before}.${key}` : key;
    if (value === null) return [];
    return flat(value) === null ? otherFacts(value, name) : [[name, flat(value)]];
  });
}

// An environment's extension: {name, version, commit, …} or a text.
export function extensionText(extension) {
  if (!extension) return null;
  return typeof extension === 'string' ? extension : [extension.name, extension.version].filter(Boolean).join(' ') || null;
}

const CONCLUSIONS = {
  success: 'passed', failure: 'failed', cancelled: 'was cancelled', timed_out: 'ran out of time', skipped: 'was skipped', neutral: 'ended without a verdict',
  action_required: 'waits for a person', startup_failure: 'could not start', stale: 'is stale',
};

// One sentence about the result: the reported tests count, not only the conclusion of the job.
export function jobSentence(job) {
  if (job.status === 'queued') return 'This job is waiting to start';
  if (job.status !== 'completed') return 'This job is running';
  const n = job.test_results;
  const how = CONCLUSIONS[job.conclusion] ?? (job.conclusion ? `ended as ${job.conclusion}` : 'ended');
  if (!n || n.total === 0) return `This job ${how}`;
  if (n.failed && job.conclusion === 'success') return `${n.failed.toLocaleString('en-US')} of ${n.total.toLocaleString('en-US')} tests did not pass, though the job says that it did`;
  if (n.failed) return `This job ${how}: ${n.failed.toLocaleString('en-US')} of ${n.total.toLocaleString('en-US')} tests did not pass`;
  return `This job ${how}: ${n.total === 1 ? 'its one test is not red' : `none of its ${n.total.toLocaleString('en-US')} tests is red`}`;
}

const BLAME = { NEW: 'new', UNCLASSIFIED: 'not classified', BASE: 'red on the base as well', KNOWN: 'known', FLAKY: 'flaky' };

// The causes of the red tests: "Of its red tests, 2 are new and 1 is flaky"; '' if no cause is known.
export function blameText(tests) {
  const counts = Object.keys(ATTRIBUTION).map((key) => [key, tests.filter((test) => isRed(test.status) && test.attribution === key).length]).filter(([, n]) => n > 0);
  return counts.length ? `Of its red tests, ${listed(counts.map(([key, n]) => `${n.toLocaleString('en-US')} ${n === 1 ? 'is' : 'are'} ${BLAME[key]}`))}` : '';
}

// The purpose of an experiment's run, and whether its results count.
export function experimentSentence({ experiment: { side, cause, round, state, reason }, number, accelerator }) {
  const purpose = cause === 'stress' ? `A member asked for these runs of one test. This is run ${round}` : 'Failed tests ran again, to find the cause of the failures';
  const where = side === 'base' ? 'on the merge base' : 'on the head';
  const pull = number ? ` of pull request #${number}` : '';
  const end = state === 'void' ? ` Its results do not count${reason ? `: ${reason}` : ''}.` : ' Its results are evidence; they are not results of the pull request.';
  return `${purpose}, ${where}${pull} on ${accelerator}.${end}`;
}
