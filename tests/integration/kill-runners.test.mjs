// Short forms of the runners' kill and cut tests, tests/kill/runners.mjs and netns.mjs. `make soak` runs the long forms.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runnerNotBuilt } from '../kill/machine.mjs';
import { cutRunners } from '../kill/netns.mjs';
import { noNamespaces } from './lib/network.mjs';
import { killRunners } from '../kill/runners.mjs';
import { notBuilt } from './lib/outpost.mjs';

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

test(`30 jobs finish correctly while server and runners are killed 20 times (SEED=${seed})`, { skip: notBuilt || runnerNotBuilt }, async (t) => {
  const problems = await killRunners({ seed, kills: 20, jobs: 30, machines: 3 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.join('\n'));
});

test(`jobs finish correctly while links are cut and slowed 6 times (SEED=${seed})`, { skip: notBuilt || runnerNotBuilt || noNamespaces() }, async (t) => {
  const problems = await cutRunners({ seed, cuts: 6, jobs: 6, servers: 1 }, (text) => t.diagnostic(text));
  assert.equal(problems.length, 0, problems.join('\n'));
});
