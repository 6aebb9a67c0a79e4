// From verdicts to rows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnsOf, filterRows, groupAlike, isToLookAt, OUTCOMES, rowsOf, tallyCells, UNREPORTED, whyNothing } from '../../web/src/change_rows.js';

const cell = (accelerator, name, status, group = null, over = {}) => ({ accelerator, suite: 'unit', test: name, dtype: null, status, group, message: null, job: 1, ...over });
const names = (rows) => rows.map((row) => row.test);

test('rows that the change broke come first; rows of one rank are sorted by name', () => {
  const rows = rowsOf([cell('a', 'sick', 'FAIL', 'not_counted'), cell('a', 'passes', 'PASS'), cell('a', 'skipped', 'SKIP'), cell('a', 'flaky', 'FAIL', 'flaky'), cell('a', 'known', 'FAIL', 'known'), cell('a', 'base', 'FAIL', 'base'), cell('a', 'missing', 'MISS', 'missing'), cell('a', 'unread', 'ERROR', 'unclassified'), cell('a', 'unclear', 'FAIL', 'unclassified'), cell('a', 'new', 'FAIL', 'new'), cell('a', 'also', 'PASS')]);
  assert.deepEqual(names(rows), ['new', 'unclear', 'unread', 'missing', 'base', 'known', 'flaky', 'sick', 'also', 'passes', 'skipped']);
});

// B9: the list omits a cell that does not count. A test without a result is the vendor's failure.
test('the page lists the groups that the server counts against the change', () => {
  assert.deepEqual(['new', 'unclassified', 'known', 'base', 'flaky', 'missing', 'not_counted', null].filter((group) => isToLookAt(cell('a', 't', 'FAIL', group))), ['new', 'unclassified']);
});

test('a row is one test with its dtype, and a later verdict replaces a cell', () => {
  const rows = rowsOf([cell('a', 't', 'PASS'), cell('b', 't', 'PASS'), cell('a', 't', 'PASS', null, { dtype: 'bf16' }), cell('a', 't', 'FAIL', 'new')]);
  assert.equal(rows.length, 2);
  assert.equal(rows[0].cells.get('a').status, 'FAIL');
  assert.deepEqual([...rows[0].cells.keys()], ['a', 'b']);
});

test('a missing result without a job makes no row', () => {
  assert.deepEqual(rowsOf([cell('a', 't', 'MISS', 'missing', { job: null })]), []);
});

test('two tests whose names join to the same text have separate rows', () => {
  assert.equal(rowsOf([cell('a', 'b/c', 'PASS', null, { suite: 'a' }), cell('a', 'c', 'PASS', null, { suite: 'a/b' }), cell('a', '__proto__', 'PASS')]).length, 3);
});

test('failures with one message form a group at the place of the first', () => {
  const withMessage = { message: 'no kernel for rms_norm' };
  const groups = groupAlike([cell('a', 'one', 'FAIL', 'new', withMessage), cell('a', 'two', 'FAIL', 'new', { message: 'other' }), cell('b', 'one', 'FAIL', 'new', withMessage), cell('a', 'three', 'FAIL', 'new', withMessage),
    cell('a', 'four', 'FAIL', 'unclassified', withMessage), cell('a', 'five', 'ERROR', 'new', withMessage)]);
  assert.deepEqual(groups.map(({ cells }) => cells.map((one) => `${one.accelerator} ${one.test}`)), [['a one', 'b one', 'a three'], ['a two'], ['a four'], ['a five']]);
  assert.equal(new Set(groups.map(({ key }) => key)).size, 4);
});

test('messages that differ only in numbers, times and SHAs form one group', () => {
  const failure = (message) => cell('a', message, 'FAIL', 'new', { message });
  assert.equal(groupAlike([failure('add failed on rank 1 at 2026-06-18T13:27:00Z (2b87bebc6f552b4c)'), failure('add failed on rank 12 at 2026-01-13T12:23:00Z (e3ebf420816e9f51)'), failure('mul failed on rank 1')]).length, 2);
});

test('a failure without a message joins no group', () => {
  assert.equal(groupAlike([cell('a', 'one', 'FAIL'), cell('a', 'two', 'FAIL'), cell('b', 'one', 'FAIL')]).length, 3);
});

test('one cell must match all filters', () => {
  const rows = rowsOf([cell('a', 'one', 'FAIL', 'new', { message: 'no kernel for rms_norm' }), cell('b', 'one', 'PASS'), cell('b', 'two', 'FAIL', 'base'), cell('a', 'three', 'PASS')]);
  const found = (filter) => names(filterRows(rows, filter)).sort();
  assert.deepEqual(found({}), ['one', 'three', 'two']);
  assert.deepEqual(found({ status: 'red' }), ['one', 'two']);
  assert.deepEqual(found({ status: 'FAIL', accelerator: 'b' }), ['two']);
  assert.deepEqual(found({ group: 'new', accelerator: 'b' }), []);
  assert.deepEqual(found({ q: 'RMS kernel' }), ['one']);
  assert.deepEqual(found({ q: 'unit/t' }), ['three', 'two']);
  assert.deepEqual(found({ q: 'nowhere' }), []);
  assert.deepEqual(tallyCells(rows), { status: { FAIL: 2, PASS: 2 }, group: { new: 1, base: 1 } });
});

test('the worst accelerator is the first column, and one without a summary is the last', () => {
  const accelerators = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
  assert.deepEqual(columnsOf({ accelerators, summary: { accelerators: [{ name: 'c' }, { name: 'b' }] } }).map(({ name }) => name), ['c', 'b', 'a']);
  assert.deepEqual(columnsOf({ accelerators, summary: {} }).map(({ name }) => name), ['a', 'b', 'c']);
});

test('an empty cell says why it has no result', () => {
  const idle = { jobs: [{ status: 'completed' }] };
  assert.equal(whyNothing(idle, 'missing'), OUTCOMES.missing);
  assert.equal(whyNothing(idle, 'passed'), UNREPORTED);
  assert.equal(whyNothing({ jobs: [{ status: 'in_progress' }] }, 'not_counted'), OUTCOMES.running);
});

test('twenty thousand tests on ten accelerators become rows and are filtered', () => {
  const verdicts = [];
  for (let t = 0; t < 20_000; t++) for (let a = 0; a < 10; a++) verdicts.push(cell(`a${a}`, `test_${t}`, t === 777 && a === 3 ? 'FAIL' : 'PASS', t === 777 && a === 3 ? 'new' : null));
  const rows = rowsOf(verdicts);
  assert.equal(rows.length, 20_000);
  assert.equal(rows[0].test, 'test_777');
  assert.equal(filterRows(rows, { q: 'test_19999' }).length, 1);
});
