// Finding 1: a stranger opens a second pull request with the head of a member's. Both share the results of that head. No command
// or event of the stranger ends the member's run or removes its results. tests/unit/test_store_twins.c has the whole matrix.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { startIssuer } from '../github/oidc.mjs';
import { issueComment, pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startDispatchVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const GREEN = [{ workflow: 'ci', job: 'test', conclusion: 'success', tests: [{ suite: 'model', name: 'llama3', status: 'PASS', duration: 1 }] }];
const device = (name, trust, more = {}) => ({
  name, title: name.toUpperCase(), level: 'L2', trust, triggers: { pull_request: {} }, runners: [{ name: 'ci', github: { repository: `vendor/${name}` } }], ...more,
});

describe('two pull requests with one head', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let outpost;
  let vendor;
  let next = 40;
  let commentId = 90_000;

  before(async () => {
    [rig, issuer] = await Promise.all([startRig({ repositories: [UPSTREAM, 'vendor/green', 'vendor/mute', 'vendor/gate', 'vendor/open'].map((name) => ({ name })) }), startIssuer()]);
    outpost = await Outpost.start({
      rig, issuer,
      accelerators: [device('green', 'members'), device('mute', 'members', { triggers: { pull_request: { drafts: false } } }), device('gate', 'approved'), device('open', 'anyone')],
    });
    vendor = startDispatchVendor({ rigUrl: rig.url, tokenUrl: issuer.tokenUrl, callbackUrl: `${outpost.url}/github/callback`, repository: 'vendor/green', script: GREEN });
  });
  after(async () => {
    await vendor?.stop();
    await outpost?.close();
    await Promise.all([issuer?.close(), rig?.close()]);
  });
  afterEach(() => assert.deepEqual(rig.violations(), []));

  // GitHub's times have whole seconds, so each event gets a later one. On a busy machine more time passes between two events.
  let now = Date.now();
  const later = () => {
    now = Math.max(now, Date.now()) + 2000;
    return new Date(now).toISOString();
  };
  const processed = () => until(async () => (await outpost.api('status')).deliveries.accepted === 0, { what: 'no delivery waits' });
  const send = async (event, payload) => {
    assert.equal((await rig.deliver(event, payload)).status_code, 202);
    await processed();
  };
  const states = ({ accelerators }) => Object.fromEntries(accelerators.map(({ name, dispatches }) => [name, dispatches.map(({ state }) => state).join()]));
  const shown = async (pull) => {
    const view = await outpost.api(`pulls/${pull.number}`);
    return { ...states(view), cells: view.verdicts.map(({ accelerator, test: name, status }) => `${accelerator} ${name} ${status}`).join() };
  };
  const SHARED = { green: 'done', mute: 'sent', gate: 'held', open: 'sent', cells: 'green llama3 PASS' };

  // Opens a member's pull request that is done on one accelerator, sent to two and held on another, then a stranger's with the
  // same head.
  const openBoth = async () => {
    const first = rig.openPull(UPSTREAM, { number: next++, association: 'MEMBER', author: 'alice' });
    await send('pull_request', pullRequestOf('opened', first));
    await until(async () => { try { assert.deepEqual(await shown(first), SHARED); return true; } catch { return false; } }, { timeout: 20_000, what: 'the first one has its states' });
    const twin = rig.openPull(UPSTREAM, { number: next++, association: 'NONE', author: 'mallory', headSha: first.headSha });
    await send('pull_request', pullRequestOf('opened', twin, { updatedAt: later() }));
    assert.deepEqual(await shown(first), SHARED);
    assert.deepEqual(await shown(twin), SHARED);
    return { first, twin };
  };
  const say = async (pull, words, more = {}) => {
    const id = commentId++;
    await send('issue_comment', issueComment('created', {
      number: pull.number, author: 'mallory', association: 'NONE', pullAuthor: pull.author, createdAt: later(), ...more, id, body: `@${rig.app.slug} ${words}` }));
    return id;
  };
  const reacted = (id, content) => until(() => rig.reactions(UPSTREAM, id)[0]?.content === content, { timeout: 10_000, what: `${content} on ${id}` });

  test('commands of the second one\'s author are refused with a reply and have no effect', async () => {
    const { first, twin } = await openBoth();
    const n = rig.dispatches().length;
    for (const association of ['NONE', 'FIRST_TIMER', 'FIRST_TIME_CONTRIBUTOR', 'CONTRIBUTOR', 'MANNEQUIN'])
      for (const words of ['retest', 'retest green', 'cancel'])
        await reacted(await say(twin, words, { association }), 'confused');
    for (const words of ['ok-to-test', `ok-to-test ${first.headSha.slice(0, 12)}`, `ok-to-test ${first.headSha}`, 'ok-to-test cancel'])
      await reacted(await say(twin, words), 'confused');
    assert.deepEqual(await shown(first), SHARED);
    assert.equal(rig.dispatches().length, n);
    const reply = await until(() => rig.comments(UPSTREAM, twin.number).map(({ body }) => body).find((body) => body.includes('Another open pull request')), { timeout: 10_000, what: 'a reply' });
    assert.match(reply, new RegExp(`#${first.number}, has the same head`));
  });

  test('commands of the stranger on the first one have no effect', async () => {
    const { first } = await openBoth();
    for (const words of ['retest', 'retest green', 'cancel', 'ok-to-test']) await reacted(await say(first, words), 'confused');
    assert.deepEqual(await shown(first), SHARED);
  });

  test('events of the second one neither start a round nor cancel or hold work', async () => {
    const { first, twin } = await openBoth();
    const n = rig.dispatches().length;
    const events = [['edited', { changes: { base: {} } }], ['closed'], ['reopened'], ['converted_to_draft', { draft: true }], ['ready_for_review'], ['edited', { changes: { base: {} } }]];
    for (const [action, more] of events) {
      await send('pull_request', pullRequestOf(action, twin, { updatedAt: later(), ...more }));
      assert.deepEqual(await shown(first), SHARED, action);
    }
    assert.equal(rig.dispatches().length, n, 'no vendor receives a dispatch');
  });

  test('a member\'s command on either one affects both', async () => {
    const { first, twin } = await openBoth();
    await reacted(await say(twin, 'retest green', { association: 'MEMBER', author: 'bob' }), 'eyes');
    await until(async () => (await shown(first)).green === 'done,done', { timeout: 20_000, what: 'the retest is done, because the head is a member\'s' });
    await reacted(await say(twin, `ok-to-test ${twin.headSha.slice(0, 12)}`, { association: 'MEMBER', author: 'bob' }), 'rocket');
    await until(async () => (await shown(first)).gate === 'sent', { timeout: 10_000, what: 'the held dispatch is released' });
    await reacted(await say(twin, 'cancel', { association: 'COLLABORATOR', author: 'bob' }), 'eyes');
    assert.deepEqual(await shown(first), { ...SHARED, green: 'done,done', mute: 'cancelled', gate: 'cancelled', open: 'cancelled' });
  });

  test('if the first one is closed, the stranger\'s retest is held where strangers may not run, and the results stay', async () => {
    const { first, twin } = await openBoth();
    await send('pull_request', pullRequestOf('closed', first, { updatedAt: later() }));
    const id = await say(twin, 'retest green');
    await reacted(id, 'confused');
    const after_ = await shown(twin);
    assert.deepEqual([after_.green, after_.cells], ['held,done', 'green llama3 PASS']);
    await until(() => /\*\*Held:\*\*.*GREEN/.test(rig.comments(UPSTREAM, twin.number).map(({ body }) => body).join()), { timeout: 15_000, what: 'the comment says that a round is held' });
    await reacted(await say(twin, 'ok-to-test', { association: 'MEMBER', author: 'bob' }), 'rocket');
    await until(async () => (await shown(twin)).green === 'done,done', { timeout: 20_000, what: 'the released round is done' });
  });

  test('finding 7: a prefix of a SHA does not release a head that is newer than the comment', async () => {
    const pull = rig.openPull(UPSTREAM, { number: next++, association: 'NONE', author: 'mallory' });
    const written = new Date(now - 3_600_000).toISOString();
    await send('pull_request', pullRequestOf('opened', pull, { updatedAt: later() }));
    for (const digits of [7, 12, 39]) await reacted(await say(pull, `ok-to-test ${pull.headSha.slice(0, digits)}`, { association: 'MEMBER', author: 'bob', createdAt: written }), 'confused');
    assert.equal((await shown(pull)).gate, 'held');
    await reacted(await say(pull, `ok-to-test ${pull.headSha}`, { association: 'MEMBER', author: 'bob', createdAt: written }), 'rocket');
    await until(async () => (await shown(pull)).gate === 'sent', { timeout: 10_000, what: 'the full SHA releases it' });
  });
});
