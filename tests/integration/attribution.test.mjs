// Attribution of red cells through the whole program: pushes and pull requests arrive as GitHub sends them, a vendor's CI
// reports the results that each test chooses, and Outpost reads merge bases and files from GitHub.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const LONG = { timeout: 15_000 };
const WRITTEN = { timeout: 60_000 };
const COMPARE = /\/compare\//;

const red = (name, message = `${name}: expected 1.0, got 0.7 in forward()`) => ({ suite: 'model', name, status: 'FAIL', message });
const green = (name) => ({ suite: 'model', name, status: 'PASS' });

describe('attribution of red cells', { skip: notBuilt }, () => {
  let rig;
  let lab;
  let outpost;
  let number = 100;

  // The event that the lab received for this head.
  const eventOf = (sha) => until(() => lab.events.find(({ event, body }) => event !== 'cancel' && (body?.payload?.after === sha || body?.payload?.pull_request?.head.sha === sha)),
    { ...LONG, what: `the lab receives ${sha}` });

  async function deliver(event, payload) {
    assert.equal((await rig.deliver(event, payload)).status_code, 202);
  }

  // Pushes a commit to main. isNotified: GitHub sends its webhook.
  async function land({ isNotified = true, files = ['torch/csrc/landed.cpp'] } = {}) {
    const last = rig.world.branchTip(UPSTREAM);
    const sha = rig.push(UPSTREAM, { files });
    if (isNotified) {
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

  // Reports one completed job and returns its id.
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
    assert.equal(comparisons(pull), 1, 'Outpost asks GitHub once for each head');
  });

  test('green on the merge base: NEW', async () => {
    const job = await report(await land(), [green('fresh')]);
    const pull = await open();
    await report(pull.headSha, [red('fresh')]);
    await expectCell(pull, 'fresh', 'NEW', job);
  });

  test('neither the merge base nor an earlier commit was tested: UNCLASSIFIED', async () => {
    await land({ isNotified: false });
    const pull = await open();
    await report(pull.headSha, [red('unknown')]);
    await known(pull);
    await expectCell(pull, 'unknown', 'UNCLASSIFIED');
  });

  test('if the merge base was not tested, the nearest tested commits on both sides count', async () => {
    const job = await report(await land(), [red('older')]);
    await land();
    const pull = await open();
    await report(pull.headSha, [red('older')]);
    await expectCell(pull, 'older', 'UNCLASSIFIED');
    for (let n = 0; n < 3; n++) {
      await expectCell(pull, 'older', 'UNCLASSIFIED'); // two red commits may both be flakes
      await report(await land(), [red('older')]);
    }
    await expectCell(pull, 'older', 'BASE', job);
  });

  test('a base result that arrives after the pull request\'s makes a cell BASE or NEW', async () => {
    const base = await land();
    const pull = await open();
    await report(pull.headSha, [red('late-red'), red('late-green')]);
    await known(pull);
    await expectCell(pull, 'late-red', 'UNCLASSIFIED');
    await until(() => botComment(pull)?.includes('late-red'), { ...WRITTEN, what: 'the comment lists the failure' });
    const job = await report(base, [red('late-red'), green('late-green')]);
    await expectCell(pull, 'late-red', 'BASE', job);
    await expectCell(pull, 'late-green', 'NEW', job);
    await until(() => /merge base \[`[0-9a-f]{7}`\]/.test(botComment(pull) ?? ''), { ...WRITTEN, what: 'the comment names the merge base' });
  });

  test('passed on the same commit: FLAKY', async () => {
    await land();
    const pull = await open();
    const passed = await report(pull.headSha, [green('coin')]);
    await report(pull.headSha, [red('coin')], { attempt: 2 });
    await expectCell(pull, 'coin', 'FLAKY', passed);
  });

  test('a test that failed and then passed on two other changes gives a hint, and is FLAKY only after it passed on this commit', async () => {
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

  test('the same failure on other changes alone does not change the attribution', async () => {
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

  test('a comparison that GitHub does not answer is retried, even after a kill', async () => {
    const job = await report(await land(), [red('patient')]);
    rig.fault({ kind: 'status', status: 502, path: COMPARE, count: 1000 }); // on a busy machine, Outpost may repeat the request often
    const pull = await open();
    await report(pull.headSha, [red('patient')]);
    await expectCell(pull, 'patient', 'UNCLASSIFIED');
    await until(() => comparisons(pull) > 0, { ...LONG, what: 'Outpost asks GitHub for the merge base' });
    await outpost.restart({ hard: true });
    rig.clearFaults();
    await expectCell(pull, 'patient', 'BASE', job);
    await until(() => botComment(pull)?.includes('merge base'), { ...WRITTEN, what: 'the comment names the merge base' });
  });

  test('a 404 for the merge base delays no comment and is not retried', async () => {
    await land();
    rig.fault({ kind: 'notFound', path: COMPARE, probability: 1, seed: 1 });
    const pull = await open();
    await report(pull.headSha, [red('baseless')]);
    await until(() => botComment(pull)?.includes('baseless'), { ...WRITTEN, what: 'the comment exists' });
    await report(pull.headSha, [red('baseless'), red('baseless-too')], { attempt: 2 });
    await expectCell(pull, 'baseless-too', 'UNCLASSIFIED');
    await until(() => botComment(pull)?.includes('baseless-too'), { ...WRITTEN, what: 'the comment is updated' });
    assert.equal(comparisons(pull), 1);
    rig.clearFaults();
  });

  test('the comment of a green change names its merge base too', async () => {
    await report(await land(), [green('calm')]);
    const pull = await open();
    await report(pull.headSha, [green('calm')]);
    await until(() => botComment(pull)?.includes(`merge base [\`${pull.baseSha.slice(0, 7)}\`]`), { ...WRITTEN, what: 'the comment names the merge base' });
    assert.equal(comparisons(pull), 1);
  });

  test('GitHub saw no violation, and the metrics count the attributions', async () => {
    assert.deepEqual(rig.violations(), []);
    const { text } = await outpost.get('/metrics');
    assert.ok(Number(/^outpost_attributions_total\{outcome="moved"\} (\d+)$/m.exec(text)[1]) > 0);
    assert.ok(Number(/^outpost_evidence_failures_total (\d+)$/m.exec(text)[1]) > 0);
    assert.match(text, /^outpost_evidence_in_hand 0$/m);
  });
});
