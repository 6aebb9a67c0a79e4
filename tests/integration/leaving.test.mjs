// An accelerator leaves the registry while its work is held, queued and running: Outpost sends none of the work any more, and
// no change waits for it for ever.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { issueComment, pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Clock } from '../history/clock.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';

const UPSTREAM = 'pytorch/pytorch';
const NUMBER = 700;
const deadlines = { start: '60s', finish: '72s' };
const FINISH_MS = 72_000;
const pull = (name, trust = 'anyone') => ({ name, title: name, level: 'L2', trust, deadlines, triggers: { pull_request: {} }, runners: [{ name: 'farm', pull: { labels: [], max_parallel: 1 } }] });
const github = (name, trust) => ({ ...pull(name, trust), runners: [{ name: 'ci', github: { repository: `vendor/${name}` } }] });

describe('an accelerator leaves the registry', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let clock;
  let machine;
  let lease;
  const dispatchOf = (name, view) => view.accelerators.find((a) => a.name === name)?.dispatches[0];
  const comment = () => rig.comments(UPSTREAM, NUMBER)[0]?.body ?? '';

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.prepare({ rig, accelerators: [pull('stays'), pull('queued'), pull('running'), github('held', 'members')], config: { comment: { min_interval: '1s' } } });
    clock = new Clock(outpost.dir, Date.now());
    await clock.move(outpost.database);
    outpost.options.clock = clock;
    await outpost.spawn();
    machine = await Puller.add(outpost, 'm', 'running');
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: NUMBER, association: 'NONE' })));
    lease = await machine.take();
    await outpost.waitForApi(`pulls/${NUMBER}`, (view) => dispatchOf('held', view)?.state === 'held' && dispatchOf('queued', view)?.state === 'queued', { what: 'one dispatch is held and one queued' });
    await outpost.configure({ accelerators: [pull('stays')] });
    await outpost.reload();
  });
  after(async () => {
    await outpost?.close();
    clock?.close();
    await rig?.close();
  });

  test('its machine gets 403, and its running and queued work ends without a report', async () => {
    assert.equal((await machine.renew(lease)).status, 403);
    clock.advance(FINISH_MS);
    const view = await outpost.waitForApi(`pulls/${NUMBER}`, (v) => ['queued', 'running'].every((name) => dispatchOf(name, v)?.state === 'expired'), { timeout: 30_000, what: 'both dispatches expire' });
    assert.deepEqual(['queued', 'running'].map((name) => view.verdicts.find(({ accelerator }) => accelerator === name)?.status), ['MISS', 'MISS']);
    await until(() => /No report:/.test(comment()), { timeout: 10_000, what: 'the comment says that the reports are missing' });
    assert.equal((await outpost.get(`/api/v1/jobs/${lease.job_id}`)).status, 200, 'its job stays visible');
  });

  test('ok-to-test sends no dispatch to it', async () => {
    await rig.deliver('issue_comment', issueComment('created', { number: NUMBER, body: `@${rig.app.slug} ok-to-test`, association: 'MEMBER', author: 'alice', createdAt: new Date(clock.now() + 5000).toISOString() }));
    const view = await outpost.waitForApi(`pulls/${NUMBER}`, (v) => !['held', 'queued', 'sent'].includes(dispatchOf('held', v).state), { timeout: 30_000, what: 'the held dispatch ends' });
    assert.deepEqual([dispatchOf('held', view).state, dispatchOf('held', view).error], ['failed', 'no longer registered']);
    assert.equal(rig.dispatches({ repository: 'vendor/held' }).length, 0);
    await until(() => !/Held/.test(comment()), { timeout: 10_000, what: 'the comment has no held accelerator' });
  });
});
