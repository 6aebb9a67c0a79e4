// Whose fault a red cell is, through the whole program: pushes and pull requests come as GitHub sends them, a CI of the
// vendor's own reports what each test says, merge bases and files are asked of GitHub.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const LONG = { timeout: 15_000 };
const WRITTEN = { timeout: 60_000 }; // one content write a second, and everybody's check runs take theirs
const COMPARE = /\/compare\//;

const red = (name, message = `${name}: expected 1.0, got 0.7 in forward()`) => ({ suite: 'model', name, status: 'FAIL', message });
const green = (name) => ({ suite: 'model', name, status: 'PASS' });

describe('whose fault a red cell is', { skip: notBuilt }, () => {
  let rig;
  let lab;
  let outpost;
  let number = 100;

  // What the lab was sent for this head.
  const eventOf = (sha) => until(() => lab.events.find(({ event, body }) => event !== 'cancel' && (body?.payload?.after === sha || body?.payload?.pull_request?.head.sha === sha)),
    { ...LONG, what: `the lab hears of ${sha}` });

  async function deliver(event, payload) {
    assert.equal((await rig.deliver(event, payload)).status_code, 202);
  }

  // The next commit of main. isTold: its webhook comes.
  async function land({ isTold = true, files = ['torch/csrc/landed.cpp'] } = {}) {
    const last = rig.world.branchTip(UPSTREAM);
    const sha = rig.push(UPSTREAM, { files });
    if (isTold) {
      await deliver('push', push({ before: last, after: sha }));
      await eventOf(sha);
    }
    return sha;
  }

  async function open(options = {}) {
    const pull = rig.openPull(UPSTREAM, { number: ++number, author: `author-${number}`, files: [`aten/of-${number}.cpp`], ...options });
    await deliver('pull_request', pullRequestOf('opened', pull));
    await eventOf(pull.headSha);
    return pull;
  }

  // One completed job; its id.
  async function report(sha, tests, { attempt = 1 } = {}) {
    const { body } = await eventOf(sha);
    const isRed = tests.some(({ status }) => status === 'FAIL');
    const step = { workflow: 'lab', job: 'suite', run_id: 1, run_attempt: attempt, conclusion: isRed ? 'failure' : 'success', tests };
    const answer = await post(body.outpost.callback_url, body.outpost.callback_token, workflowOf(step, 'completed'));
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return Number(answer.body.job);
  }

  const cellOf = (view, name) => view.verdicts.find(({ test: title }) => title === name);
  async function expectCell(pull, name, attribution, evidence) {
    let last;
    const view = await outpost.waitForApi(`pulls/${pull.number}`, (one) => { last = cellOf(one, name); return last?.attribution === attribution; }, LONG)
      .catch(() => assert.fail(`${name} is not ${attribution}: ${JSON.stringify(last)}`));
    const cell = cellOf(view, name);
    if (evidence) assert.ok(cell.evidence_url.endsWith(`/jobs/${evidence}`), `${cell.evidence_url} is job ${evidence}`);
    return view;
  }
  const known = (pull) => outpost.waitForApi(`pulls/${pull.number}`, (one) => one.merge_base_sha === pull.baseSha, LONG);
  const comparisons = (pull) => rig.requests({ path: COMPARE }).filter(({ path }) => path.includes(pull.headSha)).length;
  const botComment = (pull) => rig.comments(UPSTREAM, pull.number).find(({ author }) => author === rig.bot)?.body;

  before(async () => {
    [rig, lab] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET })]);
    outpost = await Outpost.start({
      rig, secrets: { 'lab-chip': { hook: SECRET } },
      accelerators: [{ name: 'lab-chip', title: 'Lab Chip', level: 'L2', trust: 'anyone', triggers: { pull_request: {}, push: { branches: ['main'] } }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
    });
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([lab?.stop(), rig?.close()]);
  });

  test('a push is tested, and its results are recorded', async () => {
    const sha = await land();
    await report(sha, [green('recorded'), red('recorded-red')]);
    const view = await outpost.waitForApi(`commits/${sha}`, (one) => one.accelerators[0]?.dispatches[0]?.state === 'done', LONG);
    assert.deepEqual(view.verdicts.map((one) => `${one.test} ${one.status}`).sort(), ['recorded PASS', 'recorded-red FAIL']);
    assert.equal(view.number ?? null, null);
  });

  test('red on the merge base with the same message: BASE', async () => {
    const job = await report(await land(), [red('broken', 'broken: 17 of 20 wrong at 0x7f001')]);
    const pull = await open();
    await report(pull.headSha, [red('broken', 'broken: 18 of 20 wrong at 0x7fabc')]);
    await expectCell(pull, 'broken', 'BASE', job);
    await known(pull);
    assert.equal(comparisons(pull), 1, 'GitHub is asked once a head');
  });

  test('green on the merge base: NEW', async () => {
    const job = await report(await land(), [green('fresh')]);
    const pull = await open();
    await report(pull.headSha, [red('fresh')]);
    await expectCell(pull, 'fresh', 'NEW', job);
  });

  test('nobody tested the merge base or what came before: UNCLASSIFIED', async () => {
    await land({ isTold: false });
    const pull = await open();
    await report(pull.headSha, [red('unknown')]);
    await known(pull);
    await expectCell(pull, 'unknown', 'UNCLASSIFIED');
  });

  test('a merge base that was not tested: the nearest tested commits on both sides count', async () => {
    const job = await report(await land(), [red('older')]);
    await land();
    const pull = await open();
    await report(pull.headSha, [red('older')]);
    await expectCell(pull, 'older', 'UNCLASSIFIED');
    for (let n = 0; n < 3; n++) {
      await expectCell(pull, 'older', 'UNCLASSIFIED'); // two flakes, perhaps
      await report(await land(), [red('older')]);
    }
    await expectCell(pull, 'older', 'BASE', job);
  });

  test('a base result that comes after the pull request\'s says more, both ways', async () => {
    const base = await land();
    const pull = await open();
    await report(pull.headSha, [red('late-red'), red('late-green')]);
    await known(pull);
    await expectCell(pull, 'late-red', 'UNCLASSIFIED');
    await until(() => botComment(pull)?.includes('late-red'), { ...WRITTEN, what: 'the comment tells of it' });
    const job = await report(base, [red('late-red'), green('late-green')]);
    await expectCell(pull, 'late-red', 'BASE', job);
    await expectCell(pull, 'late-green', 'NEW', job);
    await until(() => /merge base \[`[0-9a-f]{7}`\]/.test(botComment(pull) ?? ''), { ...WRITTEN, what: 'the comment names the merge base' });
  });

  test('it passed on the same commit: FLAKY', async () => {
    await land();
    const pull = await open();
    const passed = await report(pull.headSha, [green('coin')]);
    await report(pull.headSha, [red('coin')], { attempt: 2 });
    await expectCell(pull, 'coin', 'FLAKY', passed);
  });

  test('it failed and passed on changes of two others that touch other files: a hint, and FLAKY only once it passed here', async () => {
    const failure = (seconds) => red('shaky', `handshake with the profiler took ${seconds} s`);
    await report(await land(), [green('shaky')]);
    const [first, second, third] = [await open(), await open(), await open()];
    await report(first.headSha, [failure(13)]);
    await report(second.headSha, [failure(27)]);
    await expectCell(first, 'shaky', 'NEW');
    await expectCell(second, 'shaky', 'NEW');
    for (const pull of [first, second]) {
      await report(pull.headSha, [green('shaky')], { attempt: 2 });
      await known(pull);
    }
    await report(third.headSha, [failure(31)]);
    await expectCell(third, 'shaky', 'NEW');
    await until(() => botComment(third)?.includes('likely flaky: seen on 2 other changes, and passed again on 2 of them'), { ...WRITTEN, what: 'the comment has the hint' });
    const passed = await report(third.headSha, [green('shaky')], { attempt: 2 });
    await report(third.headSha, [failure(5)], { attempt: 3 });
    await expectCell(third, 'shaky', 'FLAKY', passed);
  });

  test('the same failure on changes of others shows nothing by itself', async () => {
    const general = red('general', 'Process completed with exit code 1');
    await report(await land(), [green('firm'), green('shared'), green('general')]);
    const files = ['aten/shared.cpp'];
    const first = await open({ author: 'alice', files });
    await report(first.headSha, [red('firm'), red('shared'), general]);
    const own = await open({ author: 'alice', files: ['torch/other.cpp'] });
    await report(own.headSha, [red('firm'), green('shared'), green('general')]);
    const shared = await open({ author: 'bob', files });
    await report(shared.headSha, [green('firm'), red('shared'), general]);
    for (const [pull, name] of [[own, 'firm'], [shared, 'shared'], [shared, 'general'], [first, 'firm'], [first, 'shared'], [first, 'general']])
      await expectCell(pull, name, 'NEW');
  });

  test('what GitHub does not say now is asked for again, also after a kill', async () => {
    const job = await report(await land(), [red('patient')]);
    rig.fault({ kind: 'status', status: 502, path: COMPARE, count: 2 });
    const pull = await open();
    await report(pull.headSha, [red('patient')]);
    await expectCell(pull, 'patient', 'UNCLASSIFIED');
    await until(() => comparisons(pull) > 0, { ...LONG, what: 'GitHub was asked' });
    await outpost.restart({ hard: true });
    await expectCell(pull, 'patient', 'BASE', job);
    await until(() => botComment(pull)?.includes('merge base'), { ...WRITTEN, what: 'the comment names the merge base' });
  });

  test('GitHub\'s final no holds no comment up, and is not asked for twice', async () => {
    await land();
    rig.fault({ kind: 'notFound', path: COMPARE, probability: 1, seed: 1 });
    const pull = await open();
    await report(pull.headSha, [red('baseless')]);
    await until(() => botComment(pull)?.includes('baseless'), { ...WRITTEN, what: 'the comment is there' });
    await report(pull.headSha, [red('baseless'), red('baseless-too')], { attempt: 2 });
    await expectCell(pull, 'baseless-too', 'UNCLASSIFIED');
    await until(() => botComment(pull)?.includes('baseless-too'), { ...WRITTEN, what: 'the comment follows' });
    assert.equal(comparisons(pull), 1);
    rig.clearFaults();
  });

  test('a green change learns its merge base as well, for its comment', async () => {
    await report(await land(), [green('calm')]);
    const pull = await open();
    await report(pull.headSha, [green('calm')]);
    await until(() => botComment(pull)?.includes(`merge base [\`${pull.baseSha.slice(0, 7)}\`]`), { ...WRITTEN, what: 'the comment names the merge base' });
    assert.equal(comparisons(pull), 1);
  });

  test('GitHub found nothing to refuse, and the figures count', async () => {
    assert.deepEqual(rig.violations(), []);
    const { text } = await outpost.get('/metrics');
    assert.ok(Number(/^outpost_attributions_total\{outcome="moved"\} (\d+)$/m.exec(text)[1]) > 0);
    assert.ok(Number(/^outpost_evidence_failures_total (\d+)$/m.exec(text)[1]) > 0);
    assert.match(text, /^outpost_evidence_in_hand 0$/m);
  });
});
