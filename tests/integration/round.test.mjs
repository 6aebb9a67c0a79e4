// The main flow for one pull request: a webhook, dispatches to a vendor's repository, to the shared repository and to vendors'
// own CIs, reports, and one comment.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { startIssuer } from '../github/oidc.mjs';
import { pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startDispatchVendor, startSilentVendor, startWebhookVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const INFRA = 'pytorch-fdn/accelerator-test-infra';
const NUMBER = 1234;
const MARKER = '<!-- outpost:results -->';
const SECRET = 'a secret between Outpost and the lab';

const pass = (name) => ({ suite: 'model', name, status: 'PASS', duration: 1.5 });
const fail = (name, message) => ({ suite: 'model', name, status: 'FAIL', duration: 2, message });

describe('one pull request all the way round', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let outpost;
  const vendors = {};
  let pull;
  let opened;

  const inPull = (fits, options) => outpost.waitForApi(`pulls/${NUMBER}`, fits, { timeout: 15_000, ...options });
  const accelerator = (view, name) => view.accelerators.find((one) => one.name === name);
  const states = (view, name) => accelerator(view, name)?.dispatches.map(({ state }) => state) ?? [];
  const accepted = async (event, payload, options) => {
    const answer = await rig.deliver(event, payload, options);
    assert.equal(answer.status_code, 202, answer.response?.body);
    return answer;
  };
  const botComments = () => rig.comments(UPSTREAM, NUMBER).filter(({ author }) => author === rig.bot);
  // Waits until everything so far is handled: a later change has reached all runners.
  const settle = async () => {
    const number = 9000 + rig.deliveries.list().length;
    await accepted('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    await rig.waitForDispatch({ repository: 'Ascend/pytorch', where: ({ client_payload: { payload } }) => payload.number === number });
    await rig.waitForDispatch({ repository: INFRA, where: ({ client_payload: { payload } }) => payload.number === number });
    await until(() => vendors.lab.events.some(({ body }) => body?.payload?.number === number), { timeout: 10_000 });
  };

  before(async () => {
    [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    [vendors.lab, vendors.silent] = await Promise.all([
      startWebhookVendor({ secret: SECRET, script: [{ workflow: 'lab', job: 'suite', conclusion: 'failure', tests: [pass('llama3'), fail('Qwen', 'expected 1 | got 2 @pytorch/owners <b>')] }] }),
      startSilentVendor({ secret: SECRET }),
    ]);
    const common = { level: 'L2', vendor: 'A vendor', triggers: { pull_request: {}, push: { branches: ['main'] } } };
    outpost = await Outpost.start({
      rig, issuer,
      accelerators: [
        { name: 'ascend-npu', title: 'Ascend NPU', ...common, links: { docs: 'https://vendor.example/docs' }, runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }] },
        { name: 'lab-chip', title: 'Lab Chip', ...common, runners: [{ name: 'lab', webhook: { url: vendors.lab.url, secret: 'hook' } }] },
        { name: 'shared-chip', title: 'Shared Chip', ...common },
        { name: 'quiet-chip', title: 'Quiet Chip', ...common, runners: [{ name: 'lab', webhook: { url: vendors.silent.url, secret: 'hook' } }] },
      ],
      secrets: { 'lab-chip': { hook: SECRET }, 'quiet-chip': { hook: SECRET } },
      config: { infra: { repository: INFRA, trust: 'contributors' } },
    });
    const shared = { rigUrl: rig.url, tokenUrl: issuer.tokenUrl, callbackUrl: `${outpost.url}/github/callback` };
    vendors.ascend = startDispatchVendor({ ...shared, repository: 'Ascend/pytorch', script: [{ workflow: 'npu', job: 'test', tests: [pass('llama3'), pass('Qwen')] }] });
    vendors.infra = startDispatchVendor({ ...shared, repository: INFRA, script: [{ workflow: 'infra', job: 'test', accelerator: 'shared-chip', tests: [pass('llama3')] }] });
    await outpost.waitForLog({ ev: 'reconciled' }, { timeout: 20_000 }); // from now on only the webhook announces the pull request
    pull = rig.openPull(UPSTREAM, { number: NUMBER, files: ['aten/src/ATen/native/Add.cpp'] });
  });

  after(async () => {
    await Promise.all(Object.values(vendors).map((vendor) => vendor.stop()));
    await outpost?.close();
    await Promise.all([issuer?.close(), rig?.close()]);
  });

  test('each runner gets an opened pull request in CRCR\'s format', async () => {
    opened = await accepted('pull_request', pullRequestOf('opened', pull));
    const [github, infra] = await Promise.all([rig.waitForDispatch({ repository: 'Ascend/pytorch' }), rig.waitForDispatch({ repository: INFRA })]);
    for (const [dispatch, accelerators] of [[github, ['ascend-npu']], [infra, ['shared-chip']]]) {
      assert.equal(dispatch.event_type, 'pull_request');
      assert.deepEqual(Object.keys(dispatch.client_payload).sort(), ['delivery_id', 'event_type', 'outpost', 'payload']);
      const { event_type: type, delivery_id: delivery, payload, outpost: block } = dispatch.client_payload;
      assert.deepEqual([type, delivery, payload.action, payload.number, payload.pull_request.head.sha],
        ['pull_request', opened.guid, 'opened', NUMBER, pull.headSha]);
      assert.equal(block.schema, 1);
      assert.equal(block.action, 'opened');
      assert.match(block.dispatch_id, /^[a-z2-7]{26}$/i);
      assert.ok(block.callback_url.startsWith(outpost.url));
      assert.ok(block.change_url.startsWith(outpost.url));
      if (dispatch === github) assert.deepEqual(block.accelerators, accelerators);
      else assert.ok(accelerators.every((name) => block.accelerators.includes(name)));
    }
    await until(() => vendors.lab.events.length > 0 && vendors.silent.events.length > 0);
    const [{ event, delivery, valid, body }] = vendors.lab.events;
    assert.ok(valid, 'the signature verifies');
    assert.deepEqual([event, delivery, body.event_type, body.delivery_id], ['pull_request', body.outpost.dispatch_id, 'pull_request', opened.guid]);
    assert.equal(body.outpost.callback_url, `${outpost.url}/api/v1/dispatches/${body.outpost.dispatch_id}/jobs`);
    assert.equal(typeof body.outpost.callback_token, 'string');
    assert.deepEqual(body.outpost.accelerators, ['lab-chip']);
  });

  test('the API shows the reports', async () => {
    const view = await inPull((one) => ['ascend-npu', 'lab-chip', 'shared-chip'].every((name) => states(one, name).includes('done')));
    assert.deepEqual([view.repository, view.number, view.head_sha, view.state], [UPSTREAM, NUMBER, pull.headSha, 'open']);
    assert.deepEqual(states(view, 'quiet-chip'), ['acknowledged']);
    const npu = accelerator(view, 'ascend-npu');
    assert.deepEqual([npu.title, npu.level, npu.dispatches[0].runner, npu.dispatches[0].held_reason], ['Ascend NPU', 'L2', 'ci', null]);
    const [job] = npu.jobs;
    assert.deepEqual([job.workflow, job.name, job.status, job.conclusion, Number(job.run_attempt)], ['npu', 'test', 'completed', 'success', 1]);
    const cells = view.verdicts.map(({ accelerator: name, suite, test: title, status, attribution }) => [name, suite, title, status, attribution].join(' '));
    for (const cell of ['ascend-npu model llama3 PASS ', 'ascend-npu model Qwen PASS ', 'lab-chip model llama3 PASS ', 'shared-chip model llama3 PASS '])
      assert.ok(cells.includes(cell), `${cell} in ${cells.join('; ')}`);
    const red = view.verdicts.find(({ accelerator: name, test: title }) => name === 'lab-chip' && title === 'Qwen');
    assert.equal(red.status, 'FAIL');
    assert.equal(red.attribution, 'UNCLASSIFIED', 'no evidence classifies it');
    assert.match(red.message, /expected 1/);
    const commit = await outpost.api(`commits/${pull.headSha}`);
    assert.equal(commit.head_sha, pull.headSha);
    const detail = await outpost.api(`jobs/${red.job}`);
    assert.deepEqual([detail.workflow, detail.accelerator, detail.number, detail.head_sha], ['lab', 'lab-chip', NUMBER, pull.headSha]);
    assert.deepEqual(detail.tests.map(({ name, status }) => [name, status]), [['llama3', 'PASS'], ['Qwen', 'FAIL']]);
    for (const link of [`/jobs/${red.job}`, `/pulls/${NUMBER}`, `/commits/${pull.headSha}`]) {
      const { status, headers } = await outpost.get(link);
      assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8'], 'the pages that the comment links to exist');
    }
    for (const missing of ['/jobs/999999', '/api/v1/jobs/999999']) assert.equal((await outpost.get(missing)).status, 404);
  });

  test('the bot writes one comment in which vendor text stays text', async () => {
    await until(() => /✗.*✓|✓.*✗/.test(botComments()[0]?.body.split('\n').find((line) => /^\|.*Qwen/.test(line)) ?? ''), { timeout: 10_000, what: 'the comment has both reports of Qwen' });
    const comments = botComments();
    assert.equal(comments.length, 1);
    const [{ body }] = comments;
    assert.ok(body.includes(MARKER));
    assert.ok(body.includes(pull.headSha.slice(0, 7)));
    const rows = body.split('\n').filter((line) => line.trim().startsWith('|'));
    assert.ok(rows.some((row) => /Ascend NPU/.test(row) && /Lab Chip/.test(row) && /https:\/\/vendor\.example\/docs/.test(row)), 'each accelerator has a heading with a link to its docs');
    const cells = (row) => row.split(/(?<!\\)\|/).slice(1, -1);
    assert.ok(rows.every((row) => cells(row).length === cells(rows[0]).length), 'each row has as many cells as the heading');
    assert.ok(rows.some((row) => /llama3/.test(row) && row.includes('✓')));
    assert.ok(rows.some((row) => /Qwen/.test(row) && row.includes('✗') && row.includes('✓')));
    const html = execFileSync('cmark-gfm', ['-e', 'table', '-e', 'autolink', '-e', 'strikethrough', '--unsafe'], { input: body }).toString();
    assert.equal(html.match(/<table>/g).length, 1);
    assert.match(html, /<code>expected 1 \| got 2 @pytorch\/owners &lt;b&gt;<\/code>/, 'the message is code, in which GitHub neither mentions nor renders');
    assert.doesNotMatch(html.replace(/<code>.*?<\/code>/gs, ''), /<b>|@pytorch/);
  });

  test('a repeated event, even under another GUID, sends no second dispatch', async () => {
    const before = rig.dispatches({ repository: 'Ascend/pytorch' }).length;
    const again = await rig.deliver('pull_request', pullRequestOf('opened', pull), { guid: opened.guid });
    assert.equal(again.status_code, 200);
    await accepted('pull_request', pullRequestOf('opened', pull), { guid: randomUUID() });
    await settle();
    const mine = rig.dispatches({ repository: 'Ascend/pytorch' }).filter(({ client_payload: { payload } }) => payload.number === NUMBER);
    assert.equal(mine.length, 1);
    assert.equal(before, 1);
    assert.equal(vendors.lab.events.filter(({ body }) => body.payload?.number === NUMBER).length, 1);
  });

  test('with a cached token a dispatch is one request', async () => {
    await settle();
    const after = rig.requests().at(-1).seq;
    await settle();
    const asked = rig.requests({ after }).filter(({ path }) => !path.startsWith('/repos/pytorch/pytorch/'));
    assert.deepEqual(asked.map(({ method, path }) => `${method} ${path}`).sort(), ['POST /repos/Ascend/pytorch/dispatches', `POST /repos/${INFRA}/dispatches`]);
  });

  test('a new head supersedes the old one', async () => {
    const old = pull.headSha;
    pull = rig.updatePull(UPSTREAM, NUMBER, { headSha: 'f'.repeat(40) });
    const sent = await accepted('pull_request', pullRequestOf('synchronize', pull, { before: old }));
    const dispatch = await rig.waitForDispatch({ repository: 'Ascend/pytorch', where: ({ client_payload: one }) => one.delivery_id === sent.guid });
    assert.deepEqual([dispatch.client_payload.payload.action, dispatch.client_payload.payload.after], ['synchronize', pull.headSha]);
    const view = await inPull((one) => one.head_sha === pull.headSha && ['ascend-npu', 'lab-chip', 'shared-chip'].every((name) => states(one, name).includes('done')));
    assert.equal(view.state, 'open');
    const before = await outpost.api(`commits/${old}`);
    assert.equal(before.state, 'superseded');
    assert.equal(states(before, 'quiet-chip')[0], 'superseded', 'an unfinished dispatch is superseded');
    assert.deepEqual(states(before, 'ascend-npu'), ['done'], 'a finished dispatch stays');
    assert.ok(before.verdicts.length > 0, 'the old head keeps its results');
    await until(() => vendors.silent.events.some(({ event, body, valid }) => event === 'cancel' && valid && body.payload?.number === NUMBER), { what: 'the silent vendor receives the cancel', timeout: 10_000 });
    await until(() => botComments()[0].body.includes(pull.headSha.slice(0, 7)), { timeout: 10_000 });
    assert.equal(botComments().length, 1);
    assert.ok(!botComments()[0].body.includes(old.slice(0, 7)));
  });

  test('an edited title is ignored, and a changed base is a retest sent as synchronize', async () => {
    const title = await rig.deliver('pull_request', pullRequestOf('edited', pull, { changes: { title: { from: 'x' } } }));
    assert.equal(title.status_code, 200);
    const sent = await accepted('pull_request', pullRequestOf('edited', pull));
    const dispatch = await rig.waitForDispatch({ repository: 'Ascend/pytorch', after: 0, where: ({ client_payload: one }) =>
      one.payload.number === NUMBER && one.outpost.action === 'edited' }, 10_000);
    assert.equal(dispatch.client_payload.payload.action, 'synchronize');
    assert.ok(sent.guid);
  });

  test('a push to main is a separate change', async () => {
    const after = rig.push(UPSTREAM, { files: ['aten/x.cpp'] });
    const sent = await accepted('push', push({ after }));
    const dispatch = await rig.waitForDispatch({ repository: 'Ascend/pytorch', where: ({ client_payload: one }) => one.delivery_id === sent.guid });
    assert.equal(dispatch.event_type, 'push');
    assert.equal(dispatch.client_payload.payload.after, after);
    const view = await outpost.waitForApi(`commits/${after}`, (one) => states(one, 'ascend-npu').includes('done'), { timeout: 10_000 });
    assert.equal(view.number ?? null, null);
  });

  test('closed is forwarded once to each repository and cancels', async () => {
    pull = rig.updatePull(UPSTREAM, NUMBER, { state: 'closed' });
    await accepted('pull_request', pullRequestOf('closed', pull));
    const closed = ({ client_payload: { payload } }) => payload.number === NUMBER && payload.action === 'closed';
    await Promise.all(['Ascend/pytorch', INFRA].map((repository) => rig.waitForDispatch({ repository, where: closed })));
    await accepted('pull_request', pullRequestOf('closed', pull));
    await settle();
    for (const repository of ['Ascend/pytorch', INFRA]) assert.equal(rig.dispatches({ repository }).filter(closed).length, 1, repository);
    const view = await inPull(({ state }) => state === 'closed');
    assert.ok(accelerator(view, 'quiet-chip').dispatches.every(({ state }) => ['cancelled', 'superseded', 'done'].includes(state)));
  });

  test('GitHub saw no violation and one comment, and tokens have the least permissions', () => {
    assert.deepEqual(rig.violations(), []);
    const made = rig.requests({ method: 'POST', path: `/repos/${UPSTREAM}/issues/${NUMBER}/comments` });
    assert.equal(made.length, 1);
    for (const token of rig.gate.tokens()) {
      assert.equal(token.requested?.repositories?.length ?? token.requested?.repository_ids?.length, 1, 'each token is for one repository');
      assert.ok(Object.keys(token.requested.permissions ?? {}).length <= 2, `the token has too many permissions: ${JSON.stringify(token.requested)}`);
    }
  });

  test('unknown pull requests, commits and paths are 404', async () => {
    for (const target of ['pulls/999999', `commits/${'0'.repeat(40)}`, 'commits/xyz', 'pulls/abc', 'accelerators/none', 'nothing'])
      assert.equal((await outpost.get(`/api/v1/${target}`)).status, 404, target);
  });

  test('the API lists the registered accelerators', async () => {
    const { accelerators } = await outpost.api('accelerators');
    assert.deepEqual(accelerators.map(({ name }) => name).sort(), ['ascend-npu', 'lab-chip', 'quiet-chip', 'shared-chip']);
    const npu = accelerators.find(({ name }) => name === 'ascend-npu');
    assert.deepEqual([npu.title, npu.vendor, npu.level, npu.runners.map(({ name, kind }) => `${name} ${kind}`)], ['Ascend NPU', 'A vendor', 'L2', ['ci github']]);
  });
});
