// Commands to the bot in comments: their effects and answers, who may give them, and that no command runs twice.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { githubClaims, startIssuer } from '../github/oidc.mjs';
import { fakeSha, issueComment, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startDispatchVendor, startSilentVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const REPLIES = { method: 'POST', path: /\/issues\/\d+\/comments$/ };
const REACTIONS = { method: 'POST', path: /\/reactions$/ };
const one = (status, name) => ({ suite: 'model', name, status, duration: 1 });
const GREEN = [{ workflow: 'ci', job: 'test', conclusion: 'success', tests: [one('PASS', 'llama3')] }];
const RED = [{ workflow: 'ci', job: 'test', conclusion: 'failure', tests: [one('FAIL', 'Qwen')] }];
const device = (name, more = {}) => ({
  name, title: name.toUpperCase(), level: 'L2', triggers: { pull_request: {}, push: { branches: ['main'] } },
  runners: [{ name: 'ci', github: { repository: `vendor/${name}` } }], ...more,
});

describe('commands', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let lab;
  let outpost;
  const vendors = [];
  let next = 900;
  let commentId = 50_000;

  before(async () => {
    [rig, issuer, lab] = await Promise.all([
      startRig({ repositories: [UPSTREAM, 'vendor/red', 'vendor/green', 'vendor/mute'].map((name) => ({ name })) }), startIssuer(), startSilentVendor({ secret: SECRET })]);
    outpost = await Outpost.start({
      rig, issuer, secrets: { lab: { hook: SECRET } },
      accelerators: [device('red'), device('green'), device('mute'),
        device('lab', { trust: 'contributors', runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }),
        device('labelled', { triggers: { pull_request: { label: 'required' } }, runners: [{ name: 'farm', pull: { labels: [], max_parallel: 1 } }] })],
    });
    for (const [repository, script] of [['vendor/red', RED], ['vendor/green', GREEN]])
      vendors.push(startDispatchVendor({ rigUrl: rig.url, tokenUrl: issuer.tokenUrl, callbackUrl: `${outpost.url}/github/callback`, repository, script }));
  });
  after(async () => {
    await Promise.all(vendors.map((vendor) => vendor.stop()));
    await outpost?.close();
    await Promise.all([lab?.stop(), issuer?.close(), rig?.close()]);
  });
  afterEach(() => {
    rig.clearFaults();
    assert.deepEqual(rig.violations(), []);
  });

  const latest = (view) => Object.fromEntries(view.accelerators.map(({ name, dispatches }) => [name, dispatches[0]]));
  const wait = (pull, fits, what) => outpost.waitForApi(`pulls/${pull.number}`, (view) => fits(latest(view), view), { timeout: 20_000, what }).then(latest);
  const isDone = (all) => all.red?.state === 'done' && all.green?.state === 'done' && all.lab?.state === 'acknowledged';
  const open = async (options = {}) => {
    const pull = rig.openPull(UPSTREAM, { number: next++, association: 'CONTRIBUTOR', author: 'dora', ...options });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    return pull;
  };
  const opened = async () => {
    const pull = await open();
    await wait(pull, isDone, 'all but the lab have reported');
    return pull;
  };
  // Writes a comment and returns its id once its delivery has been processed.
  const say = async (pull, words, more = {}) => {
    const id = more.id ?? commentId++;
    const body = more.body ?? words.split('\n').map((line) => `@${rig.app.slug} ${line}`).join('\n');
    const payload = issueComment(more.action ?? 'created', {
      number: pull.number, author: 'alice', association: 'MEMBER', pullAuthor: 'dora', ...more, id, body });
    assert.equal((await rig.deliver('issue_comment', payload)).status_code, more.status ?? 202);
    await until(async () => (await outpost.api('status')).deliveries.accepted === 0, { what: 'no delivery waits' });
    return id;
  };
  const reactions = (id) => rig.reactions(UPSTREAM, id).map(({ content }) => content);
  const reacted = (id, content) => until(() => reactions(id)[0] === content, { timeout: 10_000, what: `${content} on ${id}, not ${reactions(id)}` });
  const replies = (pull) => rig.comments(UPSTREAM, pull.number).map(({ body }) => body).filter((body) => body.startsWith('<!-- outpost:reply:'));
  const replied = (pull, n = 1) => until(() => replies(pull).length >= n && replies(pull), { timeout: 10_000, what: 'a reply' });
  const sent = (repository, pull) => rig.dispatches({ repository }).filter(({ client_payload: { payload } }) => payload.number === pull.number);
  const hooks = (pull) => lab.events.filter(({ body }) => body.payload.number === pull.number);
  const deliveries = async () => JSON.parse((await outpost.ctl('--json', 'deliveries', '--limit', '5')).stdout).deliveries;

  test('retest reruns only what is red, not what passed or still runs', async () => {
    const pull = await opened();
    const id = await say(pull, 'retest', { author: 'dora', association: 'CONTRIBUTOR' });
    await reacted(id, 'eyes');
    await wait(pull, (all) => all.red.state === 'done' && sent('vendor/red', pull).length === 2, 'red has run again');
    const [first, second] = sent('vendor/red', pull).map(({ client_payload: payload }) => payload);
    assert.deepEqual([second.payload.action, second.outpost.action], ['synchronize', 'retest']);
    assert.notEqual(second.delivery_id, first.delivery_id);
    assert.match(second.delivery_id, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    assert.equal(second.payload.pull_request.head.sha, pull.headSha);
    assert.deepEqual([sent('vendor/green', pull).length, hooks(pull).length], [1, 1]);
    // The same comment under another GUID, then a replay of its own delivery.
    await say(pull, 'retest', { author: 'dora', association: 'CONTRIBUTOR', id });
    const [{ state, error, guid }] = await deliveries();
    assert.deepEqual([state, error], ['ignored', 'this comment was handled before']);
    await outpost.ctl('replay', guid);
    await until(async () => (await outpost.api('status')).deliveries.accepted === 0);
    assert.equal(sent('vendor/red', pull).length, 2);
    assert.deepEqual(replies(pull), []);
    // A retest by name also reruns what passed.
    await reacted(await say(pull, 'retest green/model'), 'eyes');
    await until(() => sent('vendor/green', pull).length === 2, { what: 'green again' });
  });

  test('cancel ends running dispatches and names the member, and a retest starts them again', async () => {
    const pull = await opened();
    await reacted(await say(pull, 'cancel'), 'eyes');
    const all = await wait(pull, (one_) => one_.lab.state === 'cancelled');
    assert.equal(all.lab.error, 'cancelled by alice');
    assert.deepEqual([all.red.state, all.green.state], ['done', 'done']);
    await until(() => hooks(pull).length === 2, { what: 'the lab receives the cancel' });
    assert.equal(hooks(pull)[1].headers?.['x-outpost-event'] ?? hooks(pull)[1].event, 'cancel');
    await until(() => /`cancelled by alice`/.test(rig.comments(UPSTREAM, pull.number).map(({ body }) => body).join('\n')), { timeout: 10_000, what: 'the comment names the member' });
    await reacted(await say(pull, 'cancel'), 'confused');
    assert.match((await replied(pull))[0], /Nothing runs for this head\./);
    await reacted(await say(pull, 'retest lab'), 'eyes');
    await wait(pull, (one_) => one_.lab.state === 'acknowledged');
    assert.equal(hooks(pull).length, 3);
  });

  test('cancel reaches a GitHub vendor as one `closed`, and a report on it is ignored', async () => {
    const pull = await opened();
    const events = () => sent('vendor/mute', pull).map(({ client_payload: { payload, outpost: block } }) => `${payload.action} of ${block.action}`);
    await reacted(await say(pull, 'cancel'), 'eyes');
    await until(() => events().length === 2, { what: 'closed' });
    const { delivery_id: delivery, event_type: type } = sent('vendor/mute', pull)[1].client_payload;
    assert.notEqual(delivery, sent('vendor/mute', pull)[0].client_payload.delivery_id);
    const token = await issuer.mint(githubClaims('vendor/mute'));
    const report = await post(`${outpost.url}/github/callback`, token, { event_type: type, delivery_id: delivery, payload: {}, workflow: { status: 'completed', conclusion: 'success', name: 'ci', run_id: '7' } });
    assert.deepEqual([report.status, report.body], [200, { ok: true, status: 'ignored' }]);
    assert.equal(latest(await outpost.api(`pulls/${pull.number}`)).mute.state, 'cancelled');
    await reacted(await say(pull, 'retest mute'), 'eyes');
    await wait(pull, (all) => all.mute.state === 'sent');
    await reacted(await say(pull, 'cancel'), 'eyes');
    await until(() => events().length === 4, { what: 'closed again' });
    rig.updatePull(UPSTREAM, pull.number, { state: 'closed' });
    await rig.deliver('pull_request', pullRequestOf('closed', pull, { updatedAt: new Date(Date.now() + 2000).toISOString() }));
    await until(() => sent('vendor/red', pull).some(({ client_payload: { payload } }) => payload.action === 'closed'));
    assert.deepEqual(events(), ['opened of opened', 'closed of cancel', 'synchronize of retest', 'closed of cancel'], 'a cancelled dispatch gets no second `closed`');
  });

  test('status, the list and errors get one reply each, and typed text does not become markup', async () => {
    const pull = await opened();
    await reacted(await say(pull, 'status'), 'eyes');
    const [status] = await replied(pull);
    assert.match(status, /RED/);
    assert.match(status, /- GREEN: finished, 1 passed/);
    assert.match(status, /- LAB: at work/);
    assert.ok(!status.includes('outpost:results'));
    await reacted(await say(pull, '?'), 'eyes');
    assert.match((await replied(pull, 2))[1], new RegExp(`\`@${rig.app.slug} retest ACCELERATOR/SUITE\``));
    await reacted(await say(pull, 'make @pytorch/owners <b>coffee</b> `now`\nretest gren\nretest labelled\nretest green/nothing\nretest please'), 'confused');
    const [, , errors] = await replied(pull, 3);
    assert.match(errors, /I do not know `` make @pytorch\/owners <b>coffee<\/b> `now` ``\./);
    assert.match(errors, /There is no accelerator `gren`; did you mean `green`\?/);
    assert.match(errors, /`labelled` does not test this pull request/);
    assert.match(errors, /No job of `green` has reported the suite `nothing`\./);
    assert.match(errors, /There is no accelerator `please`\./);
    assert.equal(replies(pull).length, 3);
  });

  test('only members and the author may give commands; bots, edits, quotes and code are ignored', async () => {
    const pull = await opened();
    const before_ = rig.requests(REACTIONS).length;
    await reacted(await say(pull, 'retest', { author: 'mallory', association: 'CONTRIBUTOR' }), 'confused');
    await reacted(await say(pull, 'ok-to-test', { author: 'dora', association: 'CONTRIBUTOR' }), 'confused');
    await say(pull, 'cancel', { bot: true });
    await say(pull, 'cancel', { action: 'edited', status: 200 });
    await say(pull, '', { body: `> @${rig.app.slug} cancel\n\n\`\`\`\n@${rig.app.slug} cancel\n\`\`\`\n<!--\n@${rig.app.slug} cancel\n-->` });
    await say(pull, '', { body: 'cc @pytorchbot merge' });
    await say(pull, '', { body: `@${rig.app.slug}-2 cancel` });
    assert.equal(latest(await outpost.api(`pulls/${pull.number}`)).lab.state, 'acknowledged');
    assert.equal(sent('vendor/red', pull).length, 1);
    assert.equal(rig.requests(REACTIONS).length, before_ + 2);
    assert.deepEqual(replies(pull), []);
  });

  test('a retest does not release a held head; ok-to-test does and gets a rocket', async () => {
    const pull = await open({ association: 'NONE' });
    await wait(pull, (all) => ['red', 'green', 'lab'].every((name) => all[name]?.state === 'held'));
    await reacted(await say(pull, 'retest', { author: 'dora', association: 'NONE' }), 'confused');
    assert.match((await replied(pull))[0], /It is held, and a retest releases nothing/);
    assert.equal(latest(await outpost.api(`pulls/${pull.number}`)).lab.state, 'held');
    await reacted(await say(pull, 'ok-to-test', { createdAt: new Date(Date.now() + 5000).toISOString() }), 'rocket');
    await wait(pull, isDone);
  });

  test('one pull request accepts twenty commands an hour', async () => {
    const pull = await opened();
    for (let i = 0; i < 4; i++) await reacted(await say(pull, 'retest lab\nretest lab\nretest lab\nretest lab\nretest lab'), 'eyes');
    await reacted(await say(pull, 'cancel'), 'confused');
    const silent = await say(pull, 'cancel');
    assert.equal((await deliveries())[0].error, 'more than 20 commands an hour');
    assert.deepEqual(reactions(silent), []);
    assert.equal(latest(await outpost.api(`pulls/${pull.number}`)).lab.state, 'acknowledged');
    const other = await opened();
    await reacted(await say(other, 'retest lab'), 'eyes');
  });

  test('a lost answer and a kill of the daemon lead to one reply, one reaction and one round', async () => {
    const pull = await opened();
    rig.fault({ kind: 'reset', when: 'after', method: 'POST', path: `/repos/${UPSTREAM}/issues/${pull.number}/comments`, count: 1 });
    await say(pull, '?');
    await outpost.waitForLog({ ev: 'command_answered', kind: 'reply', pr: String(pull.number) }, { timeout: 20_000 });
    assert.equal(replies(pull).length, 1);
    rig.fault({ kind: 'hang', path: /\/reactions$/, count: 1 });
    rig.fault({ kind: 'hang', path: `/repos/${UPSTREAM}/issues/${pull.number}/comments`, method: 'POST', when: 'after', count: 1 });
    const id = await say(pull, 'retest red\nstatus');
    await until(() => replies(pull).length === 2, { what: 'GitHub has the reply, and its answer hangs' });
    rig.clearFaults();
    await outpost.restart({ hard: true });
    await reacted(id, 'eyes');
    await wait(pull, (all) => all.red.state === 'done' && sent('vendor/red', pull).length >= 2);
    await until(async () => { const { outbox } = await outpost.api('status'); return outbox === undefined || outbox.due + outbox.sending === 0; }, { timeout: 20_000 });
    assert.equal(replies(pull).length, 2);
    assert.equal(new Set(sent('vendor/red', pull).map(({ client_payload: payload }) => payload.outpost.dispatch_id)).size, 2);
  });

  test('a closed pull request accepts no retest', async () => {
    const pull = await opened();
    rig.updatePull(UPSTREAM, pull.number, { state: 'closed' });
    await rig.deliver('pull_request', pullRequestOf('closed', pull, { updatedAt: new Date(Date.now() + 2000).toISOString() }));
    await wait(pull, (all) => all.lab.state === 'cancelled');
    await reacted(await say(pull, 'retest'), 'confused');
    assert.deepEqual(replies(pull), []);
  });

  test('outpostctl retest accepts a pull request, a head and a push', async () => {
    const pull = await opened();
    const first = await outpost.ctl('retest', String(pull.number));
    assert.match(first.stdout, new RegExp(`^#${pull.number} ${pull.headSha.slice(0, 8)}\nACCELERATOR +RUNNER +RESULT +DISPATCH\n`));
    assert.match(first.stdout, /\ngreen +ci +clean/);
    assert.match(first.stdout, /\nlab +lab +still running/);
    assert.match(first.stdout, /\nred +ci +started +[a-z2-7]{26}/);
    await until(() => sent('vendor/red', pull).length === 2);
    await wait(pull, isDone);
    const named = JSON.parse((await outpost.ctl('--json', 'retest', pull.headSha.slice(0, 12), 'green')).stdout);
    assert.deepEqual([named.pr, named.head_sha, named.runners.map(({ accelerator, result }) => `${accelerator} ${result}`)], [pull.number, pull.headSha, ['green started']]);
    const sha = fakeSha('a merge');
    await rig.deliver('push', push({ branch: 'main', after: sha }));
    await outpost.waitForApi(`commits/${sha}`, (view) => latest(view).red?.state === 'done', { timeout: 20_000 });
    const pushed = JSON.parse((await outpost.ctl('--json', 'retest', sha)).stdout);
    assert.equal(pushed.pr, 0);
    assert.ok(pushed.runners.some(({ accelerator, result }) => accelerator === 'red' && result === 'started'));
    await until(() => rig.dispatches({ repository: 'vendor/red' }).filter(({ client_payload: { payload } }) => payload.after === sha).length === 2, { timeout: 10_000 });
    for (const [args, message] of [[['123456'], /GitHub does not show this pull request to the App/], [['0123456789abc'], /that commit is not known/], [[String(pull.number), 'gren'], /did you mean green/], [[String(pull.number), 'labelled'], /does not test this change/]]) {
      const refused = await outpost.ctl('retest', ...args);
      assert.equal(refused.code, 1, args.join(' '));
      assert.match(refused.stderr, message);
    }
    for (const args of [[], ['x']]) assert.equal((await outpost.ctl('retest', ...args)).code, 2);
  });
});
