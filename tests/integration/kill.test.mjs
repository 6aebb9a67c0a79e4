// A short form of the kill test, tests/kill/kill.mjs. `make soak` runs the long form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killTest } from '../kill/kill.mjs';
import { notBuilt } from './lib/outpost.mjs';

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

test(`no delivery or effect is lost or duplicated after 20 kills (SEED=${seed})`, { skip: notBuilt }, async (t) => {
  const problems = await killTest({ seed, kills: 20, deliveries: 50, share: 0.5, patience: 420_000 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.join('\n'));
});
