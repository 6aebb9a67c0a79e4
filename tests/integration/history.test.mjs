// Compares attributions with the truth, in short stories: every second one with vendors that run experiments, the others without.
// history-modes.test.mjs plays each in the other mode; history-days.test.mjs compares them in some days of an invented project.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { halfOf, playAll, stories } from '../history/scenarios.mjs';
import { notBuilt } from './lib/outpost.mjs';

const AT_ONCE = 3;

test('named scenarios: each story gets the attributions that it expects', { skip: notBuilt }, async () => {
  const wrong = [];
  await playAll(halfOf(stories(), 'with'), AT_ONCE, ({ story, mode, problems }) => wrong.push(...problems.map((problem) => `${story.file}:${story.line}: ${story.name}, ${mode} experiments: ${problem}`)));
  assert.deepEqual(wrong, []);
});
