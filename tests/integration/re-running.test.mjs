// While failures rerun, the comment and the check runs say so and count them. When the last rerun ends, the comment is final at
// once, even with a long comment.min_interval.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const result = (name, status, message) => ({ suite: 'model', name, status, ...(message && { message }) });
// Each pull request breaks its own test with its own message, because a rerun on a merge base counts for all that branched off there.
const NAMES = { 601: 'llama3', 602: 'Qwen', 603: 'mixtral' };
const WORDS = { 601: 'queue 3 of the device did not drain', 602: 'no kernel for aten::roll', 603: 'expert routing has shape [8, 4096]' };
const failed = (number) => result(NAMES[number], 'FAIL', `RuntimeError: ${WORDS[number]}`);

describe('re-running', { skip: notBuilt }, () => {
  let rig;
  let lab;
  let outpost;
  let runs = 0;

  before(async () => {
    [rig, lab] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET })]);
    outpost = await Outpost.start({
      rig, secrets: { chip: { hook: SECRET } }, config: { comment: { min_interval: '10m' } },
      accelerators: [{ name: 'chip', title: 'The Chip', level: 'L4', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'lab', reruns: 'tests', webhook: { url: lab.url, secret: 'hook' } }] }],
    });
  });
  after(async () => {
    await outpost?.close();
    await Promise.all([lab?.stop(), rig?.close()]);
  });

  const received = (pull, fits) => until(() => lab.events.find(({ event, body }) => body?.outpost && event !== 'cancel' && fits(event, body)), { what: `the lab hears of ${pull.number}` });
  async function report({ body }, tests) {
    const conclusion = tests.some(({ status }) => status === 'FAIL') ? 'failure' : 'success';
    const answer = await post(body.outpost.callback_url, body.outpost.callback_token, workflowOf({ workflow: 'lab', job: 'suite', run_id: `run-${++runs}`, conclusion, tests }, 'completed'));
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  }
  const comment = (pull, fits, what) => until(() => { const body = rig.comments(UPSTREAM, pull.number)[0]?.body ?? ''; return fits(body) && body; }, { what });
  async function firstRun(number) {
    const pull = rig.openPull(UPSTREAM, { number, author: `author-${number}` });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    const first = await received(pull, (event, { payload }) => event === 'pull_request' && payload.pull_request.number === number);
    await report(first, [failed(number), result('bert', 'PASS')]);
    const side = (name) => received(pull, (event, { outpost: { experiment } }) => event === 'experiment' && experiment.of === first.body.outpost.dispatch_id && experiment.side === name);
    const all = () => lab.events.filter(({ event, body }) => event === 'experiment' && body?.outpost.experiment?.of === first.body.outpost.dispatch_id);
    return { pull, head: await side('head'), base: () => side('base'), all };
  }

  test('a flake counts as a failure until the rerun on the same commit passes', async () => {
    const { pull, head, base } = await firstRun(601);
    const during = await comment(pull, (body) => /re-running 1 failure/.test(body), 'the comment says that the failure reruns');
    assert.match(during, /^… \*\*1 failure\*\* on The Chip, not classified yet; re-running 1 failure\.$/m);
    assert.match(during, /- ✗ `model\/llama3`: .* · re-running · /);
    assert.match(during, /\*\*Re-running:\*\* The Chip \(1 failure\)/);
    const { summary, verdicts } = await outpost.api(`pulls/${pull.number}`);
    assert.deepEqual([summary.verdict, summary.complete, summary.rerunning], ['pending', false, 1]);
    assert.deepEqual(verdicts.map(({ test: name, rerun }) => [name, rerun]).sort(), [['bert', null], ['llama3', 'pending']]);
    const check = await until(() => rig.checkRuns(UPSTREAM, pull.headSha).find(({ name, status }) => name === 'outpost/chip/lab/suite' && status === 'completed'), { what: 'the check run concludes' });
    assert.equal(check.conclusion, 'failure', 'an undecided failure counts');
    assert.match(check.output.title, /re-running 1/);
    assert.match(check.output.summary, /· re-running/);
    await report(head, [result('llama3', 'PASS')]);
    await report(await base(), [result('llama3', 'PASS')]); // the results count once both sides are done
    const final = await comment(pull, (body) => body && !/re-running/i.test(body), 'the final comment');
    assert.match(final, /^✓ \*\*Nothing new is red\*\*: 1 failure not caused by this change \(flaky\)\.$/m);
    assert.match(final, /passed in another run on this commit: \[evidence\]\(.*\/jobs\/\d+\)/);
    await until(() => rig.checkRuns(UPSTREAM, pull.headSha).find(({ name }) => name === 'outpost/chip/lab/suite').conclusion === 'neutral', { what: 'the check run is neutral' });
    const view = await outpost.api(`pulls/${pull.number}`);
    assert.deepEqual([view.summary.verdict, view.summary.complete, view.summary.rerunning], ['pass', true, 0]);
  });

  test('reruns attribute a failure to the base or to the change', async () => {
    for (const [number, onBase, line] of [[602, failed(602), /^✓ \*\*Nothing new is red\*\*: 1 failure not caused by this change \(on the base\)\.$/m], [603, result('mixtral', 'PASS'), /^✗ \*\*1 new failure\*\* on The Chip\.$/m]]) {
      const { pull, base, all } = await firstRun(number);
      await base();
      const answered = new Set(); // a side may run more than once, because a single failure may be a flake
      const final = await until(async () => {
        for (const event of all().filter((one) => !answered.has(one))) {
          answered.add(event);
          await report(event, [event.body.outpost.experiment.side === 'head' ? failed(number) : onBase]);
        }
        const body = rig.comments(UPSTREAM, pull.number)[0]?.body ?? '';
        return !/re-running/i.test(body) && body;
      }, { what: `the final comment on ${number}` });
      assert.match(final, line);
      assert.match(final, /\[evidence\]\(.*\/jobs\/\d+\)/);
      assert.doesNotMatch(final, /Not classified/);
    }
    assert.deepEqual(rig.violations(), []);
  });
});
