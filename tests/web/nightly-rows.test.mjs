// The range of commits in which the nightly page says that a test broke.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rangeText } from '../../web/src/nightly_rows.js';

const at = (c, source = null) => ({ upstream_sha: c.repeat(40), source_sha: source });

test('the range names the first bad and the last good commit that the records have', () => {
  const between = { first_bad: at('b'), last_good: at('a'), commits: { count: 10 } };
  assert.equal(rangeText(between), 'Good at aaaaaaa, bad at bbbbbbb: 10 commits');
  assert.equal(rangeText({ ...between, commits: { count: 1 } }), 'Good at aaaaaaa, bad at bbbbbbb: 1 commit');
  assert.equal(rangeText({ ...between, commits: { count: null } }), 'Good at aaaaaaa, bad at bbbbbbb');
  assert.equal(rangeText({ ...between, last_good: null, commits: null }), 'First bad at bbbbbbb, none good before it');
  assert.equal(rangeText({ ...between, first_bad: null }), 'Last good at aaaaaaa');
  assert.equal(rangeText({ first_bad: null, last_good: null, commits: null }), null);
});

test('the range says what else changed if upstream did not', () => {
  assert.equal(rangeText({ first_bad: at('a', '2'), last_good: at('a', '1'), commits: null }), 'Good and bad at aaaaaaa: the vendor’s source changed');
  assert.equal(rangeText({ first_bad: at('a', '1'), last_good: at('a', '1'), commits: null }), 'Good and bad at aaaaaaa: the code did not change');
});
