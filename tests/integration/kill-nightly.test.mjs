// A short form of tests/kill/nightly.mjs. `make soak` runs the long form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killNights } from '../kill/nightly.mjs';
import { notMovable, realNow } from './lib/moved-clock.mjs';
import { notBuilt } from './lib/outpost.mjs';

const seed = Number(process.env.SEED ?? realNow() % 1_000_000);

test(`each due time runs once in 4 nights with 10 kills (SEED=${seed})`, { skip: notBuilt || notMovable }, async (t) => {
  const problems = await killNights({ seed, kills: 10, nights: 4 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.join('\n'));
});
