// Hostile lists of tests through the public interface: names that are no text, names at and over their limits, lists that look
// alike, and a vendor whose every report has 20,000 new names. Other vendors' results stay as they are, and so does the memory.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const NAME_MAX = 256, SUITE_MAX = 128;

describe('hostile lists of tests', { skip: notBuilt }, () => {
  let rig, outpost, vendor, hostile, other, runs = 1;

  before(async () => {
    [rig, vendor] = await Promise.all([startRig(), startSilentVendor({ secret: 's' })]);
    outpost = await Outpost.start({
      rig, config: { comment: { enabled: false } }, secrets: { hostile: { hook: 's' }, other: { hook: 's' } },
      accelerators: ['hostile', 'other'].map((name) => ({ name, title: name, level: 'L2', runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] })),
      env: { ASAN_OPTIONS: 'quarantine_size_mb=1:malloc_context_size=2' }, // the test measures memory
    });
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 1 })));
    [hostile, other] = await Promise.all(['hostile', 'other'].map(async (name) => {
      const { body } = await until(() => vendor.events.find((one) => one.body?.outpost?.accelerators?.includes(name)), { what: `${name} has the dispatch` });
      return { token: body.outpost.callback_token, path: new URL(body.outpost.callback_url).pathname };
    }));
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([vendor?.stop(), rig?.close()]);
  });

  const send = (one, body) => outpost.request('POST', one.path, { headers: { authorization: `Bearer ${one.token}` }, body });
  const bodyOf = (tests, job = `job ${runs++}`) => JSON.stringify(workflowOf({ workflow: 'lab', job, run_id: '1', tests }, 'completed', new Date(0)));
  async function report(one, tests) {
    const { status, json, text } = await send(one, bodyOf(tests));
    assert.equal(status, 200, text);
    return json.job;
  }
  const shown = async (job) => (await outpost.api(`jobs/${job}`)).tests.map(({ suite, name, dtype, status }) => ({ suite, name, status, ...(dtype && { dtype }) }));
  const pass = (name, more) => ({ suite: 'unit', name, status: 'PASS', ...more });

  test('a name that is no text is refused, and nothing of its list is stored', async () => {
    const wrong = { NUL: '\\u0000', 'half a surrogate': '\\ud800', 'invalid UTF-8': Buffer.from([0xff]), 'a long form of /': Buffer.from([0xc0, 0xaf]), 'a surrogate in UTF-8': Buffer.from([0xed, 0xa0, 0x80]) };
    for (const [what, bytes] of Object.entries(wrong))
      for (const key of ['suite', 'name', 'dtype']) {
        const [head, tail] = bodyOf([pass('first'), pass('second', { [key]: 'HERE' })]).split('HERE');
        const { status, json, text } = await send(hostile, Buffer.concat([head, bytes, tail].map((part) => Buffer.from(part))));
        assert.equal(status, 400, `${what} in ${key}: ${text}`);
        assert.ok(json.detail.length > 5, text);
      }
    assert.equal((await outpost.api('pulls/1')).accelerators.find(({ name }) => name === 'hostile').jobs.length, 0);
  });

  test('lists that look alike are shown as they were reported', async () => {
    const prefix = 'p'.repeat(NAME_MAX - 6);
    const base = Array.from({ length: 300 }, (_, i) => ({ suite: 's'.repeat(SUITE_MAX), name: `${prefix}${String(i).padStart(6, '0')}`, status: i % 9 ? 'PASS' : 'SKIP' }));
    const lists = [
      base, [...base].reverse(), base.slice(1), [...base, base[7]], [base[0], ...base],
      base.map((one, i) => (i === 150 ? { ...one, name: `${prefix}another`.slice(0, NAME_MAX) } : one)),
      base.map((one, i) => (i === 150 ? { ...one, dtype: 'd'.repeat(32) } : one)),
      base.map((one, i) => (i % 2 ? one : { ...one, dtype: 'float16' })),
      [pass('ab', { suite: 'c' }), pass('b', { suite: 'ca' }), pass('a', { dtype: 'b' }), pass('ab')],
      ['\u00e9', 'e\u0301', '\u{1f642}', '\u202e', ' x', 'x '].map((name) => pass(name)),
    ];
    const jobs = [];
    for (const tests of lists) jobs.push(await report(hostile, tests));
    for (const [i, tests] of lists.entries()) assert.deepEqual(await shown(jobs[i]), tests, `list ${i}`);
  });

  test('names over their limits are cut, and two that become equal are one test', async () => {
    const long = 'x'.repeat(NAME_MAX);
    const job = await report(hostile, [pass(`${long}a`), pass(`${long}b`, { status: 'SKIP' }), pass('short')]);
    assert.deepEqual(await shown(job), [pass(long), pass(long, { status: 'SKIP' }), pass('short')]);
  });

  test('20,000 new names in every report leave the memory and the results of others as they are', async () => {
    const mine = Array.from({ length: 500 }, (_, i) => pass(`mine ${i}`));
    const job = await report(other, mine);
    const rss = async () => Number(/^RssAnon:\s+(\d+) kB$/m.exec(await fs.readFile(`/proc/${outpost.pid}/status`, 'utf8'))[1]) / 1024;
    const round = async (n) => {
      const tests = Array.from({ length: 20_000 }, (_, i) => pass(`new ${n} ${i}`));
      const id = await report(hostile, tests);
      assert.equal((await outpost.api(`jobs/${id}`)).tests.length, tests.length);
      assert.deepEqual(await shown(job), mine);
    };
    for (let n = 0; n < 2; n++) await round(n);
    const before = await rss();
    for (let n = 2; n < 5; n++) await round(n);
    const grown = await rss() - before;
    assert.ok(grown < 100, `${grown} MiB more after three reports`); // sanitizers keep freed memory
    assert.deepEqual((await shown(await report(other, mine))), mine);
  });
});
