// What the dashboard says of accelerators.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnsOf, headline, stateCounts, stateOf, stateText, suiteCell, testedSuites } from '../../web/src/dashboard_state.js';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const before = (days) => new Date(NOW - days * 86_400_000).toISOString();
const one = (over = {}) => ({ name: 'a', level: 'L2', health: 'ok', red_since: null, overdue: false, last_report: before(0.1), ...over });
const green = one();
const red = one({ red_since: before(2) });
const overdue = one({ red_since: before(5), overdue: true });
const silent = one({ last_report: before(9) });
const fresh = one({ last_report: null });
const unhealthy = one({ health: 'unhealthy' });

test('the worst that is true of it is said', () => {
  const all = [overdue, red, unhealthy, silent, fresh, green];
  assert.deepEqual(all.map((a) => stateOf(a, NOW)), ['overdue', 'red', 'unhealthy', 'silent', 'new', 'green']);
  assert.deepEqual(all.map((a) => stateText(a, NOW)), ['red for 5 d, overdue', 'red for 2 d', 'unhealthy, not counted', 'silent for 9 d', 'no report yet', 'green']);
  assert.equal(stateOf({ ...red, health: 'unhealthy', last_report: null }, NOW), 'red');
  assert.equal(stateText({ ...red, health: 'unhealthy' }, NOW), 'red for 2 d, not counted');
  assert.match(headline([{ ...red, health: 'unhealthy' }, green], 'main', NOW).rest, /^1 is unhealthy and not counted/);
  assert.deepEqual(stateCounts(all, NOW), { overdue: 1, red: 1, unhealthy: 1, silent: 1, new: 1, unanswered: 0, green: 1 });
});

test('one sentence says it', () => {
  const said = (list) => { const { text, rest, tone } = headline(list, 'main', NOW); return [tone, text, rest]; };
  assert.deepEqual(said([red, overdue, green]), ['fail', '2 of 3 accelerators are red on main', '1 is overdue: red for more than 72 hours.']);
  assert.deepEqual(said([red]), ['fail', '1 of 1 accelerator is red on main', '']);
  assert.deepEqual(said([green, green]), ['pass', 'All 2 accelerators are green on main', '']);
  assert.deepEqual(said([green]), ['pass', 'The one accelerator is green on main', '']);
  assert.deepEqual(said([green, silent, fresh]), ['pass', 'Nothing is red on main', '1 is silent and 1 has not reported yet.']);
});

test('what nobody reported is never green', () => {
  assert.equal(headline([fresh, fresh], 'main', NOW).text, 'No accelerator has reported on main yet');
  assert.equal(headline([silent, unhealthy], 'main', NOW).tone, 'miss');
  assert.equal(headline([silent, fresh], 'main', NOW).text, 'No accelerator is known to be green on main');
});

test('a deadline that passed in silence is a state, not a suite', () => {
  const none = { pass: 0, fail: 0, error: 0, miss: 0, done: 0, skip: 0 };
  const missed = { suite: 'dispatch', job: null, tests: { ...none, miss: 1 } }, unit = { suite: 'unit', job: 3, tests: { ...none, pass: 9 } };
  const unanswered = one({ suites: [missed] }), half = one({ suites: [missed, unit] });
  assert.deepEqual([unanswered, half].map((a) => stateText(a, NOW)), ['no report', 'no report']);
  assert.equal(stateText({ ...half, red_since: before(2) }, NOW), 'red for 2 d');
  assert.equal(stateText({ ...unanswered, red_since: before(2) }, NOW), 'red for 2 d, no report');
  assert.equal(headline([green, half], 'main', NOW).rest, '1 let a deadline pass without a report.');
  assert.deepEqual(testedSuites(half), [unit]);
  assert.deepEqual(columnsOf({ suites: ['dispatch', 'unit'], accelerators: [green, half] }), ['unit']);
  const own = one({ suites: [{ suite: 'dispatch', job: 4, tests: { ...none, miss: 1 } }] }); // a vendor's suite may be called so
  assert.deepEqual(columnsOf({ suites: ['dispatch'], accelerators: [own, half] }), ['dispatch']);
});

test('a cell counts what is red, else what passed', () => {
  const tests = { pass: 4000, fail: 2, error: 1, miss: 0, done: 0, skip: 7 };
  assert.deepEqual(suiteCell({ status: 'FAIL', tests, red: 3 }), { status: 'FAIL', text: '3', note: 'of 4,010 red', title: '2 failed, 1 broke, 4,000 passed, 7 skipped' });
  assert.equal(suiteCell({ status: 'FAIL', tests, red: 0 }).note, 'explained');
  assert.equal(suiteCell({ status: 'FAIL', tests, red: 1 }).title, '2 failed, 1 broke, 4,000 passed, 7 skipped; 1 not explained');
  assert.deepEqual(suiteCell({ status: 'SKIP', tests: { pass: 0, fail: 0, error: 0, miss: 0, done: 0, skip: 7 }, red: 0 }), { status: 'SKIP', text: '7', note: '', title: '7 skipped' });
});
