// A short form of the kill test: tests/kill/kill.mjs at length is `make soak`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killTest } from '../kill/kill.mjs';
import { notBuilt } from './lib/outpost.mjs';

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

test(`killed 20 times, nothing is lost and nothing doubled (SEED=${seed})`, { skip: notBuilt }, async (t) => {
  const problems = await killTest({ seed, kills: 20, deliveries: 50, share: 0.5, patience: 420_000 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.join('\n'));
});
