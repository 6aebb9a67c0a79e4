// Compares attributions with the truth, in short stories. history-days.test.mjs does so in some days of an invented project.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MODES, playAll, stories } from '../history/scenarios.mjs';
import { notBuilt } from './lib/outpost.mjs';

const AT_ONCE = 3;

describe('named scenarios', { skip: notBuilt }, () => {
  for (const mode of MODES) {
    test(`vendors ${mode} experiments: each story gets the attributions that it expects`, async () => {
      const wrong = [];
      await playAll(stories(), [mode], AT_ONCE, ({ story, problems }) => wrong.push(...problems.map((problem) => `${story.file}:${story.line}: ${story.name}: ${problem}`)));
      assert.deepEqual(wrong, []);
    });
  }
});
