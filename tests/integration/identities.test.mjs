// The repository behind a name (finding 15): Outpost records the ids in the first GitHub token, files may pin them, and every
// endpoint refuses and reports a token with other ids.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildkiteClaims, githubClaims, startIssuer } from '../github/oidc.mjs';
import { fakeSha } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const INFRA = 'pytorch-fdn/infra';
const ORGANIZATION = '0190aaaa-0000-4000-8000-000000000001';
const PIPELINE = '0190bbbb-0000-4000-8000-000000000002';
const ci = (name, github, more = {}) => ({ name, title: name, level: 'L2', trust: 'anyone', triggers: { pull_request: false, schedule: ['0 0 1 1 *'] }, runners: [{ name: 'ci', github }], ...more });
const ids = (id, owner) => ({ repository_id: id === undefined ? null : String(id), repository_owner_id: owner === undefined ? null : String(owner) });

describe('repositories behind their names (finding 15)', { skip: notBuilt }, () => {
  let rig;
  let github;
  let buildkite;
  let outpost;
  let nights = 0;

  const repositories = ['ascend/npu', 'pinned/pinned', 'owner/pinned', 'race/race', 'later/later', 'vllm/vllm', 'vendor/job', 'shared/shared'];
  const accelerators = [
    ci('npu', { repository: 'ascend/npu' }), ci('pinned', { repository: 'pinned/pinned', repository_id: 123, repository_owner_id: 45 }),
    ci('owner', { repository: 'owner/pinned', repository_owner_id: 45 }), ci('race', { repository: 'race/race' }), ci('later', { repository: 'later/later' }),
    ci('vllm', { repository: 'vllm/vllm', repository_id: 7 }), ci('job', { repository: 'vendor/job' }),
    ci('one', { repository: 'shared/shared' }), ci('two', { repository: 'Shared/shared', repository_id: 9 }),
    { name: 'hosted', title: 'Hosted', level: 'L2', triggers: { pull_request: false } },
    ci('quiet', { repository: 'quiet/quiet' }, { level: 'L1' }),
  ];

  before(async () => {
    [rig, github, buildkite] = await Promise.all([startRig({ repositories: [UPSTREAM, INFRA, ...repositories].map((name) => ({ name })) }), startIssuer(), startIssuer()]);
    outpost = await Outpost.start({
      rig, issuers: [github, Object.assign(buildkite, { repositories: { [`${ORGANIZATION}/${PIPELINE}`]: { repository: 'vllm/vllm' } } })], accelerators,
      config: { comment: { enabled: false }, infra: { repository: INFRA, repository_id: 500 } },
    });
  });
  after(async () => {
    await outpost?.close();
    await Promise.all([github?.close(), buildkite?.close(), rig?.close()]);
  });

  const send = async (token, more = {}) => outpost.request('POST', '/github/callback', { headers: { authorization: `Bearer ${token}` }, body: {
    event_type: 'nightly', delivery_id: fakeSha(`night ${nights++}`), payload: {},
    workflow: { ...workflowOf({ workflow: 'nightly', job: 'all', run_id: nights }, 'completed'), ...more } } });
  const report = async (repository, claims, more) => send(await github.mint(githubClaims(repository, claims)), more);
  const status = async (...args) => (await report(...args)).status;
  const identities = async () => JSON.parse((await outpost.ctl('--json', 'identities')).stdout).identities;
  const identity = async (name) => (await identities()).find(({ repository }) => repository === name);
  const metric = async (name) => Number((await outpost.get('/metrics')).text.match(new RegExp(`^${name} (\\d+)$`, 'm'))[1]);

  test('the ids of the first token are recorded before its report counts, and survive a kill', async () => {
    assert.equal(await identity('ascend/npu'), undefined);
    assert.equal(await status('Ascend/NPU', ids(74, 65)), 200);
    const { recorded_at: at, ...row } = await identity('ascend/npu');
    assert.match(at, /Z$/);
    assert.deepEqual(row, { repository: 'ascend/npu', repository_id: 74, repository_owner_id: 65, issuer: github.issuer, refused: null });
    await outpost.restart({ hard: true });
    assert.equal(await status('ascend/npu', ids(74, 65)), 200);
    assert.equal(await status('ascend/npu', ids(75, 65)), 403);
    assert.equal(await status('ascend/npu', ids(74, 65)), 200);
  });

  test('other ids are refused and reported, until the operator accepts them', async () => {
    const before = await metric('outpost_identities_refused_total');
    const { status: code, json } = await report('ascend/npu', ids(99, 98));
    assert.equal(code, 403);
    assert.match(json.detail, /repository_id 99, repository_owner_id 98\) are not those on record for ascend\/npu \(repository_id 74, repository_owner_id 65\).*identities forget ascend\/npu/);
    await outpost.waitForLog({ ev: 'identity_refused', repository: 'ascend/npu', token: /repository_id 75/, recorded: /repository_id 74/ }); // one line for many refusals
    assert.equal(await metric('outpost_identities_refused_total'), before + 1);
    assert.deepEqual((({ repository_id: id, repository_owner_id: owner }) => [id, owner])((await identity('ascend/npu')).refused), [99, 98]);
    assert.match((await outpost.ctl('status')).stdout, /! the last token of ascend\/npu was refused, because it belongs to another repository: outpostctl identities/);
    assert.match((await outpost.ctl('identities')).stdout, /ascend\/npu +74 +65 .*a token with id 99, owner 98 was refused/s);
    for (const claims of [ids(), ids(74), ids(undefined, 65), ids(74, 64)]) assert.equal(await status('ascend/npu', claims), 403, JSON.stringify(claims));
    assert.equal((await outpost.ctl('identities', 'forget', 'nobody/nothing')).code, 1);
    const { stdout } = await outpost.ctl('identities', 'forget', 'Ascend/NPU');
    assert.match(stdout, /the ids of its next valid token will be recorded/);
    assert.equal(await status('ascend/npu', ids(99, 98)), 200);
    assert.equal(await status('ascend/npu', ids(74, 65)), 403);
    assert.equal(await status('ascend/npu', ids(99, 98)), 200);
    assert.doesNotMatch((await outpost.ctl('status')).stdout, /belongs to another repository/);
  });

  test('an invalid token and a token of an unregistered repository record no ids', async () => {
    const forged = await github.mint(githubClaims('later/later', ids(1, 2)), { signWith: 'stranger' });
    assert.equal((await send(forged)).status, 401);
    assert.equal((await send(await github.mint(githubClaims('later/later', { repository_id: 'x' })))).status, 401);
    const stranger = await report('some/body', ids(1, 2));
    assert.deepEqual([stranger.status, stranger.json.status], [200, 'ignored']);
    const quiet = await report('quiet/quiet', ids(1, 2));
    assert.deepEqual([quiet.status, quiet.json.status], [200, 'ignored']);
    for (const name of ['later/later', 'some/body', 'quiet/quiet']) assert.equal(await identity(name), undefined);
    // A token needs no ids if none are recorded or pinned.
    assert.equal(await status('later/later', ids()), 200);
    assert.equal(await identity('later/later'), undefined);
    assert.equal(await status('later/later', ids(5, 6)), 200);
    assert.equal(await status('later/later', ids()), 403);
  });

  test('a pin applies from the first token on, in any file of the repository', async () => {
    const wrong = await report('pinned/pinned', ids(124, 45));
    assert.equal(wrong.status, 403);
    assert.match(wrong.json.detail, /repository_id 124, repository_owner_id 45\) are not those that the registry pins for pinned\/pinned/);
    const row = await identity('pinned/pinned');
    assert.deepEqual([row.repository_id, row.recorded_at, row.refused.repository_id], [null, null, 124]);
    assert.equal(await status('pinned/pinned', ids(123, 46)), 403);
    assert.equal(await status('pinned/pinned', ids()), 403);
    assert.equal(await status('pinned/pinned', ids(123, 45)), 200);
    assert.equal(await status('owner/pinned', ids(1, 46)), 403);
    assert.equal(await status('owner/pinned', ids(1, 45)), 200);
    assert.equal(await status('owner/pinned', ids(2, 45)), 403, 'the ids of the first token are recorded');
    assert.equal(await status('shared/shared', ids(8, 1), { accelerator: 'one' }), 403);
    assert.equal(await status('shared/shared', ids(9, 1), { accelerator: 'one' }), 200);
    assert.equal(await status(INFRA, ids(501, 1)), 403);
    assert.equal(await status(INFRA, ids(500, 1)), 200);
    assert.equal(await status(INFRA, ids(500, 2)), 403);
  });

  test('if first tokens with different ids arrive at once, one wins', async () => {
    const claims = [1, 2, 3, 4, 5, 6].map((id) => ids(id, 65));
    const tokens = await Promise.all([...claims, ...claims].map((one) => github.mint(githubClaims('race/race', one))));
    const codes = await Promise.all(tokens.map(async (token) => (await send(token)).status));
    const winner = codes.findIndex((code) => code === 200);
    assert.deepEqual(codes, codes.map((_, i) => (i % 6 === winner % 6 ? 200 : 403)));
    assert.equal((await identity('race/race')).repository_id, (winner % 6) + 1);
  });

  test('a job\'s log and report check the ids too', async () => {
    const { json: { job } } = await report('vendor/job', ids(74, 65));
    const put = async (what, claims) => (await outpost.request('PUT', `/api/v1/jobs/${job}/${what}`, {
      headers: { authorization: `Bearer ${await github.mint(githubClaims('vendor/job', claims))}` }, body: what === 'log' ? 'a line\n' : '<testsuite name="unit"><testcase name="a"/></testsuite>' })).status;
    for (const what of ['log', 'report']) {
      assert.equal(await put(what, ids(75, 65)), 403);
      assert.equal(await put(what, ids()), 403);
      assert.equal(await put(what, ids(74, 65)), 200);
    }
  });

  test('a token of an issuer that is mapped by immutable ids records no repository ids', async () => {
    const token = await buildkite.mint(buildkiteClaims({ organizationId: ORGANIZATION, pipelineId: PIPELINE }));
    assert.equal((await send(token)).status, 200);
    assert.equal(await identity('vllm/vllm'), undefined);
    assert.equal(await status('vllm/vllm', ids(8, 1)), 403);
  });

  test('a pin from a reload applies at once and does not replace the recorded ids', async () => {
    assert.equal(await status('vendor/job', ids(74, 65)), 200);
    await outpost.configure({ accelerators: accelerators.map((one) => (one.name === 'job' ? ci('job', { repository: 'vendor/job', repository_id: 80 }) : one)) });
    await outpost.reload();
    assert.equal(await status('vendor/job', ids(74, 65)), 403);
    assert.equal(await status('vendor/job', ids(80, 65)), 403);
    assert.equal((await outpost.ctl('identities', 'forget', 'vendor/job')).code, 0);
    assert.equal(await status('vendor/job', ids(80, 65)), 200);
    await outpost.configure({ accelerators: [...accelerators, ci('three', { repository: 'shared/shared', repository_id: 10 })] });
    assert.match((await outpost.check()).stdout, /two\.yml:1: Shared\/shared is pinned to another id by .*three\.yml:1|three\.yml:1: shared\/shared is pinned to another id by .*two\.yml:1/);
    await until(async () => (await outpost.get('/readyz')).status === 200);
  });
});
