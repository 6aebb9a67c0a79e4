// A short form of tests/kill/cluster.mjs: three daemons on one database. `make soak` runs the long form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterTest } from '../kill/cluster.mjs';
import { notBuilt } from './lib/outpost.mjs';

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

test(`three daemons on one database lose and duplicate nothing after 18 faults (SEED=${seed})`, { skip: notBuilt }, async (t) => {
  const problems = await clusterTest({ seed, faults: 18, deliveries: 40, lanes: 3, share: 0.3 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.join('\n'));
});
