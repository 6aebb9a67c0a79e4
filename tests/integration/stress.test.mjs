// `@BOT stress TEST` through the whole program: one test runs many times on the head and on its merge base, and one reply
// has both pass rates.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { issueComment, pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startWebhookVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const result = (name, status) => ({ suite: 'model', name, status, duration: 1, ...(status === 'FAIL' && { message: `${name}: expected 1.0, got 0.7` }) });

// The first run passes. Then llama3 passes on the merge base, and on the head only every third time.
let heads = 0;
function script({ event_type: type, outpost }) {
  const step = { workflow: 'lab', job: 'suite' };
  if (type !== 'experiment') return [{ ...step, conclusion: 'success', tests: [result('llama3', 'PASS'), result('bert', 'PASS')] }];
  const isRed = outpost.experiment.side === 'head' && heads++ % 3 > 0;
  return [{ ...step, conclusion: isRed ? 'failure' : 'success', tests: [result('llama3', isRed ? 'FAIL' : 'PASS')] }];
}

describe('stress', { skip: notBuilt }, () => {
  let rig;
  let lab;
  let outpost;
  let pull;
  let comments = 70_000;

  before(async () => {
    [rig, lab] = await Promise.all([startRig(), startWebhookVendor({ secret: SECRET, script })]);
    const chip = (name, reruns) => ({ name, title: `The ${name}`, level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' }, reruns }] });
    outpost = await Outpost.start({ rig, secrets: { chip: { hook: SECRET }, never: { hook: SECRET } }, accelerators: [chip('chip', 'tests'), chip('never', 'none')] });
    pull = rig.openPull(UPSTREAM, { number: 501, author: 'dora', association: 'CONTRIBUTOR' });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    await outpost.waitForApi('pulls/501', ({ accelerators }) => accelerators.length === 2 && accelerators.every(({ dispatches }) => dispatches[0].state === 'done'), { what: 'the first runs are done' });
  });
  after(async () => {
    await outpost?.close();
    await Promise.all([lab?.stop(), rig?.close()]);
  });

  const say = async (words, more = {}) => {
    const id = comments++;
    assert.equal((await rig.deliver('issue_comment', issueComment('created', { number: 501, author: 'alice', association: 'MEMBER', pullAuthor: 'dora', id, body: `@${rig.app.slug} ${words}`, ...more }))).status_code, 202);
    return id;
  };
  const reacted = (id, content) => until(() => rig.reactions(UPSTREAM, id).some((one) => one.content === content), { what: `${content} on ${id}` });
  const reply = (id, kind = '') => until(() => rig.comments(UPSTREAM, 501).map(({ body }) => body).find((body) => body.startsWith(`<!-- outpost:reply:${id}${kind} -->`)), { what: `a reply to ${id}` });
  const experiments = async () => (await outpost.api('pulls/501')).accelerators.flatMap(({ experiments: list }) => list);

  test('a wrong number, an unknown test and an accelerator without reruns get one reply each', async () => {
    const cases = [['stress model/llama3 ×21', /1 to 20 times/], ['stress model/lama3', /did you mean `model\/llama3`\?/], ['stress model/llama3 on never', /cannot run again now/], ['stress model/llama3 on chips', /There is no accelerator `chips`; did you mean `chip`\?/]];
    for (const [words, answer] of cases) {
      const id = await say(words);
      await reacted(id, 'confused');
      assert.match(await reply(id), answer);
    }
    assert.deepEqual(await experiments(), []);
  });

  test('the author and strangers cannot start a stress run', async () => {
    for (const more of [{ author: 'dora', association: 'CONTRIBUTOR' }, { author: 'eve', association: 'NONE' }])
      await reacted(await say('stress model/llama3', more), 'confused');
    assert.deepEqual(await experiments(), []);
  });

  test('a member gets a reaction at once, and both pass rates when all runs have ended', async () => {
    const id = await say('stress `model/llama3` ×6');
    await reacted(id, 'eyes');
    const body = await reply(id, ':stress');
    assert.match(body, /- `model\/llama3` on The chip: head 2 of 6 passed \(33 %, 10–70 %\), merge base 6 of 6 passed \(100 %, 61–100 %\)\. The intervals overlap: these runs show no difference\./);
    assert.doesNotMatch(body, /never/);
    const list = await experiments();
    assert.deepEqual([list.length, new Set(list.map(({ state, cause, tests }) => `${state} ${cause} ${tests}`))], [12, new Set(['done stress 1'])]);
    assert.deepEqual(lab.events.filter(({ event }) => event === 'experiment').map(({ body: { outpost: { experiment } } }) => experiment.tests.join()), Array(12).fill('model/llama3'));
    const view = await outpost.api('pulls/501');
    assert.deepEqual([view.summary.verdict, view.summary.new, view.summary.unclassified, view.summary.rerunning], ['pass', 0, 0, 0], 'stress runs add no cells to the pull request');
    const { experiment, kind, number, head_sha: sha } = await outpost.api(`jobs/${list.find(({ side }) => side === 'base').job}`);
    assert.deepEqual([kind, number, sha, experiment.side, experiment.cause, experiment.explains], ['experiment', 501, pull.baseSha, 'base', 'stress', pull.headSha]);
    const page = await fetch(`${outpost.url}/api/v1/accelerators/chip`).then((answer) => answer.json());
    assert.deepEqual([page.runners[0].reruns, page.experiments.pending], ['tests', 0]);
    assert.deepEqual(rig.violations(), []);
  });
});
