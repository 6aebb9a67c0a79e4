// From experiments to rows.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import { test } from 'node:test';
import { experimentRows, openOf, passedOf } from '../../web/src/experiment_rows.js';
import { RERUN } from '../../web/src/status_words.js';

const result = (name, status, over = {}) => ({ suite: 'unit', test: name, dtype: null, status, job: status && 7, ...over });
const experiment = (id, side, state, results, over = {}) => ({ id, side, state, results, round: 1, cause: 'auto', reason: null, job: null, ...over });
const words = (runs) => runs.map(({ of, job }) => `${of.word}${job ? ` ${job}` : ''}`);

test('a row is one test on one accelerator and has the runs of each side in order', () => {
  const rows = experimentRows([
    { name: 'b', experiments: [experiment(4, 'base', 'started', [result('t', null)], { job: 9 }), experiment(3, 'head', 'done', [result('t', 'FAIL')], { round: 2 }), experiment(1, 'head', 'done', [result('t', 'PASS'), result('s', 'FAIL')])] },
    { name: 'a', experiments: [experiment(2, 'head', 'planned', [result('t', null)])] },
  ]);
  assert.deepEqual(rows.map(({ accelerator, test: name }) => `${accelerator} ${name}`), ['b s', 'b t', 'a t']);
  assert.deepEqual(words(rows[1].head), ['passed 7', 'failed 7']);
  assert.deepEqual(words(rows[1].base), ['running 9']);
  assert.deepEqual(words(rows[2].head), ['waits']);
  assert.deepEqual(rows.map(({ base }) => base.some(({ isPending }) => isPending)), [false, true, false]);
});

test('an experiment that waits for a good machine is not counted as running', () => {
  const later = { not_before_at: '2026-11-20T13:00:00Z' };
  const rows = experimentRows([{ name: 'a', experiments: [
    experiment(4, 'base', 'started', [result('both', null)]), experiment(3, 'head', 'planned', [result('later', null), result('both', null)], later), experiment(2, 'head', 'planned', [result('soon', null)]),
    experiment(1, 'head', 'done', [result('later', 'FAIL')])] }]);
  assert.deepEqual(rows.map(({ test: name, head }) => [name, ...words(head)]), [['both', 'waits for a good machine'], ['later', 'failed 7', 'waits for a good machine'], ['soon', 'waits']]);
  assert.equal(openOf(rows), ', 2 running, 1 waits for a good machine');
  assert.equal(openOf(rows.slice(1, 2)), ', 1 waits for a good machine');
  assert.equal(openOf([rows[1], rows[1]]), ', 2 wait for a good machine');
  assert.equal(openOf([]), '');
});

test('an experiment that proves nothing says so, even if it reported a result', () => {
  const [row] = experimentRows([{ name: 'a', experiments: [
    experiment(4, 'head', 'cancelled', [result('t', null)]), experiment(3, 'head', 'expired', [result('t', null)]), experiment(2, 'head', 'done', [result('t', null)]),
    experiment(1, 'head', 'void', [result('t', 'PASS')], { reason: 'it tested another commit' })] }]);
  assert.deepEqual(words(row.head), ['does not count: it tested another commit 7', 'no result', 'no result in time', 'cancelled']);
  assert.equal(passedOf(row.head), '');
});

test('stress runs have a row of their own with their pass rate', () => {
  const stress = (id, status) => experiment(id, 'head', 'done', [result('t', status)], { cause: 'stress', round: id });
  const rows = experimentRows([{ name: 'a', experiments: [stress(4, 'FAIL'), stress(3, 'PASS'), stress(2, 'PASS'), experiment(1, 'head', 'done', [result('t', 'FAIL')])] }]);
  assert.deepEqual(rows.map(({ cause, head }) => `${cause} ${passedOf(head)}`), ['auto ', 'stress 2 of 3 passed']);
});

test('two tests whose names join to the same text have separate rows', () => {
  const rows = experimentRows([{ name: 'a', experiments: [experiment(1, 'head', 'done', [result('b/c', 'PASS', { suite: 'a' }), result('c', 'PASS', { suite: 'a/b' }), result('c', 'PASS', { suite: 'a/b', dtype: 'bf16' })])] }]);
  assert.equal(rows.length, 3);
});

test('the page has words for each value of `rerun` in the API', async () => {
  const { components: { schemas } } = JSON.parse(await fs.readFile(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));
  assert.deepEqual(Object.keys(RERUN), schemas.Verdict.properties.rerun.enum.filter(Boolean));
});
