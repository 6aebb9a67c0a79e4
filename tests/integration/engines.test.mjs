// A day of an invented project leaves the same rows, comments and verdicts on SQLite and on PostgreSQL. tests/history/engines.mjs plays longer ones.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { playBoth } from '../history/engines.mjs';
import { MODES } from '../history/simulate.mjs';
import { notBuilt } from './lib/outpost.mjs';

const skip = notBuilt || (!process.env.OUTPOST_TEST_DATABASE && 'make check-postgres has a server');

describe('one day on both engines', { skip }, () => {
  for (const mode of MODES) {
    test(`vendors ${mode} experiments: rows, comments and verdicts are equal`, async () => {
      const { runs, lines } = await playBoth({ seed: 4, mode, size: { days: 1, pulls: 6, accelerators: 3, tests: 24 } });
      assert.deepEqual(lines, []);
      for (const { verdicts, comments, nExperiments } of runs) {
        assert.ok(verdicts.length > 0, 'the history has red cells');
        assert.ok(comments > 0, 'the history has comments');
        assert.equal(nExperiments > 0, mode === 'with');
      }
    });
  }
});
