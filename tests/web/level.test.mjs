// How far an accelerator is from its next level.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checklist, criterionWord } from '../../web/src/level.js';

const numbers = { push_runs: 60, pass_rate: 0.95, deadlines_met: 0.9, queue_p90: 100, run_p90: 4000, reaction_time: null };
const thresholds = {
  L3: { push_runs: 50, pass_rate: 0.9, deadlines_met: 0.95, queue_time: 0, run_time: 3600, reaction_time: 0 },
  L4: { push_runs: 200, pass_rate: 0.98, deadlines_met: 0.99, queue_time: 600, run_time: 3600, reaction_time: 86400 },
};
const of = (over) => checklist({ level: 'L2', numbers, thresholds, overdue: false, proposal: { level: 'L2', unmet: ['deadlines_met', 'run_time'], unmet_now: [] }, ...over });

test('the list is what the next level demands; 0 demands nothing', () => {
  const { next, rows } = of();
  assert.equal(next, 'L3');
  assert.deepEqual(rows.map(({ name, met }) => [name, met]), [['push_runs', true], ['pass_rate', true], ['deadlines_met', false], ['run_time', false], ['overdue', true]]);
  assert.deepEqual(rows[2], { name: 'deadlines_met', word: 'deadlines met', value: '90 %', demand: 'at least 95 %', met: false });
  assert.equal(rows[3].demand, 'at most 1 h');
});

test('at the highest level it is what that one demands', () => {
  const { next, rows } = of({ level: 'L4', overdue: true, proposal: { level: 'L3', unmet: [], unmet_now: ['overdue', 'pass_rate'] } });
  assert.equal(next, null);
  assert.deepEqual(rows.filter(({ met }) => !met).map(({ name }) => name), ['pass_rate', 'overdue']);
  assert.equal(rows.find(({ name }) => name === 'reaction_time').value, '—');
});

test('L1 has no list', () => {
  assert.deepEqual(of({ level: 'L1' }), { next: null, rows: [], unmetNow: [] });
  assert.equal(criterionWord('something_new'), 'something new');
});
