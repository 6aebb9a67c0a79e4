// The dashboard's texts for the states and results of accelerators.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stateText, suiteCell } from '../../web/src/dashboard_state.js';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const before = (days) => new Date(NOW - days * 86_400_000).toISOString();

test('a state has the server\'s words and its age', () => {
  const shownState = (text, since, ...notes) => stateText({ name: 'x', text, since, notes }, NOW);
  assert.equal(shownState('green', null), 'green');
  assert.equal(shownState('red', before(5), 'overdue'), 'red for 5 d, overdue');
  assert.equal(shownState('red', before(2), 'no report', 'not counted'), 'red for 2 d, no report, not counted');
  assert.equal(shownState('silent', before(9)), 'silent for 9 d');
  assert.equal(shownState('unhealthy, not counted', null), 'unhealthy, not counted');
  assert.equal(shownState('no report', before(-1)), 'no report for 0 s', 'a clock that is ahead makes no negative age');
});

test('a cell counts its red tests, or its passed tests if none is red', () => {
  const tests = { pass: 4000, fail: 2, error: 1, miss: 0, done: 0, skip: 7 };
  assert.deepEqual(suiteCell({ status: 'FAIL', tests, red: 3 }), { status: 'FAIL', text: '3', note: 'of 4,010 red', title: '2 failed, 1 broke, 4,000 passed, 7 skipped' });
  assert.equal(suiteCell({ status: 'FAIL', tests, red: 0 }).note, 'explained');
  assert.equal(suiteCell({ status: 'FAIL', tests, red: 1 }).title, '2 failed, 1 broke, 4,000 passed, 7 skipped; 1 not explained');
  assert.deepEqual(suiteCell({ status: 'SKIP', tests: { pass: 0, fail: 0, error: 0, miss: 0, done: 0, skip: 7 }, red: 0 }), { status: 'SKIP', text: '7', note: '', title: '7 skipped' });
});
