// What is said of red cells, against the truth: short stories, and weeks of a made-up project. At length: make history
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { matrixText, targets, targetsText } from '../history/judge.mjs';
import { playAll, stories } from '../history/scenarios.mjs';
import { MODES, simulate } from '../history/simulate.mjs';
import { notBuilt } from './lib/outpost.mjs';

const SEEDS = [1, 2];
const AT_ONCE = 3;
const LEAST = { with: { base: 0.6, flaky: 0.6 }, without: { base: 0.5, flaky: 0.25 } };

describe('named scenarios', { skip: notBuilt }, () => {
  for (const mode of MODES) {
    test(`vendors ${mode} experiments: nothing is said that must not be said`, async () => {
      const wrong = [];
      await playAll(stories(), [mode], AT_ONCE, ({ story, problems }) => wrong.push(...problems.map((problem) => `${story.file}:${story.line}: ${story.name}: ${problem}`)));
      assert.deepEqual(wrong, []);
    });
  }
});

describe('histories with known truth', { skip: notBuilt }, () => {
  for (const mode of MODES) {
    test(`vendors ${mode} experiments: no guilty change is excused, and each comment is whole`, async (t) => {
      const histories = await Promise.all(SEEDS.map((seed) => simulate({ seed, mode, days: 6, pulls: 24, accelerators: 4, tests: 16 })));
      t.diagnostic(`${matrixText(histories)}\n${targetsText(targets(histories, mode))}`);
      for (const { comments, problems, stories: { excused } } of histories) {
        assert.deepEqual([...excused, ...problems], []);
        assert.ok(comments.n > 50, `${comments.n} comments`);
      }
      // Of so small a history a single cell is some percent: here it only shows that most is recognised. make history has the targets.
      const pool = (name) => histories.reduce(({ n, hits }, one) => ({ n: n + one[name].n, hits: hits + one[name].hits }), { n: 0, hits: 0 });
      const { base, flaky } = { base: pool('base'), flaky: pool('flaky') };
      assert.ok(histories.reduce((n, { nGuilty }) => n + nGuilty, 0) >= 30 && base.n >= 10 && flaky.n >= 10, 'too little happened');
      const least = LEAST[mode];
      assert.ok(base.hits >= least.base * base.n && flaky.hits >= least.flaky * flaky.n, JSON.stringify({ base, flaky }));
    });
  }
});
