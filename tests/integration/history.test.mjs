// What is said of red cells over weeks, against the truth. At length: make history
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MODES, playAll, stories } from '../history/scenarios.mjs';
import { simulate } from '../history/simulate.mjs';
import { notBuilt } from './lib/outpost.mjs';

const SEEDS = [1, 2, 3];
const AT_ONCE = 3;

describe('histories with known truth', { skip: notBuilt }, () => {
  const totals = { real: 0, comments: 0, base: { n: 0, missed: 0 }, flaky: { n: 0, missed: 0 } };

  for (const seed of SEEDS) {
    test(`seed ${seed}: nobody is excused who broke it, and each comment is whole`, async (t) => {
      const history = await simulate({ seed, days: 12, pulls: 40, accelerators: 4, tests: 20 });
      t.diagnostic(history.text());
      t.diagnostic(history.comments.text);
      assert.deepEqual([...history.slandered, ...history.comments.problems, ...history.play.problems, ...history.github.unknown], []);
      totals.real += history.nReal;
      totals.comments += history.comments.n;
      for (const [name, { n, missed }] of Object.entries(history.shares)) {
        totals[name].n += n;
        totals[name].missed += missed.length;
      }
    });
  }

  // Of one small history a single breakage is a tenth: what is recognised is counted over all of them.
  test('what main or a flaky test broke is recognised', () => {
    const { real, comments, base, flaky } = totals;
    assert.ok(real >= 50 && base.n >= 50 && flaky.n >= 30 && comments > 300, `too little happened: ${JSON.stringify(totals)}`);
    assert.ok(base.missed <= 0.05 * base.n && flaky.missed <= 0.2 * flaky.n, JSON.stringify(totals));
  });
});

describe('named scenarios', { skip: notBuilt }, () => {
  for (const mode of MODES) {
    test(`vendors ${mode} experiments: nothing is said that must not be said`, async () => {
      const wrong = [];
      await playAll(stories(), [mode], AT_ONCE, ({ story, problems }) => wrong.push(...problems.map((problem) => `${story.file}:${story.line}: ${story.name}: ${problem}`)));
      assert.deepEqual(wrong, []);
    });
  }
});
