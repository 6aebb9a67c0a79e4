// Trust: each policy with each kind of runner and author, and the commands of members.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fakeSha, issueComment, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, startWebhookVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';

const UPSTREAM = 'pytorch/pytorch';
const VENDOR = 'Ascend/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const MEMBERS = ['OWNER', 'MEMBER', 'COLLABORATOR'];
const STRANGERS = ['FIRST_TIME_CONTRIBUTOR', 'FIRST_TIMER', 'MANNEQUIN', 'NONE'];
// policy: the authors whose changes run at once, and the reason to hold the others
const POLICIES = {
  anyone: { admits: [...MEMBERS, 'CONTRIBUTOR', ...STRANGERS] },
  contributors: { admits: [...MEMBERS, 'CONTRIBUTOR'], why: /has not contributed/ },
  default: { admits: [...MEMBERS, 'CONTRIBUTOR'], why: /has not contributed/ },
  members: { admits: MEMBERS, why: /not a member/ },
  approved: { admits: [], why: /waits for a member/ },
  merged: { admits: [], why: /only merged/ },
};
const KINDS = ['github', 'webhook', 'pull'];
const RELEASED = ['approved', 'contributors', 'default', 'members'];

describe('trust', { skip: notBuilt }, () => {
  let rig;
  let lab;
  let prover; // the CI of the accelerator `proved`, which always passes and supports reruns
  let outpost;
  let farm; // a machine of the accelerator contributors-pull
  let next = 500;

  const runnerOf = (kind) => ({
    github: { name: 'ci', github: { repository: VENDOR } },
    webhook: { name: 'lab', webhook: { url: lab.url, secret: 'hook' } },
    pull: { name: 'farm', pull: { labels: [], max_parallel: 50 } },
  })[kind];
  const accelerator = (policy, kind, more = {}) => ({
    name: `${policy}-${kind}`, title: `${policy} ${kind}`, level: 'L2', ...(policy !== 'default' && { trust: policy }), runners: [runnerOf(kind)],
    triggers: { pull_request: {}, push: { branches: ['main'] } }, ...more,
  });

  before(async () => {
    const passed = [{ workflow: 'prover', job: 'suite', conclusion: 'success', tests: [{ suite: 'model', name: 'llama3', status: 'PASS' }] }];
    [rig, lab, prover] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET }), startWebhookVendor({ secret: SECRET, script: passed })]);
    const accelerators = Object.keys(POLICIES).flatMap((policy) => KINDS.map((kind) => accelerator(policy, kind)));
    accelerators.push({ ...accelerator('contributors', 'pull'), name: 'on-label', triggers: { pull_request: { label: 'required' } } });
    accelerators.push({ ...accelerator('approved', 'webhook'), name: 'proved', triggers: { pull_request: { label: 'required' } }, runners: [{ name: 'prover', webhook: { url: prover.url, secret: 'hook' }, reruns: 'tests' }] });
    outpost = await Outpost.start({
      rig, accelerators,
      secrets: Object.fromEntries(accelerators.filter(({ runners }) => runners[0].webhook).map(({ name }) => [name, { hook: SECRET }])),
    });
    farm = await Puller.add(outpost, 'machine', 'contributors-pull');
  });
  after(async () => {
    await outpost?.close();
    await Promise.all([lab?.stop(), prover?.stop(), rig?.close()]);
  });

  const send = async (event, payload) => assert.equal((await rig.deliver(event, payload)).status_code, 202);
  const open = async (association, options) => {
    const pull = rig.openPull(UPSTREAM, { number: next++, association, ...options });
    await send('pull_request', pullRequestOf('opened', pull));
    return pull;
  };
  const newer = async (pull) => {
    const after_ = rig.updatePull(UPSTREAM, pull.number, { headSha: fakeSha(`newer ${pull.headSha}`) });
    await send('pull_request', pullRequestOf('synchronize', after_, { before: pull.headSha }));
    return after_;
  };
  const say = (pull, what, more = {}) => send('issue_comment', issueComment('created', { number: pull.number, body: `@${rig.app.slug} ${what}`, association: 'MEMBER', author: 'alice', createdAt: soon(), ...more }));
  // GitHub's times have whole seconds, so a comment after a push needs a later second.
  const soon = () => new Date(Date.now() + 5000).toISOString();
  const latest = (view) => Object.fromEntries(view.accelerators.map(({ name, dispatches }) => [name, dispatches[0]]));
  const settled = (pull, fits, what) => outpost.waitForApi(`commits/${pull.headSha}`, (view) => fits(latest(view)), { timeout: 15_000, what }).then(latest);
  const states = (all, policy) => KINDS.map((kind) => all[`${policy}-${kind}`]?.state);
  // Waits until all deliveries so far are processed.
  const processed = () => until(async () => (await outpost.api('status')).deliveries.accepted === 0, { what: 'no delivery waits' });
  const staysHeld = async (pull) => {
    await processed();
    const all = latest(await outpost.api(`commits/${pull.headSha}`));
    for (const policy of RELEASED) assert.deepEqual(states(all, policy), ['held', 'held', 'held'], policy);
    assert.equal((await farm.claim()).status, 204, 'held work cannot be claimed');
  };
  const comment = (pull, fits, what) => until(() => fits(rig.comments(UPSTREAM, pull.number)[0]?.body ?? ''), { timeout: 10_000, what });

  for (const association of [...MEMBERS, 'CONTRIBUTOR', 'NONE', 'FIRST_TIME_CONTRIBUTOR'])
    test(`each policy holds or sends a pull request of ${association}, on each kind of runner`, async () => {
      const pull = await open(association);
      const all = await settled(pull, (one) => Object.keys(one).length === 18 && Object.values(one).every(({ state, runner_kind: kind }) => state === 'held' || state !== 'queued' || kind === 'pull'), 'all dispatches are sent or held');
      for (const [policy, { admits, why }] of Object.entries(POLICIES))
        for (const kind of KINDS) {
          const { state, held_reason: reason } = all[`${policy}-${kind}`];
          if (admits.includes(association)) assert.deepEqual([state !== 'held', reason], [true, null], `${policy}-${kind}`);
          else {
            assert.equal(state, 'held', `${policy}-${kind}`);
            assert.match(reason, why);
          }
        }
      const sent = rig.dispatches({ repository: VENDOR }).filter(({ client_payload: { payload } }) => payload.number === pull.number);
      const listed = new Set(sent.flatMap(({ client_payload: { outpost: block } }) => block.accelerators));
      assert.deepEqual([...listed].sort(), Object.entries(POLICIES).filter(([, { admits }]) => admits.includes(association)).map(([policy]) => `${policy}-github`).sort(), 'no dispatch lists a held accelerator');
      const got = new Set(lab.events.filter(({ body }) => body.payload.number === pull.number).flatMap(({ body }) => body.outpost.accelerators));
      assert.deepEqual([...got].sort(), Object.entries(POLICIES).filter(([, { admits }]) => admits.includes(association)).map(([policy]) => `${policy}-webhook`).sort());
      await comment(pull, (body) => /\*\*Held:\*\*/.test(body) && /only merged changes run here/.test(body) && /ok-to-test/.test(body), 'the comment says which accelerators are held and why');
      const isAdmitted = POLICIES.contributors.admits.includes(association);
      const { status, json: lease } = await farm.claim();
      assert.equal(status, isAdmitted ? 200 : 204);
      if (isAdmitted) assert.equal(lease.change.head_sha, pull.headSha);
    });

  test('a merged commit runs under every policy', async () => {
    const sha = fakeSha('merged');
    await send('push', push({ branch: 'main', after: sha }));
    const all = await settled({ headSha: sha }, (one) => Object.keys(one).length === 18);
    for (const { state, held_reason: reason } of Object.values(all)) assert.deepEqual([state !== 'held', reason], [true, null]);
    assert.equal((await farm.take()).change.head_sha, sha);
  });

  test('only a member can release, not the author, a bot, a quotation or an edit', async () => {
    const pull = await open('NONE');
    await settled(pull, (one) => one['contributors-pull']?.state === 'held');
    for (const association of ['CONTRIBUTOR', ...STRANGERS]) await say(pull, 'ok-to-test', { association });
    await say(pull, 'ok-to-test', { bot: true });
    await say(pull, 'ok-to-test', { body: `> @${rig.app.slug} ok-to-test` });
    await say(pull, 'ok-to-test', { body: `@somebody-else ok-to-test` });
    await say(pull, 'ok-to-test please');
    assert.equal((await rig.deliver('issue_comment', issueComment('edited', { number: pull.number, body: `@${rig.app.slug} ok-to-test` }))).status_code, 200);
    await say(pull, `ok-to-test ${fakeSha('another')}`);
    await staysHeld(pull);
  });

  test('a member releases all accelerators except those that run only merged code', async () => {
    const pull = await open('NONE');
    await settled(pull, (one) => one['contributors-pull']?.state === 'held');
    const waiting = farm.claim({ wait: 30 });
    await say(pull, 'ok-to-test');
    const { status, json: lease } = await waiting;
    assert.deepEqual([status, lease.change.head_sha], [200, pull.headSha]);
    const all = await settled(pull, (one) => RELEASED.every((policy) => !states(one, policy).includes('held')));
    assert.deepEqual(states(all, 'merged'), ['held', 'held', 'held']);
    await until(() => lab.events.some(({ body }) => body.payload.number === pull.number && body.outpost.accelerators[0] === 'approved-webhook'));
    await until(() => rig.dispatches({ repository: VENDOR }).some(({ client_payload: { payload, outpost: block } }) => payload.number === pull.number && block.accelerators.includes('approved-github')));
  });

  test('ok-to-test with a SHA releases that head, and a newer head is held again', async () => {
    const first = await open('NONE');
    await settled(first, (one) => one['contributors-pull']?.state === 'held');
    const second = await newer(first);
    await settled(second, (one) => one['contributors-pull']?.state === 'held');
    await say(second, `ok-to-test ${first.headSha}`);
    await staysHeld(second);
    await say(second, 'ok-to-test', { createdAt: '2020-01-01T00:00:00Z' }); // written before that head was pushed
    await staysHeld(second);
    await say(second, `ok-to-test ${second.headSha.slice(0, 10)}`);
    await settled(second, (one) => one['contributors-pull']?.state === 'queued');
    assert.equal((await farm.take()).change.head_sha, second.headSha);
    const third = await newer(second);
    await settled(third, (one) => one['contributors-pull']?.state === 'held');
    assert.equal((await farm.claim()).status, 204);
  });

  test('ok-to-test cancel cancels held work and names the member', async () => {
    const pull = await open('NONE');
    await settled(pull, (one) => one['contributors-pull']?.state === 'held');
    await say(pull, 'ok-to-test cancel', { association: 'CONTRIBUTOR', author: 'mallory' });
    await staysHeld(pull);
    await say(pull, 'ok-to-test cancel', { author: 'bob' });
    const all = await settled(pull, (one) => RELEASED.every((policy) => states(one, policy).every((state) => state === 'cancelled')));
    assert.equal(all['members-pull'].error, 'declined by bob');
    assert.equal(all['members-pull'].held_reason, null);
    assert.equal(all['merged-pull'].state, 'held');
    assert.notEqual(all['anyone-webhook'].state, 'cancelled', 'work that is not held stays');
    assert.equal(all['anyone-pull'].state, 'queued');
    assert.equal((await farm.claim()).status, 204);
    await comment(pull, (body) => /members pull: `declined by bob`/.test(body), 'the comment names the member who declined');
    const { dispatches } = JSON.parse((await outpost.ctl('--json', 'dispatches', '--pr', String(pull.number))).stdout);
    assert.equal(dispatches.find(({ accelerator: name }) => name === 'members-pull').reason, 'declined by bob');
    // A later ok-to-test releases it.
    await say(pull, 'ok-to-test');
    assert.equal((await farm.take()).change.head_sha, pull.headSha);
  });

  test('ok-to-test cancel after a release cancels queued work, keeps started work, and holds the next round', async () => {
    const pull = await open('NONE');
    await settled(pull, (one) => one['contributors-pull']?.state === 'held');
    await say(pull, 'ok-to-test');
    assert.equal((await farm.take()).change.head_sha, pull.headSha);
    await settled(pull, (one) => one['approved-pull'].state === 'queued' && one['approved-webhook'].state === 'acknowledged' && one['approved-github'].state === 'sent');
    await say(pull, 'ok-to-test cancel');
    const all = await settled(pull, (one) => one['approved-pull'].state === 'cancelled');
    assert.deepEqual(['contributors-pull', 'approved-webhook', 'approved-github'].map((name) => all[name].state), ['running', 'acknowledged', 'sent']);
    await send('pull_request', pullRequestOf('edited', pull, { changes: { base: {} }, updatedAt: new Date(Date.now() + 20_000).toISOString() }));
    await settled(pull, (one) => RELEASED.every((policy) => states(one, policy).every((state) => state === 'held')) && one['anyone-github'].state === 'sent');
  });

  test('closing a pull request cancels its held work', async () => {
    const pull = await open('NONE');
    await settled(pull, (one) => one['contributors-pull']?.state === 'held');
    await send('pull_request', pullRequestOf('closed', pull, { updatedAt: new Date(Date.now() + 2000).toISOString() }));
    await settled(pull, (one) => Object.values(one).every(({ state }) => state === 'cancelled'), 'no dispatch of it is held');
    await say(pull, 'ok-to-test');
    await processed();
    assert.equal((await farm.claim()).status, 204);
  });

  test('a held pull request runs at its next event when its author is trusted by then', async () => {
    const pull = await open('NONE');
    await settled(pull, (one) => one['members-github']?.state === 'held');
    const merged = rig.updatePull(UPSTREAM, pull.number, { association: 'CONTRIBUTOR' });
    await staysHeld(pull);
    await send('pull_request', pullRequestOf('edited', merged, { changes: { base: {} }, updatedAt: new Date(Date.now() + 2000).toISOString() }));
    const all = await settled(pull, (one) => one['contributors-github']?.state === 'sent', 'the accelerators that trust contributors run it');
    assert.ok(!states(all, 'contributors').includes('held'));
    for (const policy of ['members', 'approved']) assert.deepEqual(states(all, policy), ['held', 'held', 'held'], policy);
    await send('pull_request', pullRequestOf('closed', merged, { updatedAt: new Date(Date.now() + 4000).toISOString() }));
    await processed();
  });

  test('a label adds its accelerators but does not release them', async () => {
    const machine = await Puller.add(outpost, 'labelled', 'on-label');
    const pull = await open('NONE');
    await settled(pull, (one) => one['contributors-pull']?.state === 'held');
    assert.ok(!('on-label' in latest(await outpost.api(`commits/${pull.headSha}`))));
    await send('pull_request', pullRequestOf('labeled', pull, { label: 'ciflow/crcr/on-label', labels: ['ciflow/crcr/on-label'] }));
    await settled(pull, (one) => one['on-label']?.state === 'held');
    assert.equal((await machine.claim()).status, 204);
    await say(pull, 'ok-to-test');
    assert.equal((await machine.take()).change.head_sha, pull.headSha);
  });

  test('only members can stress a released head; a second pull request with that head gives no further rights', async () => {
    let comments = 880_000;
    const asked = (pull, more, words = 'stress model/llama3 ×1') => {
      const id = comments++;
      return say(pull, words, { id, ...more }).then(() => id);
    };
    const reacted = (id, content, what) => until(() => rig.reactions(UPSTREAM, id)[0]?.content === content, { timeout: 15_000, what: `${content} on ${what}` });
    const runs = () => prover.events.filter(({ event }) => event === 'experiment');
    const planned = async (pull) => (await outpost.api(`commits/${pull.headSha}`)).accelerators.find(({ name }) => name === 'proved').experiments;
    const replied = (pull, id) => until(() => rig.comments(UPSTREAM, pull.number).some(({ body }) => body.startsWith(`<!-- outpost:reply:${id}:stress -->`)), { timeout: 60_000, what: `both rates for ${id}` });

    const pull = await open('NONE', { author: 'dora', labels: ['ciflow/crcr/proved'] });
    await settled(pull, (one) => one.proved?.state === 'held');
    await reacted(await asked(pull, { association: 'OWNER' }), 'confused', 'a member, while the head is held');
    await say(pull, 'ok-to-test');
    await settled(pull, (one) => one.proved?.state === 'done');
    assert.deepEqual(await planned(pull), [], 'a release starts no experiment');

    for (const association of ['CONTRIBUTOR', ...STRANGERS]) await reacted(await asked(pull, { association, author: `x-${association.toLowerCase()}` }), 'confused', association);
    await reacted(await asked(pull, { association: 'CONTRIBUTOR', author: 'dora' }), 'confused', 'the author');
    assert.deepEqual(await planned(pull), []);
    for (const association of MEMBERS) {
      const id = await asked(pull, { association });
      await reacted(id, 'eyes', association);
      await replied(pull, id);
    }
    assert.equal(runs().length, 2 * MEMBERS.length, 'each member\'s command runs on the head and on the merge base');
    for (const { body: { payload, outpost: { experiment } } } of runs()) assert.equal(payload.head_sha, experiment.side === 'head' ? pull.headSha : pull.baseSha);

    const twin = await open('NONE', { author: 'mallory', headSha: pull.headSha });
    await processed();
    for (const one of [pull, twin]) await reacted(await asked(one, { association: 'NONE', author: 'mallory' }), 'confused', 'the second author');
    assert.equal(runs().length, 2 * MEMBERS.length);
    const id = await asked(twin, {});
    await reacted(id, 'eyes', 'a member on the second');
    await replied(twin, id);
    assert.equal(runs().length, 2 * MEMBERS.length + 2, 'the shared head is released');

    await say(pull, 'ok-to-test cancel');
    await processed();
    await reacted(await asked(pull, {}), 'confused', 'a member, after the release was withdrawn');

    const newer_ = await newer(pull);
    await settled(newer_, (one) => one.proved?.state === 'held');
    await reacted(await asked(newer_, {}), 'confused', 'a newer head is held again');
    // After the release only new commands run. The refused ones are not kept.
    await say(newer_, 'ok-to-test');
    await settled(newer_, (one) => one.proved?.state === 'done');
    const last = await asked(newer_, {});
    await reacted(last, 'eyes', 'the newer head is released');
    await replied(newer_, last);
    assert.deepEqual(runs().slice(2 * MEMBERS.length + 2).map(({ body }) => body.outpost.experiment.sha).sort(), [newer_.headSha, newer_.baseSha].sort());
  });
});
