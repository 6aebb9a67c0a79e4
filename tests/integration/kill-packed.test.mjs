// A short form of tests/kill/packed.mjs, which begins with a file of an old version. `make soak` runs the long form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killLarge, killPacked } from '../kill/packed.mjs';
import { needsFile } from './lib/database.mjs';
import { notBuilt } from './lib/outpost.mjs';

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

test(`no report is half stored and no list is left over after 12 kills (SEED=${seed})`, { skip: notBuilt || needsFile }, async (t) => {
  const problems = await killPacked({ seed, kills: 12, changes: 9 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.slice(0, 10).join('\n'));
});

test(`a large report is there in full or not at all after 6 kills (SEED=${seed})`, { skip: notBuilt || needsFile }, async (t) => {
  const problems = await killLarge({ seed, kills: 6 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.slice(0, 10).join('\n'));
});
