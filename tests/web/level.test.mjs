// How far an accelerator is from its next level.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checklist, criterionWord } from '../../web/src/level.js';

const one = (name, unit, measured, target, met, more = {}) => ({ name, unit, measured, with_upstream: measured, target, at_least: false, met, ...more });
const up = {
  level: 'L3', days: 14, jobs: 100, passed: 85, timed_out: 0, failed_upstream: 10,
  list: [
    one('tenure', 'seconds', 40 * 86400, 30 * 86400, true, { at_least: true }),
    one('end_to_end_time', 'seconds', 4 * 3600, 3 * 3600, false),
    one('queue_time', 'seconds', null, 1800, null),
    one('pass_rate', 'share', 0.9444, 0.9, true, { at_least: true, with_upstream: 0.85 }),
  ],
};
const of = (over) => checklist({ criteria: { up, down: null }, proposal: { level: 'L2', unmet: ['end_to_end_time', 'queue_time'], unmet_now: [] }, ...over });

test('the list has the criteria of the next level with measured values, and counts upstream\'s failures separately', () => {
  const { next, days, jobs, upstream, rows } = of();
  assert.deepEqual([next, days, jobs, upstream], ['L3', 14, 100, 10]);
  assert.deepEqual(rows.map(({ name, met }) => [name, met]), [['tenure', true], ['end_to_end_time', false], ['queue_time', null], ['pass_rate', true]]);
  assert.deepEqual(rows[1], { name: 'end_to_end_time', word: 'median end-to-end time', value: '4 h', required: 'less than 3 h', met: false });
  assert.equal(rows[2].value, '—');
  assert.match(rows[3].value, /^94(\.4)? % \(85 % with upstream’s failures\)$/);
  assert.equal(rows[3].required, 'at least 90 %');
});

test('at the highest level the list has the criteria of that level', () => {
  const { next, rows, unmetNow } = of({ criteria: { up: null, down: { ...up, level: 'L4', days: 7 } }, proposal: { level: 'L3', unmet: [], unmet_now: ['end_to_end_time'] } });
  assert.equal(next, null);
  assert.deepEqual(rows.filter(({ met }) => met === false).map(({ name }) => name), ['end_to_end_time']);
  assert.deepEqual(unmetNow, ['end_to_end_time']);
});

test('a criterion that maintainers decide has no measured value, and L1 has no list', () => {
  assert.equal(of({ criteria: { up: { ...up, list: [one('maintainers', 'seconds', null, 0, false)] }, down: null } }).rows[0].met, null);
  assert.deepEqual(of({ criteria: { up: null, down: null } }).rows, []);
  assert.equal(criterionWord('something_new'), 'something new');
});
