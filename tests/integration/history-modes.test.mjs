// The short stories of history.test.mjs, each in the other mode: vendors that run experiments where they do not there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { halfOf, playAll, stories } from '../history/scenarios.mjs';
import { notBuilt } from './lib/outpost.mjs';

const AT_ONCE = 3;

test('named scenarios: each story gets the attributions that it expects', { skip: notBuilt }, async () => {
  const wrong = [];
  await playAll(halfOf(stories(), 'without'), AT_ONCE, ({ story, mode, problems }) => wrong.push(...problems.map((problem) => `${story.file}:${story.line}: ${story.name}, ${mode} experiments: ${problem}`)));
  assert.deepEqual(wrong, []);
});
