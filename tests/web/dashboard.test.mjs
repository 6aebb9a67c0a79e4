// What the dashboard says of accelerators.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { badNightly, columnsOf, headline, stateCounts, stateOf, stateText, suiteCell, testedSuites } from '../../web/src/dashboard_state.js';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const before = (days) => new Date(NOW - days * 86_400_000).toISOString();
const one = (over = {}) => ({ name: 'a', level: 'L2', health: 'ok', red_since: null, overdue: false, last_report: before(0.1), ...over });
const green = one();
const red = one({ red_since: before(2) });
const overdue = one({ red_since: before(5), overdue: true });
const silent = one({ name: 'b', last_report: before(9) });
const fresh = one({ last_report: null });
const unhealthy = one({ health: 'unhealthy' });

test('the worst that is true of it is said', () => {
  const all = [overdue, red, unhealthy, silent, fresh, green];
  assert.deepEqual(all.map((a) => stateOf(a, NOW)), ['overdue', 'red', 'unhealthy', 'silent', 'new', 'green']);
  assert.deepEqual(all.map((a) => stateText(a, NOW)), ['red for 5 d, overdue', 'red for 2 d', 'unhealthy, not counted', 'silent for 9 d', 'no report yet', 'green']);
  assert.equal(stateOf({ ...red, health: 'unhealthy', last_report: null }, NOW), 'red');
  assert.equal(stateText({ ...red, health: 'unhealthy' }, NOW), 'red for 2 d, not counted');
  assert.equal(headline([{ ...red, health: 'unhealthy' }, green], 'main', NOW).rest, 'a is unhealthy, so not counted.');
  assert.equal(headline([{ ...overdue, health: 'unhealthy' }, green], 'main', NOW).rest, 'a is overdue (more than 72 hours) and is unhealthy, so not counted.');
  assert.deepEqual(stateCounts(all, NOW), { overdue: 1, red: 1, unhealthy: 1, silent: 1, new: 1, unanswered: 0, green: 1 });
});

test('one sentence says it', () => {
  const said = (list) => { const { text, rest, tone } = headline(list, 'main', NOW); return [tone, text, rest]; };
  assert.deepEqual(said([red, overdue, green]), ['fail', '2 of 3 accelerators are red on main', 'a is overdue (more than 72 hours).']);
  assert.deepEqual(said([red]), ['fail', '1 of 1 accelerator is red on main', '']);
  assert.deepEqual(said([green, green]), ['pass', 'All 2 accelerators are green on main', '']);
  assert.deepEqual(said([green]), ['pass', 'The one accelerator is green on main', '']);
  assert.deepEqual(said([green, silent, fresh]), ['pass', 'Nothing is red on main', 'b is silent; a has not reported yet.']);
});

test('what nobody reported is never green', () => {
  assert.equal(headline([fresh, fresh], 'main', NOW).text, 'No accelerator has reported on main yet');
  assert.equal(headline([silent, unhealthy], 'main', NOW).tone, 'miss');
  assert.equal(headline([silent, fresh], 'main', NOW).text, 'No accelerator is known to be green on main');
});

test('a deadline that passed in silence is a state, not a suite', () => {
  const none = { pass: 0, fail: 0, error: 0, miss: 0, done: 0, skip: 0 };
  const missed = { suite: 'dispatch', job: null, tests: { ...none, miss: 1 } }, unit = { suite: 'unit', job: 3, tests: { ...none, pass: 9 } };
  const half = one({ suites: [missed, unit] }); // one of its runners
  const unanswered = one({ suites: [unit], no_report: { sha: 'f'.repeat(40), since: before(1) } });
  assert.deepEqual([unanswered, half].map((a) => stateText(a, NOW)), ['no report for 1 d', 'no report']);
  assert.equal(stateText({ ...half, red_since: before(2), red_by: 'tests' }, NOW), 'red for 2 d');
  assert.equal(stateText({ ...unanswered, red_since: before(2), red_by: 'tests' }, NOW), 'red for 2 d, no report');
  assert.deepEqual([testedSuites(half), testedSuites(unanswered)], [[unit], [unit]]);
  assert.deepEqual(columnsOf({ suites: ['dispatch', 'unit'], accelerators: [green, half] }), ['unit']);
  const own = one({ suites: [{ suite: 'dispatch', job: 4, tests: { ...none, miss: 1 } }] }); // a vendor's suite may be called so
  assert.deepEqual(columnsOf({ suites: ['dispatch'], accelerators: [own, half] }), ['dispatch']);
});

test('no report is no red test', () => {
  const quiet = one({ red_since: before(1), red_by: 'silence', no_report: { sha: 'f'.repeat(40), since: before(0.1) } });
  assert.deepEqual([stateOf(quiet, NOW), stateText(quiet, NOW)], ['unanswered', 'no report for 1 d']);
  const { tone, text, rest } = headline([green, { ...quiet, title: 'NPU' }], 'main', NOW);
  assert.deepEqual([tone, text, rest], ['pass', 'Nothing is red on main', 'NPU let a deadline pass without a report.']);
  assert.equal(stateText({ ...quiet, red_since: before(4), overdue: true }, NOW), 'no report for 4 d, overdue');
});

test('bad news of periodic runs stand beside a green branch', () => {
  const nights = (...outcomes) => outcomes.map((outcome) => ({ day: '2026-11-22', outcome }));
  assert.deepEqual([[], nights('red', 'green'), nights('red', 'green', 'running', null), nights('green', 'red', 'skipped'), nights('green', 'missed')].map((nightly) => badNightly({ nightly })), [null, null, null, 'red', 'missed']);
  const regressed = one({ nightly: nights('green', 'red') });
  assert.equal(stateText(regressed, NOW), 'green');
  assert.equal(headline([green, regressed], 'main', NOW).rest, 'a is green, but its newest periodic run is not.');
  const many = headline([green, regressed, regressed, regressed, { ...regressed }], 'main', NOW);
  assert.deepEqual([many.tone, many.rest], ['pass', '4 are green, but their newest periodic runs are not.']);
});

test('a cell counts what is red, else what passed', () => {
  const tests = { pass: 4000, fail: 2, error: 1, miss: 0, done: 0, skip: 7 };
  assert.deepEqual(suiteCell({ status: 'FAIL', tests, red: 3 }), { status: 'FAIL', text: '3', note: 'of 4,010 red', title: '2 failed, 1 broke, 4,000 passed, 7 skipped' });
  assert.equal(suiteCell({ status: 'FAIL', tests, red: 0 }).note, 'explained');
  assert.equal(suiteCell({ status: 'FAIL', tests, red: 1 }).title, '2 failed, 1 broke, 4,000 passed, 7 skipped; 1 not explained');
  assert.deepEqual(suiteCell({ status: 'SKIP', tests: { pass: 0, fail: 0, error: 0, miss: 0, done: 0, skip: 7 }, red: 0 }), { status: 'SKIP', text: '7', note: '', title: '7 skipped' });
});
