// GitHub loses webhooks, refuses, limits, breaks and hangs. Outpost recovers by itself and duplicates no effect.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { fakeSha, issueComment, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Outpost, freePort, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const VENDOR = 'Ascend/pytorch';
const DISPATCHES = `/repos/${VENDOR}/dispatches`;

const accelerators = [{
  name: 'npu', title: 'NPU', level: 'L2', triggers: { pull_request: {}, push: { branches: ['main'] } }, runners: [{ name: 'ci', github: { repository: VENDOR } }],
}];

const dispatchOf = (rig, number) => rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: { payload } }) => payload.number === number });
const dispatchesOf = (rig, number) => rig.dispatches({ repository: VENDOR }).filter(({ client_payload: { payload } }) => payload.number === number);

describe('a GitHub that fails', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let next = 1;

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({ rig, accelerators, config: { comment: { enabled: false } } });
    await open(); // so that the token is cached
  });
  after(async () => {
    await outpost?.close();
    await rig?.close();
  });
  afterEach(() => rig.clearFaults());

  async function open({ wait = true } = {}) {
    const number = next++;
    const pull = rig.openPull(UPSTREAM, { number });
    const { status_code: code } = await rig.deliver('pull_request', pullRequestOf('opened', pull));
    assert.equal(code, 202);
    return { number, pull, dispatch: wait ? await dispatchOf(rig, number) : undefined };
  }
  const state = async (number) => (await outpost.api(`pulls/${number}`)).accelerators[0].dispatches[0]?.state;

  for (const [what, fault, requests] of [
    ['two server errors', { kind: 'status', status: 502, count: 2 }, 3],
    ['a reset connection', { kind: 'reset' }, 2],
    ['a secondary limit with Retry-After', { kind: 'secondary', retryAfter: 1 }, 2],
    ['a secondary limit with 429', { kind: 'secondary', status: 429, retryAfter: 1 }, 2],
    ['a primary limit', { kind: 'primary', resetIn: 2 }, 2],
    ['a token that GitHub no longer accepts', { kind: 'expired' }, 2],
  ]) {
    test(`${what}: the dispatch is sent once`, async () => {
      rig.fault({ ...fault, method: 'POST', path: DISPATCHES });
      const after = rig.requests().at(-1).seq;
      const { number } = await open();
      assert.equal(dispatchesOf(rig, number).length, 1);
      assert.equal(rig.requests({ method: 'POST', path: DISPATCHES, after }).length, requests);
    });
  }

  test('Retry-After is honoured', async () => {
    rig.fault({ kind: 'secondary', retryAfter: 3, method: 'POST', path: DISPATCHES });
    const after = rig.requests().at(-1).seq;
    await open();
    const [first, second] = rig.requests({ method: 'POST', path: DISPATCHES, after });
    assert.ok(Date.parse(second.time) - Date.parse(first.time) >= 3000);
  });

  test('a dispatch whose answer is lost is sent again with the same dispatch_id', async () => {
    rig.fault({ kind: 'reset', when: 'after', method: 'POST', path: DISPATCHES });
    const { number } = await open();
    await until(() => dispatchesOf(rig, number).length === 2, { timeout: 15_000 });
    const ids = dispatchesOf(rig, number).map(({ client_payload: { outpost: block } }) => block.dispatch_id);
    assert.equal(new Set(ids).size, 1);
  });

  test('a truncated and a slow answer do not lose a dispatch', async () => {
    rig.fault({ kind: 'truncate', method: 'POST', path: '/app/installations/*' });
    rig.fault({ kind: 'slow', ms: 1500, method: 'POST', path: DISPATCHES });
    rig.expireTokens();
    const { number } = await open();
    assert.equal(dispatchesOf(rig, number).length, 1);
  });

  test('a hanging request does not delay another one', async () => {
    rig.fault({ kind: 'hang', method: 'POST', path: DISPATCHES });
    const stuck = await open({ wait: false });
    await until(() => rig.faults.list()[0].struck === 1, { timeout: 10_000 });
    const { number } = await open();
    assert.equal(dispatchesOf(rig, number).length, 1);
    assert.equal(dispatchesOf(rig, stuck.number).length, 0);
  });

  for (const [what, kind] of [['422', 'unprocessable'], ['404', 'notFound']]) {
    test(`${what} is final: the dispatch fails and is not retried`, async () => {
      rig.fault({ kind, method: 'POST', path: DISPATCHES, count: 5 });
      const after = rig.requests().at(-1).seq;
      const { number } = await open({ wait: false });
      await until(async () => (await state(number)) === 'failed', { timeout: 10_000 });
      rig.clearFaults();
      await open();
      assert.equal(rig.requests({ method: 'POST', path: DISPATCHES, after }).filter(({ body }) => JSON.parse(body).client_payload.payload.number === number).length, 1);
    });
  }

  test('an effect in the outbox is sent after kill -9', async () => {
    const fault = rig.fault({ kind: 'status', status: 503, method: 'POST', path: DISPATCHES, count: 1000 });
    const { number } = await open({ wait: false });
    await until(() => fault.struck > 0, { timeout: 10_000 });
    await outpost.kill();
    rig.clearFaults();
    await outpost.spawn();
    await dispatchOf(rig, number);
    assert.equal(dispatchesOf(rig, number).length, 1);
  });

  test('GitHub saw no violation', () => assert.deepEqual(rig.violations(), []));
});

describe('webhooks that GitHub lost', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let stranded;

  before(async () => {
    rig = await startRig();
    stranded = await rig.deliver('push', push({}), { lost: true }); // before Outpost first reads the list, so it is only noted
    rig.openPull(UPSTREAM, { number: 1 });
    outpost = await Outpost.start({ rig, accelerators, config: { comment: { enabled: false }, reconcile: { interval: '300ms' } } });
    await until(() => seen() > 0, { what: 'Outpost reads the list first', timeout: 10_000 });
    await looks(2);
  });
  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  const seen = () => rig.requests({ method: 'GET', path: '/app/hook/deliveries' }).length;
  // Waits until the reconciler has read the list `count` more times.
  async function looks(count) {
    const start = seen();
    await until(() => seen() >= start + count, { timeout: 15_000, what: 'Outpost reads the list again' });
  }
  const attempts = (guid) => rig.deliveries.list().filter((one) => one.guid === guid && one.redelivery);

  test('with an empty database, Outpost only notes existing deliveries and pull requests', () => {
    assert.equal(attempts(stranded.guid).length, 0);
    assert.equal(rig.dispatches().length, 0);
  });

  test('Outpost requests a lost delivery again and acts on it once', async () => {
    const pull = rig.openPull(UPSTREAM, { number: 2 });
    const { guid } = await rig.deliver('pull_request', pullRequestOf('opened', pull), { lost: true });
    const { client_payload: sent } = await rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: one }) => one.payload.number === 2 });
    await looks(3);
    assert.ok(attempts(guid).length <= 1, 'one redelivery at most');
    assert.equal(dispatchesOf(rig, 2).length, 1);
    assert.equal(sent.payload.pull_request.head.sha, pull.headSha);
  });

  test('lost deliveries are redelivered in order, so that an ok-to-test finds its pull request', async () => {
    const pull = rig.openPull(UPSTREAM, { number: 31, association: 'NONE' });
    const opened = pullRequestOf('opened', pull);
    await rig.deliver('pull_request', opened, { lost: true });
    const when = new Date(Date.parse(opened.pull_request.updated_at) + 5000).toISOString();
    await rig.deliver('issue_comment', issueComment('created', { number: 31, body: `@${rig.app.slug} ok-to-test`, association: 'MEMBER', createdAt: when }), { lost: true });
    await outpost.waitForApi('pulls/31', (view) => view.accelerators[0]?.dispatches[0]?.state === 'sent', { timeout: 10_000 });
  });

  test('Outpost does not give deliveries up while GitHub cannot reach it', async () => {
    const target = rig.deliveries.target;
    const [first, second] = [41, 42].map((number) => pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    const remark = issueComment('created', { number: 41, body: 'hello' }); // it is answered 200 and not stored
    let lost;
    rig.setTarget(`http://127.0.0.1:${await freePort()}/`);
    try {
      const start = seen();
      lost = [await rig.deliver('pull_request', first), await rig.deliver('issue_comment', remark), await rig.deliver('pull_request', second)];
      await looks(8);
      // A busy machine delays the looks, and the pauses between two requests grow.
      await until(() => lost.flatMap(({ guid }) => attempts(guid)).length < seen() - start, { what: 'it looks more often than it requests one' });
    } finally {
      rig.setTarget(target);
    }
    await until(() => lost.every(({ guid }) => attempts(guid).some(({ status_code: code }) => code < 300)), { what: 'all of them arrive' });
  });

  test('Outpost finds a head that moved without a webhook and sends a new delivery_id', async () => {
    const pull = rig.updatePull(UPSTREAM, 2, { headSha: fakeSha('moved') });
    const { client_payload: sent } = await rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: one }) => one.payload.pull_request?.head.sha === pull.headSha });
    assert.match(sent.delivery_id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(sent.payload.action, 'synchronize');
    assert.equal(sent.payload.number, 2);
    const late = await rig.deliver('pull_request', pullRequestOf('synchronize', pull)); // the late webhook
    assert.equal(late.status_code, 202);
    await looks(3);
    assert.equal(dispatchesOf(rig, 2).filter(({ client_payload: { payload } }) => payload.pull_request.head.sha === pull.headSha).length, 1);
  });

  test('a webhook that arrives while Outpost reads the list causes one dispatch', async () => {
    const slow = rig.fault({ kind: 'slow', ms: 1000, method: 'GET', path: '/repos/pytorch/pytorch/pulls' });
    const updatedAt = new Date().toISOString();
    const pull = rig.openPull(UPSTREAM, { number: 3, updatedAt });
    await until(() => slow.struck === 1, { timeout: 15_000 });
    const { status_code: code } = await rig.deliver('pull_request', pullRequestOf('opened', pull, { updatedAt }));
    assert.equal(code, 202);
    await looks(2);
    assert.deepEqual(dispatchesOf(rig, 3).map(({ client_payload: { payload } }) => payload.action), ['opened']);
  });

  test('Outpost finds a branch that moved without a webhook', async () => {
    const after = rig.push(UPSTREAM);
    const { event_type: event, client_payload: sent } = await rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: one }) => one.payload.after === after });
    assert.equal(event, 'push');
    assert.equal(sent.payload.ref, 'refs/heads/main');
  });

  test('GitHub saw no violation', () => assert.deepEqual(rig.violations(), []));
});
