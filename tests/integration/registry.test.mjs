// Which accelerators get a change: CRCR's allowlist, trust and ok-to-test, labels, drafts, paths, branches, several accelerators
// in one repository.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { githubClaims, startIssuer } from '../github/oidc.mjs';
import { fakeSha, issueComment, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startDispatchVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const INFRA = 'pytorch-fdn/accelerator-test-infra';
const SHARED = 'vllm-project/vllm';

const accelerator = (name, repository, more = {}) => ({ name, title: name.toUpperCase(), level: 'L2', trust: 'anyone', runners: [{ name: 'ci', github: { repository } }], ...more });

describe('the accelerators that get a change', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let outpost;
  let next = 100;

  before(async () => {
    [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    outpost = await Outpost.start({
      rig, issuer,
      accelerators: [
        accelerator('aten', 'Ascend/pytorch', { triggers: { pull_request: { paths: ['aten/**'] } } }),
        accelerator('on-label', 'torch-spyre/torch-spyre', { level: 'L3', triggers: { pull_request: { label: 'required' } } }),
        accelerator('one', SHARED, { triggers: { pull_request: { drafts: false }, push: { branches: ['main'] } } }),
        accelerator('two', SHARED, { trust: 'contributors', triggers: { pull_request: { drafts: false } } }),
        { name: 'hosted', title: 'Hosted', level: 'L2', trust: 'members' },
      ],
      config: { infra: { repository: INFRA, trust: 'contributors' }, upstream: { branches: ['main', 'release/2.9'] } },
    });
  });
  after(async () => {
    await outpost?.close();
    await issuer?.close();
    await rig?.close();
  });

  const send = async (event, payload) => {
    const answer = await rig.deliver(event, payload);
    assert.equal(answer.status_code, 202, answer.response?.body);
    return answer;
  };
  const to = (repository, number) => rig.dispatches({ repository }).filter(({ client_payload: { payload } }) => payload.number === number).map(({ client_payload: { payload, outpost: block } }) => ({ action: payload.action, accelerators: block.accelerators, original: block.action, id: block.dispatch_id }));
  const open = async (options) => {
    const number = next++;
    const pull = rig.openPull(UPSTREAM, { number, association: 'MEMBER', files: ['README.md'], ...options });
    await send('pull_request', pullRequestOf('opened', pull));
    return { number, pull };
  };
  const states = async (number) => Object.fromEntries((await outpost.api(`pulls/${number}`)).accelerators.map(({ name, dispatches }) => [name, dispatches[0].state]));
  const settled = (number, fits) => outpost.waitForApi(`pulls/${number}`, (view) => fits(Object.fromEntries(view.accelerators.map(({ name, dispatches }) => [name, dispatches[0].state]))), { timeout: 10_000, what: `the dispatches of #${number}` });

  test('paths select accelerators, and Outpost reads the list of files once', async () => {
    const { number } = await open({ files: ['aten/src/ATen/x.cpp'] });
    await settled(number, (all) => all.aten === 'sent');
    assert.equal(to('Ascend/pytorch', number).length, 1);
    const other = await open({ files: ['docs/x.md'] });
    await settled(other.number, (all) => all.one === 'sent');
    assert.ok(!('aten' in await states(other.number)));
    assert.equal(rig.requests({ path: `/repos/${UPSTREAM}/pulls/${number}/files` }).length, 1);
  });

  test('several accelerators of one repository get one dispatch that lists them', async () => {
    const { number } = await open();
    await settled(number, (all) => all.one === 'sent' && all.two === 'sent');
    const got = to(SHARED, number);
    assert.equal(got.length, 1);
    assert.deepEqual(got[0].accelerators.sort(), ['one', 'two']);
    const view = await outpost.api(`pulls/${number}`);
    const ids = view.accelerators.filter(({ name }) => ['one', 'two'].includes(name)).map(({ dispatches }) => dispatches[0].id);
    assert.deepEqual(ids, [got[0].id, got[0].id]);
  });

  test('an untrusted pull request is held, and a member\'s ok-to-test releases only that head', async () => {
    const { number, pull } = await open({ association: 'FIRST_TIME_CONTRIBUTOR' });
    await settled(number, (all) => all.one === 'sent' && all.two === 'held' && all.hosted === 'held');
    assert.deepEqual(to(SHARED, number).map(({ accelerators }) => accelerators), [['one']]);
    assert.equal(to(INFRA, number).length, 0);
    const view = await outpost.api(`pulls/${number}`);
    assert.match(view.accelerators.find(({ name }) => name === 'two').dispatches[0].held_reason, /contributed/);
    await until(() => rig.comments(UPSTREAM, number).length === 1, { timeout: 10_000, what: 'a comment says that it is held' });
    assert.match(rig.comments(UPSTREAM, number)[0].body, /ok-to-test/);

    const bot = rig.app.slug;
    for (const [body, author] of [[`> @${bot} ok-to-test`, 'MEMBER'], [`\`@${bot} ok-to-test\``, 'MEMBER'], [`@${bot} ok-to-test`, 'NONE'], [`@${bot} ok-to-test`, 'CONTRIBUTOR']])
      await send('issue_comment', issueComment('created', { number, body, association: author }));
    const { deliveries } = JSON.parse((await outpost.ctl('--json', 'deliveries', '--limit', '4')).stdout);
    await until(async () => JSON.parse((await outpost.ctl('--json', 'deliveries', '--limit', '4')).stdout).deliveries.every(({ state }) => state !== 'accepted'));
    assert.equal(deliveries.length, 4);
    assert.equal((await states(number)).two, 'held');

    await send('issue_comment', issueComment('created', { number, body: `Looks good.\n@${bot} ok-to-test`, association: 'MEMBER' }));
    await settled(number, (all) => all.two === 'sent' && all.hosted === 'sent');
    const got = to(SHARED, number);
    assert.deepEqual(got.at(-1).accelerators.sort(), ['one', 'two'], 'the later dispatch lists the released and unfinished accelerators');
    assert.deepEqual(to(INFRA, number).at(-1).accelerators, ['hosted']);

    const newer = rig.updatePull(UPSTREAM, number, { headSha: fakeSha(`newer ${number}`) });
    await send('pull_request', pullRequestOf('synchronize', newer ?? { ...pull, headSha: fakeSha(`newer ${number}`) }));
    await settled(number, (all) => all.one === 'sent' && all.two === 'held');
  });

  test('a label starts the accelerators that require it, and removing it cancels them', async () => {
    const { number, pull } = await open();
    await settled(number, (all) => all.one === 'sent');
    assert.equal(to('torch-spyre/torch-spyre', number).length, 0);
    await send('pull_request', pullRequestOf('labeled', pull, { label: 'ciflow/crcr/on-label', labels: ['ciflow/crcr/on-label'] }));
    await settled(number, (all) => all['on-label'] === 'sent');
    assert.deepEqual(to('torch-spyre/torch-spyre', number).map(({ action, original }) => [action, original]), [['synchronize', 'labeled']]);
    assert.equal(to(SHARED, number).length, 1, 'other accelerators get no second dispatch');
    await send('pull_request', pullRequestOf('unlabeled', pull, { label: 'ciflow/crcr/on-label', labels: [] }));
    await settled(number, (all) => all['on-label'] === 'cancelled');
    await until(() => to('torch-spyre/torch-spyre', number).some(({ action }) => action === 'closed'));
  });

  test('with drafts: false a draft is not tested, and converting to a draft cancels', async () => {
    const { number, pull } = await open({ draft: true });
    await until(() => to(INFRA, number).length === 1);
    assert.equal(to(SHARED, number).length, 0);
    await send('pull_request', pullRequestOf('ready_for_review', pull, { draft: false }));
    await until(() => to(SHARED, number).length === 1);
    assert.notEqual(to(SHARED, number)[0].action, 'closed');
    await send('pull_request', pullRequestOf('converted_to_draft', pull, { draft: true }));
    await until(() => to(SHARED, number).some(({ action }) => action === 'closed'));
    await settled(number, (all) => all.one === 'cancelled' && all.two === 'cancelled');
    assert.equal(to(INFRA, number).length, 1);
  });

  test('a changed base starts another round, sent as synchronize', async () => {
    const { number, pull } = await open();
    await until(() => to(SHARED, number).length === 1);
    await send('pull_request', pullRequestOf('edited', pull, { changes: { base: {} }, updatedAt: new Date(Date.now() + 2000).toISOString() }));
    await until(() => to(SHARED, number).length === 2);
    assert.deepEqual(to(SHARED, number).map(({ action, original }) => [action, original]), [['opened', 'opened'], ['synchronize', 'edited']]);
  });

  test('pushes go to the accelerators that registered the branch', async () => {
    const pushed = (sha) => rig.dispatches({ repository: SHARED }).filter(({ client_payload: { payload } }) => payload.after === sha);
    const [main, release] = [fakeSha('to main'), fakeSha('to release')];
    await send('push', push({ branch: 'release/2.9', after: release }));
    await send('push', push({ branch: 'main', after: main }));
    await until(() => pushed(main).length === 1);
    assert.deepEqual([pushed(main)[0].event_type, pushed(main)[0].client_payload.outpost.accelerators], ['push', ['one']]);
    assert.equal(pushed(release).length, 0);
    assert.equal((await outpost.api(`commits/${main}`)).head_sha, main);
    assert.equal((await rig.deliver('push', push({ branch: 'topic' }))).status_code, 200, 'other branches are ignored');
  });

  test('GitHub saw no violation', () => assert.deepEqual(rig.violations(), []));
});

describe("CRCR's allowlist", { skip: notBuilt }, () => {
  test('its vendors get dispatches and report at their levels', async () => {
    const [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    const outpost = await Outpost.start({
      rig, issuer,
      allowlist: 'L1:\n  - torch-spyre/torch-spyre\nL2:\n  - vllm-project/vllm: alice, @bob\nL3:\n  npu:\n    - Ascend/pytorch: [carol]\nL4:\n',
    });
    const vendors = ['torch-spyre/torch-spyre', 'vllm-project/vllm', 'Ascend/pytorch'].map((repository) => startDispatchVendor({
      rigUrl: rig.url, repository, tokenUrl: issuer.tokenUrl, callbackUrl: `${outpost.url}/github/callback/`, echo: 'crcr',
      script: [{ workflow: 'PyTorch CI', job: 'ci', conclusion: 'success', test_results: { passed: 3, failed: 0, skipped: 1 } }],
    }));
    try {
      const { accelerators } = await outpost.api('accelerators');
      assert.deepEqual(accelerators.map(({ name, level }) => `${name} ${level}`).sort(), ['npu L3', 'torch-spyre-torch-spyre L1', 'vllm-project-vllm L2']);
      await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 5, association: 'NONE' })));
      const view = await outpost.waitForApi('pulls/5', (one) => one.verdicts.length === 2, { timeout: 15_000 });
      assert.deepEqual(view.verdicts.map(({ accelerator: name, test: title, status }) => [name, title, status]).sort(), [['npu', 'ci', 'PASS'], ['vllm-project-vllm', 'ci', 'PASS']]);
      await until(() => vendors[0].reports.length === 2);
      assert.ok(vendors[0].reports.every(({ answer }) => answer.status === 200 && answer.body.status === 'ignored'), 'L1 is silent');
      await until(() => /npu/i.test(rig.comments(UPSTREAM, 5)[0]?.body ?? ''), { timeout: 10_000 });
      assert.doesNotMatch(rig.comments(UPSTREAM, 5)[0].body, /torch-spyre/);
    } finally {
      await Promise.all(vendors.map((vendor) => vendor.stop()));
      await outpost.close();
      await issuer.close();
      await rig.close();
    }
  });

  // `events` belongs to a repository, even under an L3 device with other repositories.
  test('a repository with only nightly events gets neither pull requests nor pushes', async () => {
    const [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    const outpost = await Outpost.start({
      rig, issuer,
      allowlist: 'L2:\n  - vllm-project/vllm: {oncalls: "alice, @bob", events: [nightly]}\nL3:\n  npu:\n    torch-spyre/torch-spyre: {oncalls: [carol], events: [nightly]}\n    Ascend/pytorch: {events: }\nL4:\n',
    });
    try {
      await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 6, association: 'NONE' })));
      await rig.waitForDispatch({ repository: 'Ascend/pytorch', where: ({ client_payload: { payload } }) => payload.number === 6 });
      const main = fakeSha('main of the allowlist');
      assert.equal((await rig.deliver('push', push({ branch: 'main', after: main }))).status_code, 202);
      await rig.waitForDispatch({ repository: 'Ascend/pytorch', where: ({ event_type: type }) => type === 'push' });
      const view = await outpost.api('pulls/6');
      assert.deepEqual(view.accelerators.map(({ name, dispatches }) => [name, dispatches.map(({ runner }) => runner)]), [['npu', ['ascend-pytorch']]]);
      for (const repository of ['vllm-project/vllm', 'torch-spyre/torch-spyre']) assert.deepEqual(rig.dispatches({ repository }), [], repository);
    } finally {
      await outpost.close();
      await issuer.close();
      await rig.close();
    }
  });

  // CRCR demotes by moving the entry from L3 to L2, where it belongs to no device and is its own accelerator.
  test('an entry that moves from L3 to L2 gets no new check run, and a started one is completed', async () => {
    const [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    const repository = 'Ascend/pytorch';
    const label = 'ciflow/crcr/npu';
    const outpost = await Outpost.start({ rig, issuer, allowlist: `L3:\n  npu:\n    ${repository}: [carol]\n`, config: { comment: { enabled: false } } });
    const dispatchOf = async (number) => (await rig.waitForDispatch({ repository, where: ({ client_payload: { payload } }) => payload.number === number })).client_payload;
    const report = async ({ event_type, delivery_id, payload, outpost: block }, job, status, more = {}) => {
      const answer = await outpost.request('POST', '/github/callback', { headers: { authorization: `Bearer ${await issuer.mint(githubClaims(repository))}` },
        body: JSON.stringify({ event_type, delivery_id, payload, outpost: block, workflow: workflowOf({ workflow: 'ci', job, run_id: 77, ...more }, status) }) });
      assert.equal(answer.status, 200, answer.text);
      return answer.json;
    };
    const checks = (pull) => rig.checkRuns(UPSTREAM, pull.headSha).filter(({ name }) => name.startsWith('crcr/'));
    try {
      const pull = rig.openPull(UPSTREAM, { number: 8, association: 'NONE', labels: [label] });
      await rig.deliver('pull_request', pullRequestOf('opened', pull, { labels: [label] }));
      const before = await dispatchOf(8);
      await report(before, 'begun', 'in_progress');
      await until(() => checks(pull)[0]?.status === 'in_progress', { timeout: 20_000, what: 'there is a check run in progress' });
      await fs.writeFile(path.join(outpost.dir, 'allowlist.yml'), `L2:\n  - ${repository}: carol\nL3:\n`);
      await outpost.reload();
      await outpost.waitForApi('accelerators', ({ accelerators }) => accelerators.some(({ name, level }) => name === 'ascend-pytorch' && level === 'L2'));
      await report(before, 'late', 'in_progress');
      await report(before, 'late', 'completed', { conclusion: 'success' });
      await report(before, 'begun', 'completed', { conclusion: 'failure' });
      const [check] = await until(() => { const all = checks(pull); return all[0]?.conclusion && all; }, { timeout: 20_000, what: 'the started check run is completed' });
      assert.deepEqual([check.name, check.conclusion], [`crcr/${repository}/ci/begun`, 'neutral']);
      assert.match(check.output.title, /failure/, 'the check run has the job\'s conclusion');
      assert.equal(checks(pull).length, 1, 'a job that starts later has no check run');
      const next = rig.openPull(UPSTREAM, { number: 9, association: 'NONE', labels: [label], headSha: fakeSha('after the demotion') });
      await rig.deliver('pull_request', pullRequestOf('opened', next, { labels: [label] }));
      await report(await dispatchOf(9), 'new', 'completed', { conclusion: 'success' });
      assert.deepEqual((await outpost.api('pulls/9')).accelerators.map(({ name, level }) => [name, level]), [['ascend-pytorch', 'L2']]);
      assert.deepEqual(checks(next), []);
    } finally {
      await outpost.close();
      await issuer.close();
      await rig.close();
    }
  });

  // pytorch/test-infra, torchci/pages/api/crcr/level-status.ts: the workflow that opens demotion pull requests reads it.
  test('/api/crcr/level-status has HUD\'s shape with one entry for each repository at L3', async () => {
    const [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    const outpost = await Outpost.start({ rig, issuer, allowlist: 'L2:\n  - pytorch-fdn/accelerator-test-infra\nL3:\n  npu:\n    Ascend/pytorch: [carol]\n    torch-spyre/torch-spyre: [dave]\n    vllm-project/vllm: [erin]\n', config: { comment: { enabled: false } } });
    const report = async (number, repository, conclusion) => {
      const { client_payload: { event_type, delivery_id, payload, outpost: block } } = await rig.waitForDispatch({ repository, where: ({ client_payload: { payload: it } }) => it.number === number });
      for (const status of ['in_progress', 'completed']) {
        const answer = await outpost.request('POST', '/github/callback', { headers: { authorization: `Bearer ${await issuer.mint(githubClaims(repository))}` },
          body: JSON.stringify({ event_type, delivery_id, payload, outpost: block, workflow: workflowOf({ workflow: 'ci', job: 'test', run_id: 900 + number, conclusion }, status) }) });
        assert.equal(answer.status, 200, answer.text);
      }
    };
    try {
      const pull = rig.openPull(UPSTREAM, { number: 11, association: 'NONE' });
      await rig.deliver('pull_request', pullRequestOf('opened', pull));
      await report(11, 'Ascend/pytorch', 'success');
      await report(11, 'torch-spyre/torch-spyre', 'failure');
      await report(11, 'pytorch-fdn/accelerator-test-infra', 'failure');
      await rig.waitForDispatch({ repository: 'vllm-project/vllm' });
      const get = async () => (await outpost.request('GET', '/api/crcr/level-status')).json;
      const before = await get();
      assert.deepEqual(before.repos.map(({ repo, level, change, noData, windowDays }) => ({ repo, level, change, noData, windowDays })),
        ['Ascend/pytorch', 'torch-spyre/torch-spyre', 'vllm-project/vllm'].map((repo) => ({ repo, level: 'L3', change: null, noData: true, windowDays: 7 })));
      assert.deepEqual(before.repos[0].criteria, [
        { criterion: 'End-to-End Time (P50)', measured: '–', target: '< 3 h', met: null },
        { criterion: 'Timeout Rate', measured: '–', target: '< 1%', met: null },
        { criterion: 'Job Pass Rate', measured: '–', target: '≥ 90%', met: null },
      ]);
      await report(11, 'vllm-project/vllm', 'success');
      const after = await until(async () => { const { repos } = await get(); return repos.every(({ noData }) => !noData) && repos; }, { timeout: 20_000, what: 'the figures include the run' });
      assert.deepEqual(after.map(({ repo, change }) => [repo, change]), [['Ascend/pytorch', null], ['torch-spyre/torch-spyre', 'demote'], ['vllm-project/vllm', null]]);
      const [good, bad] = after;
      assert.deepEqual(good.criteria.map(({ met }) => met), [true, true, true]);
      assert.deepEqual(bad.criteria[2], { criterion: 'Job Pass Rate', measured: '0.0%', target: '≥ 90%', met: false });
      assert.deepEqual([bad.accelerator, bad.jobs, bad.failedUpstream, bad.passRateWithUpstream], ['npu', 1, 0, 0]);
      const { accelerators } = await outpost.api('accelerators');
      const npu = accelerators.find(({ name }) => name === 'npu');
      assert.deepEqual([npu.proposal.level, npu.proposal.unmet_now, npu.criteria.down.jobs, npu.criteria.down.passed], ['L2', ['pass_rate'], 3, 2]);
      assert.deepEqual(npu.criteria.up.list.map(({ name }) => name), ['tenure', 'data', 'end_to_end_time', 'overrun_rate', 'queue_time', 'timeout_rate', 'pass_rate', 'maintainers']);
    } finally {
      await outpost.close();
      await issuer.close();
      await rig.close();
    }
  });
});
