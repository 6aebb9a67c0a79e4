// What is said of red cells, against the truth, in short stories and in days of a made-up project. Weeks of it take longer: make history
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MODES, playAll, stories } from '../history/scenarios.mjs';
import { simulate } from '../history/simulate.mjs';
import { notBuilt } from './lib/outpost.mjs';

const AT_ONCE = 3;

describe('named scenarios', { skip: notBuilt }, () => {
  for (const mode of MODES) {
    test(`vendors ${mode} experiments: nothing is said that must not be said`, async () => {
      const wrong = [];
      await playAll(stories(), [mode], AT_ONCE, ({ story, problems }) => wrong.push(...problems.map((problem) => `${story.file}:${story.line}: ${story.name}: ${problem}`)));
      assert.deepEqual(wrong, []);
    });
  }
});

// Too small for rates: those are for make history.
describe('days of a made-up project', { skip: notBuilt }, () => {
  for (const mode of MODES) {
    test(`vendors ${mode} experiments: no failure of a pull request is excused`, async () => {
      const { excused, everExcused, nGuilty, stories: { excused: lines }, problems, extra } = await simulate({ seed: 11, mode, days: 5, pulls: 25, accelerators: 3, tests: 20 });
      assert.deepEqual([...lines, ...problems], []);
      assert.deepEqual([excused, everExcused], [0, 0]);
      assert.ok(nGuilty > 0, 'there are guilty cells');
      assert.equal(extra.experiments > 0, mode === 'with');
    });
  }
});
