// The pages of experiments in a real browser: a change with a running experiment and some that prove nothing, the job page of
// one, and the accelerator's page.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from '../integration/lib/outpost.mjs';
import { DESK, launch, NARROW, noBrowser, PHONE, Window } from './browser.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const plain = (text) => text.replace(/\s+/g, ' ');
const red = (name, message) => ({ suite: 'model', name, status: 'FAIL', message: message ?? `RuntimeError: ${name} has no kernel for aten::a_rather_long_operator_name.with_overload` });
const green = (name) => ({ suite: 'model', name, status: 'PASS' });

describe('the pages of experiments', { skip: notBuilt || noBrowser }, () => {
  let browser;
  let rig;
  let lab;
  let outpost;
  let runs = 1;
  const paths = {};

  const received = (fits, what) => until(() => lab.events.find(({ event, body }) => body?.outpost && fits(event, body)), { what });
  const firstRun = (name) => received((event, { outpost: { accelerators } }) => event === 'pull_request' && accelerators.includes(name), `the first run of ${name}`);
  const experiment = (of, side, name) => received((event, { outpost: block }) => event === 'experiment' && block.experiment.of === of.body.outpost.dispatch_id && block.experiment.side === side
    && (!name || block.experiment.tests.includes(`model/${name}`)), `an experiment on the ${side}`);
  async function report({ body }, tests, more = {}) {
    const step = { workflow: 'lab', job: 'suite', run_id: ++runs, conclusion: tests.some(({ status }) => status === 'FAIL') ? 'failure' : 'success', tests, ...more };
    for (const status of more.only ? [more.only] : ['in_progress', 'completed']) {
      const answer = await post(body.outpost.callback_url, body.outpost.callback_token, workflowOf(step, status));
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
  }
  const chip = (name, title, experiments) => ({ name, title, level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, ...(experiments && { experiments }), runners: [{ name: 'lab', reruns: 'tests', webhook: { url: lab.url, secret: 'hook' } }] });

  before(async () => {
    [browser, rig, lab] = await Promise.all([launch(), startRig(), startSilentVendor({ secret: SECRET })]);
    outpost = await Outpost.start({
      rig, secrets: Object.fromEntries(['chip', 'astray', 'broken'].map((name) => [name, { hook: SECRET }])),
      accelerators: [chip('chip', 'The Chip'), chip('astray', 'The Astray', { tests: 1, per_head: 1 }), chip('broken', 'The Broken')],
    });
    const pull = rig.openPull(UPSTREAM, { number: 71, author: 'dora' });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    // One accelerator reruns only one test and only once; for one experiment it reports a different test.
    const astray = await firstRun('astray');
    await report(astray, [red('bert'), red('beyond')]);
    for (const side of ['head', 'base']) await report(await experiment(astray, side, 'bert'), [green('another')]);
    for (const side of ['head', 'base']) await report(await experiment(astray, side, 'beyond'), [red('beyond')]);
    // On the second accelerator the merge base is done and the head is running.
    const first = await firstRun('chip');
    await report(first, [red('llama3'), red('qwen2')]);
    await report(await experiment(first, 'base'), [red('llama3'), green('qwen2')]);
    await report(await experiment(first, 'head'), [], { only: 'in_progress' });
    // The third accelerator's machine lost its device, in the rerun too.
    const broken = await firstRun('broken');
    const lost = red('mistral', 'RuntimeError: device lost');
    await report(broken, [lost]);
    await report(await experiment(broken, 'head'), [lost]);
    const view = await outpost.waitForApi('pulls/71', ({ accelerators, verdicts }) => {
      const [of, on, waiting] = ['astray', 'chip', 'broken'].map((name) => accelerators.find((one) => one.name === name));
      return of.experiments.map(({ state }) => state).sort().join() === 'done,done,void,void' && on.experiments.length === 2 && on.experiments.every(({ job }) => job) && verdicts.length === 5 && waiting.experiments.some(({ not_before_at: at }) => at);
    });
    const { rerun_job: isVoid } = view.verdicts.find(({ rerun }) => rerun === 'void');
    const onBase = view.accelerators.find(({ name }) => name === 'chip').experiments.find(({ side }) => side === 'base');
    Object.assign(paths, { change: '/pulls/71', void: `/jobs/${isVoid}`, job: `/jobs/${onBase.job}`, accelerator: '/accelerators/chip' });
  });
  after(async () => {
    await browser?.close();
    await outpost?.close();
    await Promise.all([lab?.stop(), rig?.close()]);
  });

  const open = (options) => Window.open(browser, { origin: outpost.url, ...options });

  test('each page is accessible and has no overflow at every width, in light and dark', async () => {
    for (const theme of ['light', 'dark'])
      for (const size of [NARROW, PHONE, DESK]) {
        const window = await open({ size, theme });
        for (const [name, address] of Object.entries(paths)) {
          const what = `${name}, ${size.width} px, ${theme}`;
          await window.visit(address);
          assert.deepEqual(await window.violations(), [], what);
          assert.ok(await window.overflow() <= 0, `${what}: ${await window.overflow()} px overflow`);
        }
        window.clean();
        await window.close();
      }
  });

  test('the change page says which failure reruns, and why the others do not', async () => {
    const window = await open();
    await window.visit(paths.change);
    const failures = plain(await window.text('#failures'));
    assert.match(failures, /llama3.*re-running/);
    assert.match(failures, /bert.*rerun proves nothing/);
    assert.match(failures, /beyond.*no further rerun: limit reached/);
    assert.match(plain(await window.text('#accelerators')), /no full run of the base to compare with/); // finding 30: only some tests ran on the base
    const again = plain(await window.text('#experiments'));
    assert.match(again, /2 running, 1 waits for a good machine/);
    assert.match(again, /mistral.*waits for a good machine/);
    assert.match(again, /does not count: none of its tests was reported with a result/);
    assert.equal(await window.page.locator('#failures a', { hasText: 'rerun proves nothing' }).getAttribute('href'), paths.void);
    window.clean();
    await window.close();
  });

  test('the job page of an experiment says why it ran and attributes no failure', async () => {
    const window = await open();
    await window.visit(paths.void);
    assert.match(plain(await window.text()), /An experiment\. Failed tests ran again.* on (the head|the merge base) of pull request #71.* Its results do not count: none of its tests was reported with a result\./);
    await window.visit(paths.job);
    const text = plain(await window.text());
    assert.match(text, /on the merge base of pull request #71/);
    assert.match(text, /llama3.*failed/);
    assert.doesNotMatch(text, /not classified/i, 'an experiment\'s results are evidence and have no attribution');
    window.clean();
    await window.close();
  });

  test('the accelerator page says how long reruns took and how many are pending', async () => {
    const window = await open();
    await window.visit(paths.accelerator);
    assert.match(plain(await window.text()), /Reruns took .* of the 30 min that they may take in 24 hours: 10 % of the time of all jobs, or half an hour where that is less; \d reruns? pending/);
    await window.visit('/accelerators/astray');
    assert.match(plain(await window.text()), /Of the reruns that ended in the last 24 hours, 2 counted, 2 proved nothing and 0 did not finish in time\. The newest loss: none of its tests was reported with a result/);
    window.clean();
    await window.close();
  });
});
