// Experiments through the whole program: red tests rerun on the same head and on the merge base, at a vendor's own CI, in a
// repository and on machines. A vendor that ignores the list proves nothing.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { githubClaims, startIssuer } from '../github/oidc.mjs';
import { issueComment, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the labs';
const LONG = { timeout: 15_000 };
const WRITTEN = { timeout: 60_000 };
const VENDOR = 'Ascend/pytorch';

const red = (name, message = `${name}: expected 1.0, got 0.7 in forward()`) => ({ suite: 'model', name, status: 'FAIL', message });
const green = (name) => ({ suite: 'model', name, status: 'PASS' });

// Each test has its own accelerator, so that it does not wait for another test's first runs.
const LABS = ['plain', 'base', 'ignores', 'others', 'twice', 'silent', 'moved', 'closed', 'held', 'spent', 'hostile', 'away', 'wrong', 'watched'];
const chip = (name, runner, more = {}) => ({
  name, title: name, level: 'L2', trust: 'anyone', triggers: { pull_request: { label: 'required' } }, runners: [{ reruns: 'tests', ...runner }], ...more,
});

describe('experiments', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let lab;
  let outpost;
  let number = 100;
  let runs = 1;
  let comments = 9000;

  const deliver = async (event, payload) => assert.equal((await rig.deliver(event, payload)).status_code, 202);

  async function open(accelerator, options = {}) {
    const pull = rig.openPull(UPSTREAM, { number: ++number, author: `author-${number}`, labels: [`ciflow/crcr/${accelerator}`], ...options });
    await deliver('pull_request', pullRequestOf('opened', pull));
    return pull;
  }

  // Waits for the labs' first event that fits.
  const received = (fits, what) => until(() => lab.events.find(({ event, body }) => body && fits(event, body)), { ...LONG, what: `the lab receives ${what}` });
  const firstRun = (pull) => received((event, { payload }) => event === 'pull_request' && payload.pull_request.head.sha === pull.headSha, pull.headSha);
  const experimentOf = (first, side, name) => received((event, { outpost: block }) => event === 'experiment' && block.experiment.of === first.body.outpost.dispatch_id && block.experiment.side === side
    && (!name || block.experiment.tests.includes(`model/${name}`)), `an experiment on the ${side}`);
  const cancelOf = ({ body }) => received((event, { outpost: block }) => event === 'cancel' && block.dispatch_id === body.outpost.dispatch_id, 'a cancel');

  async function report({ body }, tests, more = {}) {
    const isRed = tests.some(({ status }) => status === 'FAIL');
    const step = { workflow: 'lab', job: 'suite', run_id: ++runs, conclusion: isRed ? 'failure' : 'success', tests, ...more };
    const answer = await post(body.outpost.callback_url, body.outpost.callback_token, workflowOf(step, 'completed'));
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  }

  const viewOf = (pull, accelerator, fits) => outpost.waitForApi(`pulls/${pull.number}`, (json) => {
    const one = json.accelerators.find(({ name }) => name === accelerator);
    return one && fits(one, json);
  }, LONG);
  const experimentsOf = async (pull, accelerator) => (await outpost.api(`pulls/${pull.number}`)).accelerators.find(({ name }) => name === accelerator).experiments;
  const ended = (pull, accelerator, side, state) => viewOf(pull, accelerator, ({ experiments }) => experiments.some((one) => one.side === side && one.state === state));
  const cellOf = ({ verdicts }, name) => verdicts.find(({ test: title }) => title === name);

  before(async () => {
    [rig, issuer, lab] = await Promise.all([startRig({ repositories: [UPSTREAM, VENDOR].map((name) => ({ name })) }), startIssuer(), startSilentVendor({ secret: SECRET })]);
    const webhook = { name: 'lab', webhook: { url: lab.url, secret: 'hook' } };
    outpost = await Outpost.start({
      rig, issuer, secrets: Object.fromEntries(LABS.map((name) => [name, { hook: SECRET }])),
      accelerators: [
        ...LABS.map((name) => chip(name, webhook, {
          ...(name === 'held' && { trust: 'approved' }),
          ...(name === 'silent' && { deadlines: { acknowledge: '1m', start: '2s', finish: '3s' } }),
          ...(name === 'wrong' && { experiments: { tests: 1, per_head: 1 } }),
          ...(name === 'spent' && { experiments: { share: '0%' } }),
        })),
        chip('repo', { name: 'ci', github: { repository: VENDOR } }),
        chip('farm', { name: 'farm', pull: { labels: [], max_parallel: 1 } }),
        chip('busy', { name: 'farm', pull: { labels: [], max_parallel: 1 } }),
      ],
    });
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([lab?.stop(), issuer?.close(), rig?.close()]);
  });

  test('a vendor\'s own CI reruns the red test on the head and on the merge base', async () => {
    const pull = await open('plain');
    const first = await firstRun(pull);
    await report(first, [red('flaky'), green('other')]);
    const head = await experimentOf(first, 'head');
    const { outpost: block, payload, event_type: type } = head.body;
    assert.equal(type, 'experiment');
    assert.deepEqual(block.experiment.tests, ['model/flaky']);
    assert.deepEqual([block.experiment.sha, payload.head_sha, payload.repository.full_name], [pull.headSha, pull.headSha, UPSTREAM]);
    assert.deepEqual(block.experiment.jobs, ['suite']);
    assert.ok(block.change_url.endsWith(`/pulls/${pull.number}`), block.change_url);
    const base = await experimentOf(first, 'base');
    assert.equal(base.body.outpost.experiment.sha, pull.baseSha);
    await report(head, [green('flaky')]);
    await report(base, [green('flaky')]);
    const view = await ended(pull, 'plain', 'head', 'done');
    assert.deepEqual(view.verdicts.map(({ test: title }) => title).sort(), ['flaky', 'other'], 'an experiment adds no cells');
    const logged = (ev) => outpost.log.map(({ fields }) => fields).filter((line) => line.ev === ev && line.accelerator === 'plain');
    const lines = await until(() => logged('experiment_ended').length === 2 && logged('experiment_ended'), { ...LONG, what: 'the log has the end of both' });
    const bySide = (list) => Object.fromEntries(list.map((line) => [line.side, line]));
    assert.deepEqual([bySide(logged('experiment_started')).base.sha, bySide(logged('experiment_started')).head.sha], [pull.baseSha, pull.headSha]);
    assert.equal(logged('experiment_started').find((line) => 'head' in line), undefined, 'the merge base is not called a head');
    assert.deepEqual([bySide(lines).base.state, bySide(lines).base.reason, bySide(lines).base.sha], ['done', '', pull.baseSha]);
    for (const line of lines) assert.match(line.seconds, /^\d+$/);
  });

  test('an experiment\'s results do not count for the merge base\'s commit or in statistics', async () => {
    const pull = await open('base');
    const first = await firstRun(pull);
    await report(first, [red('broken')]);
    await report(await experimentOf(first, 'base'), [red('broken')]);
    await report(await experimentOf(first, 'head'), [red('broken')]);
    await ended(pull, 'base', 'base', 'done');
    const commit = await outpost.get(`/api/v1/commits/${pull.baseSha}`);
    assert.deepEqual(commit.json?.accelerators ?? [], [], 'the merge base itself has no results');
    const page = await outpost.api('accelerators/base');
    assert.equal(page.jobs.filter(({ head_sha: sha }) => sha === pull.baseSha).length, 0);
    assert.deepEqual([page.dispatches_30d, page.deadlines_missed_30d], [1, 0], 'the accelerator\'s statistics do not count experiments');
    for (const options of [[], ['--pr', String(pull.number)]]) {
      const { stdout } = await outpost.ctl('dispatches', ...options);
      assert.match(stdout, new RegExp(`#${pull.number} experiment ${pull.baseSha.slice(0, 8)} \\(base\\)`));
      assert.match(stdout, new RegExp(`#${pull.number} experiment ${pull.headSha.slice(0, 8)} \\(head\\)`));
    }
  });

  // Each waits until no further job of the vendor's run may report, so they wait together.
  describe('reruns that prove nothing', { concurrency: 4 }, () => {
    for (const [what, accelerator, tests] of [['ignores the list', 'ignores', []], ['reports other tests', 'others', [green('another'), red('third')]]])
      test(`a vendor that ${what} proves nothing`, async () => {
        const pull = await open(accelerator);
        const first = await firstRun(pull);
        await report(first, [red('named')]);
        for (const side of ['head', 'base']) await report(await experimentOf(first, side), tests);
        const view = await ended(pull, accelerator, 'head', 'void');
        assert.deepEqual(view.verdicts.filter((one) => one.accelerator === accelerator).map(({ test: title }) => title), ['named']);
        assert.notEqual(cellOf(view, 'named').attribution, 'FLAKY');
        const { stdout } = await outpost.ctl('dispatches', '--pr', String(pull.number)); // finding 9
        assert.match(stdout, / experiment .* \(head\).* done .* proves nothing: none of its tests was reported with a result$/m);
      });

    test('the comment and the API say why a rerun proves nothing, and the comment is then final', async () => {
      const comment = (pull) => rig.comments(UPSTREAM, pull.number).find(({ author }) => author === rig.bot)?.body ?? '';
      const unanswered = await open('silent');
      await report(await firstRun(unanswered), [red('unheard')]);
      await until(() => comment(unanswered).includes('rerun got no answer'), { ...WRITTEN, what: 'the comment says that the rerun got no answer' });
      assert.doesNotMatch(comment(unanswered), /re-running/);
      const pull = await open('wrong');
      const first = await firstRun(pull);
      await report(first, [red('astray'), red('beyond')]);
      for (const side of ['head', 'base']) await report(await experimentOf(first, side, 'astray'), [green('another')]);
      for (const side of ['head', 'base']) await report(await experimentOf(first, side, 'beyond'), [red('beyond')]);
      await until(() => /\[rerun proves nothing\]\(.*\/jobs\/\d+\)/.test(comment(pull)), { ...WRITTEN, what: 'the comment says that the rerun proves nothing' });
      assert.match(comment(pull), /model\/beyond.* · red on the merge base once, which may be chance.* · no further rerun: limit reached/, 'each round reruns one test, and each test has one round');
      const { verdicts } = await outpost.api(`pulls/${pull.number}`);
      assert.deepEqual(verdicts.map(({ test: title, rerun }) => [title, rerun]).sort(), [['astray', 'void'], ['beyond', 'over_limit']]);
      const job = await outpost.api(`jobs/${cellOf({ verdicts }, 'astray').rerun_job}`);
      assert.equal(job.experiment.reason, 'none of its tests was reported with a result');
    });

    test('status and metrics show open experiments, their cost and their end', async () => {
      const pull = await open('watched');
      const first = await firstRun(pull);
      await report(first, [red('seen')]);
      const [head, base] = [await experimentOf(first, 'head'), await experimentOf(first, 'base')];
      const use = async () => (await outpost.api('status')).experiments.accelerators.find(({ name }) => name === 'watched');
      assert.deepEqual(await use(), { name: 'watched', planned: 0, started: 2, seconds_24h: 0, seconds_allowed_24h: 1800 });
      const { experiments } = await outpost.api('status');
      assert.ok(experiments.started >= 2);
      assert.ok(!experiments.accelerators.some(({ name }) => name === 'spent'), 'an accelerator without a share has no budget line');
      const { stdout } = await outpost.ctl('status');
      assert.match(stdout, /^experiments +(\d+ planned, )?\d+ started$/m);
      assert.match(stdout, /^budget +watched: 0 of 30 min in 24 h$/m, 'each accelerator has a line'); // finding 31
      await report(head, [green('another')]);
      await report(base, [green('another')]);
      await until(async () => /^outpost_accelerator_experiments\{accelerator="watched",state="void"\} [1-9]/m.test((await outpost.get('/metrics')).text), { ...LONG, what: 'the metrics count the experiments' });
    });
  });

  test('a vendor that reports the merge base\'s run for the head proves neither', async () => {
    const pull = await open('twice');
    const first = await firstRun(pull);
    await report(first, [red('guilty')]);
    const [head, base] = [await experimentOf(first, 'head'), await experimentOf(first, 'base')];
    await report(base, [green('guilty')], { run_id: 77 });
    await report(head, [green('guilty')], { run_id: 77 });
    const view = await viewOf(pull, 'twice', ({ experiments }) => experiments.filter(({ state }) => state === 'void').length >= 2);
    assert.notEqual(cellOf(view, 'guilty').attribution, 'FLAKY');
  });

  test('a vendor that never answers delays a change only until its deadlines', async () => {
    const pull = await open('silent');
    const first = await firstRun(pull);
    await report(first, [red('lost')]);
    await experimentOf(first, 'head');
    const view = await viewOf(pull, 'silent', ({ experiments }) => experiments.length > 0 && experiments.every(({ state }) => state === 'expired'));
    assert.notEqual(cellOf(view, 'lost').attribution, 'FLAKY');
    assert.ok(view.complete ?? true);
  });

  test('a newer head cancels the experiments of the older one, and the vendor is notified', async () => {
    const pull = await open('moved');
    const first = await firstRun(pull);
    await report(first, [red('slow')]);
    const head = await experimentOf(first, 'head');
    const next = rig.updatePull(UPSTREAM, pull.number, { headSha: randomBytes(20).toString('hex') });
    await deliver('pull_request', pullRequestOf('synchronize', next, { before: pull.headSha }));
    await cancelOf(head);
    await firstRun(next);
    await report(head, [green('slow')]); // too late to count
    const view = await outpost.api(`commits/${pull.headSha}`);
    assert.notEqual(cellOf(view, 'slow').attribution, 'FLAKY');
  });

  test('closing a pull request cancels its experiments', async () => {
    const pull = await open('closed');
    const first = await firstRun(pull);
    await report(first, [red('slow')]);
    const head = await experimentOf(first, 'head');
    await deliver('pull_request', pullRequestOf('closed', rig.updatePull(UPSTREAM, pull.number, { state: 'closed' })));
    await cancelOf(head);
  });

  test('withdrawing the release of a head cancels its experiments', async () => {
    const pull = await open('held', { association: 'NONE' });
    const say = (body) => deliver('issue_comment', issueComment('created', { number: pull.number, id: ++comments, body, author: 'alice', association: 'MEMBER', createdAt: new Date(Date.now() + 1000).toISOString().replace(/\.\d+Z$/, 'Z') }));
    await viewOf(pull, 'held', ({ dispatches }) => dispatches[0]?.state === 'held');
    await say(`@${rig.app.slug} ok-to-test`);
    const first = await firstRun(pull);
    await report(first, [red('secret')]);
    const head = await experimentOf(first, 'head');
    await say(`@${rig.app.slug} ok-to-test cancel`);
    await cancelOf(head);
    await viewOf(pull, 'held', ({ experiments }) => experiments.every(({ state }) => state === 'cancelled'));
  });

  test('an accelerator without a share of its machines\' time reruns nothing', async () => {
    const pull = await open('spent');
    await report(await firstRun(pull), [red('quiet')]);
    await viewOf(pull, 'spent', (one, { verdicts }) => verdicts.some(({ test: title }) => title === 'quiet'));
    assert.deepEqual(await experimentsOf(pull, 'spent'), []);
  });

  test('names that are hostile in a shell are passed as data', async () => {
    const name = 'test_add[$(touch /tmp/x) `id` "\'; -k \\ ]';
    const pull = await open('hostile');
    const first = await firstRun(pull);
    await report(first, [red(name)]);
    assert.deepEqual((await experimentOf(first, 'head')).body.outpost.experiment.tests, [`model/${name}`]);
  });

  test('a repository gets repository_dispatch, and `closed` when the head moves', async () => {
    const pull = await open('repo');
    const sent = (where) => rig.waitForDispatch({ repository: VENDOR, where });
    const call = async ({ client_payload: { event_type, delivery_id, payload, outpost: block } }, step) => {
      const body = { event_type, delivery_id, payload, outpost: block, workflow: workflowOf({ workflow: 'ci', job: 'test', run_id: ++runs, ...step }, 'completed') };
      const answer = await outpost.request('POST', '/github/callback', { body, headers: { 'content-type': 'application/json', authorization: `Bearer ${await issuer.mint(githubClaims(VENDOR))}` } });
      assert.equal(answer.status, 200, answer.text);
    };
    await call(await sent(({ client_payload: { payload } }) => payload.number === pull.number), { conclusion: 'failure', tests: [red('again')] });
    const side = (which) => sent(({ event_type: type, client_payload: { payload, outpost: block } }) => type === 'experiment' && payload.action === 'experiment' && block.experiment.side === which);
    const [head, base] = [await side('head'), await side('base')];
    assert.deepEqual(head.client_payload.payload.head_sha, pull.headSha);
    await call(base, { tests: [green('again')] });
    const next = rig.updatePull(UPSTREAM, pull.number, { headSha: randomBytes(20).toString('hex') });
    await deliver('pull_request', pullRequestOf('synchronize', next, { before: pull.headSha }));
    const closed = await sent(({ event_type: type, client_payload: { payload } }) => type === 'experiment' && payload.action === 'closed');
    assert.equal(closed.client_payload.outpost.dispatch_id, head.client_payload.outpost.dispatch_id);
    assert.notEqual(closed.client_payload.delivery_id, head.client_payload.delivery_id);
  });

  test('a machine runs the experiment when nothing else waits for it', async () => {
    const machine = await Puller.add(outpost, 'farm-1', 'farm');
    const pull = await open('farm');
    const { json: first } = await Puller.ready(() => machine.claim({ wait: 10 }));
    await machine.finish(first, { conclusion: 'failure', tests: [red('again')] });
    const lease = await machine.take();
    assert.equal(lease.change.kind, 'experiment');
    assert.equal(lease.change.number, pull.number);
    assert.equal(lease.experiment.of, first.dispatch_id);
    assert.deepEqual(lease.experiment.tests, ['model/again']);
    assert.equal(lease.change.head_sha, lease.experiment.sha);
    // These results make Outpost test the other commit. The merge base may become known only now, and until then the head reruns.
    const { side } = lease.experiment;
    const result = side === 'head' ? red('again') : green('again');
    await machine.finish(lease, { tests: [result] });
    let other = await machine.take();
    for (; other.experiment.side === side; other = await machine.take()) await machine.finish(other, { tests: [result] });
    await machine.finish(other, { tests: [green('again')] });
    await ended(pull, 'farm', lease.experiment.side, 'done');
  });

  test('a first run preempts an experiment on the only machine, and the experiment runs after it', async () => {
    const machine = await Puller.add(outpost, 'busy-1', 'busy');
    const pull = await open('busy');
    const { json: first } = await Puller.ready(() => machine.claim({ wait: 10 }));
    await machine.finish(first, { conclusion: 'failure', tests: [red('again')] });
    const lease = await machine.take();
    assert.equal(lease.change.kind, 'experiment');
    const other = await open('busy');
    await until(async () => (await machine.renew(lease)).json.lease !== 'active', { ...LONG, what: 'the experiment is preempted' });
    const next = await machine.take();
    assert.equal(next.change.number, other.number);
    await machine.finish(next, { tests: [green('again')] });
    const again = await machine.take();
    assert.equal(again.dispatch_id, lease.dispatch_id);
    assert.equal(again.attempt, 2);
    await machine.finish(again, { tests: [red('again')], conclusion: 'failure' });
    await machine.finish(await machine.take(), { tests: [green('again')] });
    await ended(pull, 'busy', again.experiment.side, 'done');
  });

  test('a started experiment survives a kill with the same dispatch', async () => {
    const pull = await open('away');
    const first = await firstRun(pull);
    await report(first, [red('lasting')]);
    const [head, base] = [await experimentOf(first, 'head'), await experimentOf(first, 'base')];
    await outpost.restart({ hard: true });
    await report(head, [green('lasting')]);
    await report(base, [green('lasting')]);
    await ended(pull, 'away', 'head', 'done');
    const sent = new Set(lab.events.filter(({ event, body }) => event === 'experiment' && body.outpost.experiment.id === head.body.outpost.experiment.id).map(({ body }) => body.outpost.dispatch_id));
    assert.equal(sent.size, 1);
  });

  test('the comment says that failures rerun and then shows the results', async () => {
    const pull = await open('plain');
    const first = await firstRun(pull);
    await report(first, [red('said')]);
    const comment = () => rig.comments(UPSTREAM, pull.number).find(({ author }) => author === rig.bot)?.body ?? '';
    await until(() => /re-running 1 failure/.test(comment()), { ...WRITTEN, what: 'the comment says re-running' });
    const head = await experimentOf(first, 'head');
    await report(head, [red('said')]);
    await report(await experimentOf(first, 'base'), [green('said')]);
    await until(() => /green on the merge base `[0-9a-f]{7}`, and red twice here/.test(comment()) && !/re-running/.test(comment()), { ...WRITTEN, what: 'the comment is final' });
  });
});
