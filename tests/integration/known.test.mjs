// Known issues: adding, removing or expiring one changes the attribution of red tests in open pull requests by itself.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startWebhookVendor } from '../github/vendors.mjs';
import { Clock } from '../history/clock.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const NUMBER = 4100;
const SECRET = 'a secret between Outpost and the lab';
const HOUR_MS = 3_600_000;
const ISSUE = 'https://github.com/pytorch/pytorch/issues/77';
const fail = (suite, name) => ({ suite, name, status: 'FAIL', duration: 1, message: `${name} is wrong` });

describe('known issues', { skip: notBuilt }, () => {
  let rig;
  let vendor;
  let outpost;
  let clock;

  const ctl = async (...args) => {
    const { code, stdout, stderr } = await outpost.ctl(...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const json = async (...args) => JSON.parse(await ctl('--json', ...args));
  const refused = async (pattern, ...args) => {
    const { code, stdout, stderr } = await outpost.ctl(...args);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, pattern);
  };
  const list = async () => (await json('known', 'list')).known;
  const verdictOf = (view, test) => view.verdicts.find((v) => v.test === test);
  const waitFor = (name, attribution) => outpost.waitForApi(`pulls/${NUMBER}`, (view) => verdictOf(view, name)?.attribution === attribution, { timeout: 20_000, what: `${name} is ${attribution}` });
  const inAnHour = () => new Date(clock.now() + HOUR_MS).toISOString(); // a busy machine runs no command so late
  const notKnown = (name) => outpost.waitForApi(`pulls/${NUMBER}`, (view) => verdictOf(view, name) && verdictOf(view, name).attribution !== 'KNOWN', { timeout: 20_000, what: `${name} is not KNOWN` });

  before(async () => {
    rig = await startRig();
    vendor = await startWebhookVendor({ secret: SECRET, script: [{ workflow: 'lab', job: 'suite', conclusion: 'failure', tests: [fail('model', 'Qwen'), fail('model', 'llama3'), fail('unit', 'ops/add')] }] });
    outpost = await Outpost.prepare({
      rig,
      accelerators: [{ name: 'lab-chip', title: 'Lab Chip', level: 'L2', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] }],
      secrets: { 'lab-chip': { hook: SECRET } },
      config: { comment: { min_interval: '1s' } },
    });
    clock = new Clock(outpost.dir, Date.now());
    await clock.move(outpost.database);
    outpost.options.clock = clock;
    await outpost.spawn();
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: NUMBER })));
    await outpost.waitForApi(`pulls/${NUMBER}`, (view) => view.verdicts.length === 3, { timeout: 20_000, what: 'the pull request is tested' });
  });
  after(async () => {
    await outpost?.close();
    clock?.close();
    await vendor?.stop();
    await rig?.close();
  });

  test('an invalid known issue is refused with a reason', async () => {
    const add = (...args) => ['known', 'add', ...args];
    await refused(/test must be SUITE\/TEST/, ...add('--test', 'Qwen', '--url', ISSUE));
    await refused(/test must be SUITE\/TEST/, ...add('--test', 'model/[', '--url', ISSUE));
    await refused(/test must be SUITE\/TEST/, ...add('--test', '', '--url', ISSUE));
    await refused(/an https URL/, ...add('--test', 'model/*', '--url', 'http://example.org/1'));
    await refused(/an https URL/, ...add('--test', 'model/*', '--url', 'https://'));
    await refused(/no accelerator is called lab-chp; did you mean lab-chip\?/, ...add('--test', 'model/*', '--url', ISSUE, '--accelerator', 'lab-chp'));
    await refused(/has passed/, ...add('--test', 'model/*', '--url', ISSUE, '--until', '2020-02-28'));
    await refused(/YYYY-MM-DD/, ...add('--test', 'model/*', '--url', ISSUE, '--until', '2099-02-30'));
    await refused(/YYYY-MM-DD/, ...add('--test', 'model/*', '--url', ISSUE, '--until', 'tomorrow'));
    await refused(/no such known issue/, 'known', 'remove', '999');
    assert.equal((await outpost.ctl('known', 'add', '--test', 'model/*')).code, 2);
    assert.equal((await outpost.ctl('known', 'remove', 'x')).code, 2);
    assert.deepEqual(await list(), []);
  });

  test('a new known issue explains tests that are already red, with its link', async () => {
    const { id, until } = await json('known', 'add', '--test', 'model/Q*', '--accelerator', 'lab-chip', '--url', ISSUE, '--until', '2099-12-31');
    assert.equal(until, '2100-01-01T00:00:00Z', '`until` is the end of that day');
    const view = await waitFor('Qwen', 'KNOWN');
    assert.equal(verdictOf(view, 'Qwen').evidence_url, ISSUE);
    assert.notEqual(verdictOf(view, 'llama3').attribution, 'KNOWN');
    const [known] = await list();
    assert.deepEqual([known.id, known.test, known.accelerator, known.url, known.matches, known.used, known.expired], [id, 'model/Q*', 'lab-chip', ISSUE, 1, true, false]);
    assert.deepEqual((await outpost.api('known')).known, await list());
  });

  test('the list marks a known issue that matches nothing', async () => {
    const fresh = await json('known', 'add', '--test', 'model/nobody*', '--url', ISSUE, '--until', '2099-12-31');
    const young = await ctl('known', 'list');
    assert.match(young, /matches nothing yet/);
    assert.doesNotMatch(young, /known remove/, 'the list does not suggest to remove a new issue');
    await ctl('known', 'remove', String(fresh.id));
    const { id } = await json('known', 'add', '--test', 'model/nobody*', '--url', ISSUE, '--until', inAnHour());
    clock.advance(HOUR_MS);
    const table = await until(async () => {
      const text = await ctl('known', 'list');
      return text.includes('expired') && text;
    }, { timeout: 10_000, what: 'the known issue expires' });
    assert.match(table, new RegExp(`matches nothing: outpostctl known remove ${id}\\?`));
    assert.equal(table.match(/matches nothing/g).length, 1);
    await ctl('known', 'remove', String(id));
    assert.equal((await list()).length, 1);
  });

  test('a removed known issue no longer explains a test', async () => {
    const [{ id }] = await list();
    await ctl('known', 'remove', String(id));
    await notKnown('Qwen');
    assert.deepEqual(await list(), []);
  });

  test('a known issue expires by itself, even across a kill', async () => {
    await json('known', 'add', '--test', '**', '--url', ISSUE, '--until', inAnHour());
    await waitFor('ops/add', 'KNOWN');
    clock.advance(HOUR_MS);
    await notKnown('ops/add');
    assert.match(await ctl('known', 'list'), /expired/);
    await json('known', 'add', '--test', 'unit/ops/*', '--url', ISSUE, '--until', inAnHour());
    await waitFor('ops/add', 'KNOWN');
    await outpost.kill();
    clock.advance(HOUR_MS);
    await outpost.spawn();
    await notKnown('ops/add');
  });
});
