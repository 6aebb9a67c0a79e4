// Compares attributions with the truth, in some days of an invented project. `make history` plays weeks.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MODES } from '../history/scenarios.mjs';
import { simulate } from '../history/simulate.mjs';
import { notBuilt } from './lib/outpost.mjs';

// The history is too small to check rates. `make history` does that.
describe('days of an invented project', { skip: notBuilt }, () => {
  for (const mode of MODES) {
    test(`vendors ${mode} experiments: no failure of a pull request is excused`, async () => {
      const { excused, everExcused, nGuilty, stories: { excused: lines }, problems, extra } = await simulate({ seed: 11, mode, days: 5, pulls: 25, accelerators: 3, tests: 20 });
      assert.deepEqual([...lines, ...problems], []);
      assert.deepEqual([excused, everExcused], [0, 0]);
      assert.ok(nGuilty > 0, 'the history has guilty cells');
      assert.equal(extra.experiments > 0, mode === 'with');
    });
  }
});
