// A short form of tests/kill/experiments.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killExperiments } from '../kill/experiments.mjs';
import { notBuilt } from './lib/outpost.mjs';

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

test(`no experiment is lost, duplicated or stuck after 10 kills (SEED=${seed})`, { skip: notBuilt }, async (t) => {
  const problems = await killExperiments({ seed, kills: 10, pulls: 4 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.join('\n'));
});
