// A short form of tests/kill/nightly.mjs, which at length is part of `make soak`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killNights } from '../kill/nightly.mjs';
import { notMovable, realNow } from './lib/moved-clock.mjs';
import { notBuilt } from './lib/outpost.mjs';

const seed = Number(process.env.SEED ?? realNow() % 1_000_000);

test(`killed 10 times in 4 nights, each due time is acted upon once (SEED=${seed})`, { skip: notBuilt || notMovable }, async (t) => {
  const problems = await killNights({ seed, kills: 10, nights: 4 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.join('\n'));
});
