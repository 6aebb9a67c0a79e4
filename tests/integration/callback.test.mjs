// Reports: POST /github/callback as CRCR's reporter sends it, and POST /api/v1/dispatches/{id}/jobs. Each answer in the
// contract's table, and forged tokens.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { buildkiteClaims, githubClaims, startIssuer } from '../github/oidc.mjs';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Clock } from '../history/clock.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'hook secret';
const LIMIT = 100; // callbacks a minute for one repository
const MINUTE_MS = 60_000;
const KEYS_MS = MINUTE_MS; // Outpost fetches an issuer's keys once a minute
const MAX_BODY = 2 * 1024 * 1024;
const REPOSITORIES = Array.from({ length: 8 }, (_, i) => `Ascend/pytorch-${i}`);
const BUILDKITE = { organizationId: '0190aaaa-0000-4000-8000-000000000001', pipelineId: '0190bbbb-0000-4000-8000-000000000002' };

describe('reports', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let buildkite;
  let outpost;
  let clock;
  let vendor;
  let next = 100;
  let current = 0; // index of the repository that the tests use now: each may call only 100 times a minute
  let runs = 5000;

  before(async () => {
    [rig, issuer, buildkite, vendor] = await Promise.all([
      startRig({ repositories: ['pytorch/pytorch', ...REPOSITORIES, 'torch-spyre/torch-spyre', 'vllm-project/vllm', 'quiet/quiet', 'bound/bound', 'flood/flood'].map((name) => ({ name })) }),
      startIssuer(), startIssuer(), startSilentVendor({ secret: SECRET }),
    ]);
    const common = { level: 'L2', triggers: { pull_request: {} } };
    const github = (repository, more) => [{ name: 'ci', github: { repository, ...more } }];
    outpost = await Outpost.prepare({
      rig,
      issuers: [issuer, { issuer: buildkite.issuer, jwksUrl: buildkite.jwksUrl, repositories: {
        [`${BUILDKITE.organizationId}/${BUILDKITE.pipelineId}`]: { repository: 'vllm-project/vllm', required_claims: { build_branch: ['main'] } },
      } }],
      accelerators: [
        ...REPOSITORIES.map((repository, i) => ({ name: `npu-${i}`, title: `NPU ${i}`, ...common, runners: github(repository) })),
        { name: 'spyre-a', title: 'Spyre A', ...common, runners: github('torch-spyre/torch-spyre') },
        { name: 'spyre-b', title: 'Spyre B', ...common, runners: github('torch-spyre/torch-spyre') },
        { name: 'vllm', title: 'vLLM', ...common, runners: github('vllm-project/vllm') },
        { name: 'quiet', title: 'Quiet', ...common, level: 'L1', runners: github('quiet/quiet') },
        { name: 'bound', title: 'Bound', ...common, runners: github('bound/bound', { workflow: '.github/workflows/x.yml' }) },
        { name: 'flood', title: 'Flood', ...common, runners: github('flood/flood') },
        { name: 'lab', title: 'Lab', ...common, runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] },
      ],
      secrets: { lab: { hook: SECRET } },
      config: { comment: { enabled: false } },
    });
    clock = new Clock(outpost.dir, Date.now());
    outpost.options.env = clock.environment;
    await outpost.spawn();
  });

  after(async () => {
    await outpost?.close();
    clock?.close();
    await Promise.all([issuer?.close(), buildkite?.close(), vendor?.stop(), rig?.close()]);
  });

  // Opens a pull request that is dispatched to all. Returns {number, pull, repository, accelerator, dispatch(),
  // dispatchTo(repository)}; post() reports as `repository` until the next change.
  async function change() {
    current = (current + 1) % REPOSITORIES.length;
    const repository = REPOSITORIES[current];
    const number = next++;
    const pull = rig.openPull(UPSTREAM, { number });
    const { status_code: code } = await rig.deliver('pull_request', pullRequestOf('opened', pull));
    assert.equal(code, 202);
    // The dispatch comes from the webhook or, after a start, from Outpost's own list of open pull requests.
    const dispatchTo = (name) => rig.waitForDispatch({ repository: name, where: ({ client_payload: { payload } }) => payload.number === number });
    return { number, pull, repository, accelerator: `npu-${current}`, dispatchTo, dispatch: () => dispatchTo(repository) };
  }

  const token = (repository = REPOSITORIES[current], claims, options) => issuer.mint(githubClaims(repository, claims), options);
  const step = (more = {}) => ({ workflow: 'ci', job: 'test', run_id: ++runs, ...more });
  const post = async (body, { bearer, path = '/github/callback', headers } = {}) => outpost.request('POST', path, {
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...(bearer !== null && { authorization: `Bearer ${bearer ?? await token()}` }), ...headers },
  });
  const bodyOf = ({ client_payload: { event_type, delivery_id, payload, outpost: block } }, workflow) => ({ event_type, delivery_id, payload, outpost: block, workflow });
  const recorded = (answer, status) => {
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(Object.keys(answer.json).sort(), ['job', 'ok', 'report_url', 'status']);
    assert.deepEqual([answer.json.ok, answer.json.status], [true, status]);
    assert.ok(answer.json.report_url.startsWith('http'));
    return answer.json.job;
  };
  const ignored = (answer) => {
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json, { ok: true, status: 'ignored' });
  };
  const refused = (answer, status, pattern = /./, what = '') => {
    assert.equal(answer.status, status, `${what} ${answer.text}`);
    assert.match(answer.json?.detail ?? answer.json?.error ?? '', pattern, `${what} ${answer.text}`);
  };
  const jobs = async ({ number, accelerator }, name = accelerator) => (await outpost.api(`pulls/${number}`)).accelerators.find((one) => one.name === name);
  const verdictsOf = async ({ number, accelerator }) => (await outpost.api(`pulls/${number}`)).verdicts.filter((one) => one.accelerator === accelerator);

  describe('200', () => {
    test('in_progress, completed, and a repetition of each', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      const run = step({ tests: [{ suite: 'model', name: 'llama3', status: 'PASS' }] });
      const job = recorded(await post(bodyOf(dispatch, workflowOf(run, 'in_progress'))), 'in_progress');
      assert.equal((await jobs(one)).dispatches[0].state, 'running');
      assert.equal(recorded(await post(bodyOf(dispatch, workflowOf(run, 'in_progress'))), 'in_progress'), job);
      const done = bodyOf(dispatch, workflowOf(run, 'completed'));
      assert.equal(recorded(await post(done), 'completed'), job);
      assert.equal(recorded(await post(done), 'completed'), job);
      const view = await jobs(one);
      assert.deepEqual([view.jobs.length, view.jobs[0].status, view.jobs[0].conclusion, view.dispatches[0].state], [1, 'completed', 'success', 'done']);
      const verdict = (await outpost.api(`pulls/${one.number}`)).verdicts.find(({ test: title }) => title === 'llama3');
      assert.deepEqual([verdict.status, verdict.attribution, String(verdict.job)], ['PASS', null, String(job)]);
    });

    test('a path with a trailing slash, a report with only a delivery_id, a run_id as a string', async () => {
      const one = await change();
      const { client_payload: { event_type, delivery_id, payload } } = await one.dispatch();
      const run = step();
      const body = { event_type, delivery_id, payload, workflow: workflowOf(run, 'in_progress') };
      const job = recorded(await post(body, { path: '/github/callback/' }), 'in_progress');
      body.workflow.run_id = String(run.run_id);
      assert.equal(recorded(await post(body), 'in_progress'), job);
      delete body.payload;
      assert.equal(recorded(await post(body), 'in_progress'), job);
    });

    test('completed without in_progress counts, and in_progress after completed changes nothing', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      const run = step({ conclusion: 'failure' });
      const job = recorded(await post(bodyOf(dispatch, workflowOf(run, 'completed'))), 'completed');
      const late = await post(bodyOf(dispatch, workflowOf(run, 'in_progress')));
      assert.equal(late.status, 200, late.text);
      const view = await jobs(one);
      assert.deepEqual([view.jobs.length, view.jobs[0].status, view.jobs[0].conclusion], [1, 'completed', 'failure']);
      const verdict = (await verdictsOf(one))[0];
      assert.deepEqual([verdict.status, verdict.test, String(verdict.job)], ['FAIL', 'test', String(job)]);
    });

    test('a new attempt reopens the dispatch', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      const run = step({ conclusion: 'failure' });
      const first = recorded(await post(bodyOf(dispatch, workflowOf(run, 'completed'))), 'completed');
      const second = recorded(await post(bodyOf(dispatch, workflowOf({ ...run, run_attempt: 2 }, 'in_progress'))), 'in_progress');
      assert.notEqual(second, first);
      assert.equal((await jobs(one)).dispatches[0].state, 'running');
      recorded(await post(bodyOf(dispatch, workflowOf({ ...run, run_attempt: 2, conclusion: 'success' }, 'completed'))), 'completed');
      const verdict = (await verdictsOf(one))[0];
      assert.equal(verdict.status, 'PASS');
    });

    test('a job without tests is one row whose status follows its conclusion', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      const expected = { success: 'PASS', failure: 'FAIL', skipped: 'SKIP', neutral: 'DONE', cancelled: 'MISS', timed_out: 'MISS', startup_failure: 'MISS' };
      for (const conclusion of Object.keys(expected)) recorded(await post(bodyOf(dispatch, workflowOf(step({ job: `is-${conclusion}`, conclusion }), 'completed'))), 'completed');
      const { verdicts } = await outpost.api(`pulls/${one.number}`);
      const found = Object.fromEntries(verdicts.filter(({ test: title }) => title.startsWith('is-')).map(({ test: title, status }) => [title.slice(3), status]));
      assert.deepEqual(found, expected);
    });

    test('a job that failed without a failed test adds its own row', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      recorded(await post(bodyOf(dispatch, workflowOf(step({ job: 'crashed', conclusion: 'failure', tests: [{ suite: 'unit', name: 'a', status: 'PASS' }] }), 'completed'))), 'completed');
      const { verdicts } = await outpost.api(`pulls/${one.number}`);
      assert.deepEqual(verdicts.map(({ test: title, status }) => `${title} ${status}`).sort(), ['a PASS', 'crashed FAIL']);
    });

    test('a job without job_name has the workflow\'s name, and optional fields of a wrong type are ignored', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      const { job_name: dropped, ...workflow } = workflowOf(step(), 'completed');
      Object.assign(workflow, { url: 7, check_run_id: {}, started_at: 'yesterday', completed_at: [], test_results: 'many', artifact_url: 1, schema_version: 'x' });
      recorded(await post(bodyOf(dispatch, workflow)), 'completed');
      const [job] = (await jobs(one)).jobs;
      assert.deepEqual([job.workflow, job.name], ['ci', 'ci']);
      assert.equal(dropped, 'test');
    });

    test('reports of unregistered repositories, of L1 and on a forwarded `closed` are ignored', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      const report = bodyOf(dispatch, workflowOf(step(), 'in_progress'));
      ignored(await post(report, { bearer: await token('someone/else') }));
      const quiet = await one.dispatchTo('quiet/quiet');
      ignored(await post(bodyOf(quiet, workflowOf(step(), 'completed')), { bearer: await token('quiet/quiet') }));
      const { guid } = await rig.deliver('pull_request', pullRequestOf('closed', rig.updatePull(UPSTREAM, one.number, { state: 'closed' })));
      const closed = await rig.waitForDispatch({ repository: one.repository, where: ({ client_payload: it }) => it.delivery_id === guid });
      ignored(await post(bodyOf(closed, workflowOf(step(), 'completed'))));
    });

    test('a self-reported nightly run appears on no pull request', async () => {
      const one = await change();
      await one.dispatch();
      const sha = one.pull.headSha;
      for (const event of ['nightly', 'periodic']) {
        const body = { event_type: event, delivery_id: sha, payload: { head_sha: sha }, workflow: workflowOf(step({ job: event }), 'completed') };
        recorded(await post(body), 'completed');
        refused(await post({ ...body, workflow: workflowOf(step(), 'in_progress') }), 400);
        refused(await post({ ...body, event_type: 'push', delivery_id: 'main' }), 400, /dispatch/);
      }
      assert.deepEqual((await jobs(one)).jobs, []);
      assert.deepEqual((await outpost.api(`pulls/${one.number}`)).verdicts, []);
    });

    // A vendor's CI outside GitHub has other ids. PyTorch's relay once lost 58 reports of vLLM because of them.
    test('a self-report whose delivery_id is not a commit takes the commit from another field, or has none', async () => {
      const one = await change();
      await one.dispatch();
      const sha = one.pull.headSha;
      const report = (more, run) => post({ event_type: 'nightly', delivery_id: `buildkite-89983-${randomUUID()}`, workflow: workflowOf(step({ job: `nightly ${run}`, run_id: run, conclusion: 'failure' }), 'completed'), ...more });
      const jobOf = async (answer) => outpost.api(`jobs/${recorded(answer, 'completed')}`);
      for (const [i, more] of [{ pytorch_head_sha: sha.toUpperCase() }, { payload: { head_sha: sha } }, { payload: { head_sha: 'main', after: sha } }, { payload: { pull_request: { head: { sha } } } }].entries()) {
        const job = await jobOf(await report(more, `${i}`));
        assert.deepEqual([job.kind, job.head_sha, job.change_url], ['nightly', sha, `${outpost.url}/commits/${sha}?kind=nightly`], JSON.stringify(more));
      }
      const unknown = await jobOf(await report({}, 'of no commit'));
      assert.deepEqual([unknown.kind, unknown.head_sha, unknown.change_url, unknown.number, unknown.dispatch], ['nightly', null, null, null, null]);
      refused(await post({ event_type: 'nightly', delivery_id: 'buildkite-1', workflow: workflowOf(step(), 'in_progress') }), 400, /completed/);
      assert.deepEqual([(await jobs(one)).jobs, (await outpost.api(`pulls/${one.number}`)).verdicts], [[], []]);
    });

    test('run_id groups the jobs of a run of an unknown commit, and a retry changes nothing', async () => {
      const run = `run-${randomUUID()}`;
      const body = (job, tests) => ({ event_type: 'periodic', delivery_id: `jenkins/${randomUUID()}`, workflow: workflowOf(step({ job, run_id: run, tests }), 'completed') });
      const first = body('first', [{ suite: 'unit', name: `of ${run} a`, status: 'PASS' }]);
      const id = recorded(await post(first), 'completed');
      assert.equal(recorded(await post(first), 'completed'), id);
      recorded(await post(body('second', [{ suite: 'unit', name: `of ${run} b`, status: 'FAIL' }])), 'completed');
      const nightly = await outpost.api(`nightly?accelerator=npu-${current}&days=1`);
      const shown = nightly.accelerators[0].runs[0];
      assert.deepEqual([shown.cause, shown.outcome, shown.upstream_sha], ['self_report', 'red', null]);
      const named = nightly.tests.map(({ name }) => name).filter((title) => title.startsWith(`of ${run}`)).map((title) => title.at(-1)).sort();
      assert.deepEqual(named, ['a', 'b'], 'both jobs belong to one run');
      const page = await fetch(`${outpost.url}/nightly`);
      assert.equal(page.status, 200);
    });

    test('failed tests and a triage verdict as CRCR\'s reporters send them', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      const failed = JSON.stringify([{ name: 'test_add', classname: 'test_ops.TestOps', message: '1 != 2 <img src=x>', stacktrace: 'line 1\nline 2', duration: 0.5 }]);
      const triage = { schema_version: 1, category: 'upstream', confidence: 'high', summary: 'The change renamed <b>at::add</b>.', suspected_upstream: { pr: one.number, reason: 'it is in the diff' }, evidence: [{ job: 'test', excerpt: 'no member named add', log_url: 'https://ci.example.org/1' }] };
      const report = bodyOf(dispatch, { ...workflowOf(step({ conclusion: 'failure' }), 'completed'), failed_tests_detail: failed });
      const id = recorded(await post(report), 'completed');
      let job = await outpost.api(`jobs/${id}`);
      assert.deepEqual(job.tests.map(({ suite, name, status, message, trace, duration }) => ({ suite, name, status, message, trace, duration })),
        [{ suite: 'unit', name: 'test_ops.TestOps.test_add', status: 'FAIL', message: '1 != 2 <img src=x>', trace: 'line 1\nline 2', duration: 0.5 }]);
      assert.equal(job.triage, null);
      // If the merge base becomes known meanwhile, the reason changes but not the cause.
      const causesOf = async () => (await verdictsOf(one)).map(({ reason: _, ...verdict }) => verdict);
      const before = await causesOf();
      assert.deepEqual(before.map(({ suite, test: title, status }) => [suite, title, status]), [['unit', 'test_ops.TestOps.test_add', 'FAIL']]);
      // The analysis arrives later with the same report. It is a claim and changes no attribution.
      assert.equal(recorded(await post({ ...report, workflow: { ...report.workflow, triage_verdict: triage } }), 'completed'), id);
      job = await outpost.api(`jobs/${id}`);
      const { schema_version: dropped, ...kept } = triage;
      assert.deepEqual([job.triage, dropped], [kept, 1]);
      assert.deepEqual(await causesOf(), before);
      // A block that breaks a rule is dropped, and the rest of the report counts.
      const other = recorded(await post(bodyOf(dispatch, { ...workflowOf(step({ job: 'other' }), 'completed'), triage_verdict: { ...triage, category: 'nobody' } })), 'completed');
      assert.equal((await outpost.api(`jobs/${other}`)).triage, null);
      refused(await post({ ...report, workflow: { ...report.workflow, failed_tests_detail: '[{"name":"another"}]' } }), 409);
    });

    test('a report of a repository with several accelerators names one', async () => {
      const one = await change();
      const dispatch = await one.dispatchTo('torch-spyre/torch-spyre');
      assert.deepEqual(dispatch.client_payload.outpost.accelerators.toSorted(), ['spyre-a', 'spyre-b']);
      const bearer = await token('torch-spyre/torch-spyre');
      refused(await post(bodyOf(dispatch, workflowOf(step(), 'in_progress')), { bearer }), 400, /accelerator/);
      refused(await post(bodyOf(dispatch, workflowOf(step({ accelerator: 'npu-0' }), 'in_progress')), { bearer }), 400, /accelerator/);
      recorded(await post(bodyOf(dispatch, workflowOf(step({ accelerator: 'spyre-b' }), 'completed')), { bearer }), 'completed');
      assert.equal((await jobs(one, 'spyre-b')).jobs.length, 1);
      assert.equal((await jobs(one, 'spyre-a')).jobs.length, 0);
    });
  });

  describe('400 names the wrong field', () => {
    test('fields', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      const good = bodyOf(dispatch, workflowOf(step({ tests: [{ suite: 's', name: 'n', status: 'PASS' }] }), 'completed'));
      const broken = (change_, pattern) => [structuredClone(good), change_, pattern];
      for (const [body, alter, pattern] of [
        broken((b) => { delete b.delivery_id; }, /delivery_id/), broken((b) => { b.delivery_id = 7; }, /delivery_id/), broken((b) => { delete b.workflow; }, /workflow/),
        broken((b) => { b.workflow = 'ci'; }, /workflow/), broken((b) => { delete b.workflow.status; }, /status/), broken((b) => { b.workflow.status = 'queued'; }, /status/),
        broken((b) => { delete b.workflow.name; }, /name/), broken((b) => { b.workflow.name = {}; }, /name/), broken((b) => { delete b.workflow.run_id; }, /run_id/),
        broken((b) => { b.workflow.run_id = 1.5; }, /run_id/), broken((b) => { b.workflow.tests = {}; }, /tests/), broken((b) => { b.workflow.tests[0] = 7; }, /tests/),
        broken((b) => { b.workflow.tests[0].status = 'GREEN'; }, /tests.*status|status.*tests/), broken((b) => { delete b.workflow.tests[0].name; }, /tests.*name|name.*tests/),
      ]) {
        alter(body);
        refused(await post(body), 400, pattern, String(alter));
      }
      for (const body of ['', '{', '[]', '"x"', '7', 'null', '{"delivery_id":"a","delivery_id":"b"}']) refused(await post(body), 400, /./, body);
      assert.deepEqual((await jobs(one)).jobs, []);
    });

    test('an unknown dispatch, and a dispatch of another repository', async () => {
      const one = await change();
      const dispatch = await one.dispatch();
      const other = await one.dispatchTo('vllm-project/vllm');
      const report = bodyOf(dispatch, workflowOf(step(), 'in_progress'));
      refused(await post({ ...report, delivery_id: randomUUID(), outpost: undefined }), 400, /dispatch/);
      refused(await post({ ...bodyOf(other, workflowOf(step(), 'in_progress')), delivery_id: randomUUID() }), 400, /dispatch/);
      // Outpost ignores the echoed payload. The dispatch says which commit was tested.
      const lie = structuredClone(report);
      lie.payload.number = 1;
      lie.payload.pull_request.head.sha = '0'.repeat(40);
      recorded(await post(lie), 'in_progress');
      assert.equal((await jobs(one)).jobs.length, 1);
    });
  });

  test('409 if the content of an attempt changes; times may change', async () => {
    const one = await change();
    const dispatch = await one.dispatch();
    const run = step({ tests: [{ suite: 's', name: 'n', status: 'PASS' }] });
    const done = bodyOf(dispatch, workflowOf(run, 'completed'));
    recorded(await post(done), 'completed');
    const later = structuredClone(done);
    later.workflow.completed_at = '2030-01-01T00:00:00Z';
    later.workflow.started_at = '2029-12-31T23:00:00Z';
    recorded(await post(later), 'completed');
    for (const alter of [
      (w) => { w.conclusion = 'failure'; }, (w) => { w.tests[0].status = 'FAIL'; }, (w) => { w.tests.push({ suite: 's', name: 'm', status: 'PASS' }); },
      (w) => { w.test_results = { passed: 3, failed: 0, skipped: 0, total: 3 }; }, (w) => { w.artifact_url = 'https://vendor.example/other'; },
    ]) {
      const other = structuredClone(done);
      alter(other.workflow);
      assert.equal((await post(other)).status, 409, String(alter));
    }
    assert.equal((await jobs(one)).jobs[0].conclusion, 'success');
  });

  describe('401: tokens', () => {
    let report;
    before(async () => { report = bodyOf(await (await change()).dispatch(), workflowOf(step(), 'in_progress')); });

    test('no token, and malformed tokens', async () => {
      refused(await post(report, { bearer: null }), 401);
      refused(await post(report, { bearer: null, headers: { authorization: 'Basic YTpi' } }), 401);
      const good = await token();
      const [head, claims, signature] = good.split('.');
      for (const bearer of ['x', '..', 'a.b.c', `${head}.${claims}`, `${head}.${claims}.`, `${good}.x`, `${head}.${claims}.${signature.slice(4)}`, `${head}.${claims}A.${signature}`,
        `${head}.e30.${signature}`, 'e30.e30.e30', `${'e30'.repeat(2000)}.e30.e30`])
        refused(await post(report, { bearer }), 401, /./, bearer.slice(0, 60));
    });

    test('expired and early tokens, a wrong audience, issuer or key, and no signature', async () => {
      for (const [what, bearer] of Object.entries({
        expired: await token(undefined, {}, { expiresIn: -70 }),
        early: await token(undefined, {}, { notBefore: 120 }),
        'another audience': await token(undefined, { aud: 'sts.amazonaws.com' }),
        'no audience': await token(undefined, { aud: null }),
        'another issuer': await token(undefined, { iss: 'https://token.actions.githubusercontent.com' }),
        'no issuer': await token(undefined, { iss: null }),
        'no expiry': await token(undefined, { exp: null }),
        'a stranger\'s key': await token(undefined, {}, { signWith: 'stranger' }),
        'alg none': await token(undefined, {}, { alg: 'none' }),
        'alg HS256 with the public key': await token(undefined, {}, { alg: 'HS256' }),
        'an unknown kid': await token(undefined, {}, { kid: 'nobody' }),
        'the other issuer\'s key': await buildkite.mint({ ...githubClaims(REPOSITORIES[current]), iss: issuer.issuer }),
        'no repository': await issuer.mint({ sub: 'x' }),
      })) {
        const answer = await post(report, { bearer });
        assert.ok(answer.status === 401 || (what === 'no repository' && answer.status === 403), `${what}: ${answer.status} ${answer.text}`);
      }
      recorded(await post(report, { bearer: await token(undefined, {}, { expiresIn: -30 }) }), 'in_progress'); // 60 s of leeway
      recorded(await post(report, { bearer: await token(undefined, { aud: ['other', 'pytorch-cross-repo-ci-relay'] }) }), 'in_progress');
    });

    test('an unknown kid fetches the keys again, but not for every bad token', async () => {
      const start = issuer.fetches;
      await Promise.all(Array.from({ length: 30 }, async () => post(report, { bearer: await token(undefined, {}, { kid: randomUUID() }) })));
      for (let i = 0; i < 20; i++) await post(report, { bearer: await token(undefined, {}, { signWith: 'stranger' }) });
      assert.ok(issuer.fetches - start <= 2, `${issuer.fetches - start} fetches`);
    });
  });

  test('a rotated key is accepted once it is published', async () => {
    const report = bodyOf(await (await change()).dispatch(), workflowOf(step(), 'in_progress'));
    recorded(await post(report), 'in_progress');
    await issuer.rotate();
    clock.advance(KEYS_MS);
    await until(async () => (await post(report)).status === 200, { what: 'the new key is known' });
  });

  test('a Buildkite token is mapped by immutable ids and must have the required claims', async () => {
    const report = bodyOf(await (await change()).dispatchTo('vllm-project/vllm'), workflowOf(step(), 'in_progress'));
    recorded(await post(report, { bearer: await buildkite.mint(buildkiteClaims(BUILDKITE)) }), 'in_progress');
    for (const claims of [{ ...BUILDKITE, branch: 'a-fork' }, { ...BUILDKITE, pipelineId: randomUUID() }, { ...BUILDKITE, repository: REPOSITORIES[current], organizationId: randomUUID() }]) {
      const answer = await post(report, { bearer: await buildkite.mint(buildkiteClaims(claims)) });
      assert.ok([401, 403].includes(answer.status) || answer.json?.status === 'ignored', `${JSON.stringify(claims)}: ${answer.status} ${answer.text}`);
    }
  });

  test('403 for a workflow that the accelerator is not bound to', async () => {
    const report = bodyOf(await (await change()).dispatchTo('bound/bound'), workflowOf(step(), 'in_progress'));
    refused(await post(report, { bearer: await token('bound/bound', { workflow: '.github/workflows/y.yml' }) }), 403);
    refused(await post(report, { bearer: await token('bound/bound', { job_workflow_ref: 'evil/fork/.github/workflows/x.yml@refs/heads/main' }) }), 403);
    recorded(await post(report, { bearer: await token('bound/bound', { workflow: '.github/workflows/x.yml' }) }), 'in_progress');
  });

  test('413 for a report over 2 MiB', async () => {
    const report = bodyOf(await (await change()).dispatch(), workflowOf(step(), 'in_progress'));
    report.padding = '';
    report.padding = 'x'.repeat(MAX_BODY + 1 - Buffer.byteLength(JSON.stringify(report)));
    assert.equal((await post(report)).status, 413);
    report.padding = report.padding.slice(1);
    assert.equal((await post(report)).status, 200);
  });

  test('429 for more than 100 reports a minute, only for that repository', async () => {
    const one = await change();
    const report = bodyOf(await one.dispatchTo('flood/flood'), workflowOf(step(), 'in_progress'));
    const bearer = await token('flood/flood', {}, { expiresIn: 3600 });
    clock.advance(MINUTE_MS);
    await until(async () => (await outpost.get('/healthz')).status === 200, { what: 'a connection after the jump of the clock' });
    // On a busy machine the minute may end meanwhile, and the next one has its own limit.
    let admitted = 0;
    let answer;
    while ((answer = await post(report, { bearer })).status === 200) assert.ok(++admitted <= 2 * LIMIT, 'too many are admitted');
    assert.equal(answer.status, 429, answer.text);
    assert.ok(admitted >= LIMIT, `only ${admitted} are admitted`);
    assert.match(answer.headers['retry-after'] ?? '', /^\d+$/);
    recorded(await post(bodyOf(await one.dispatchTo('vllm-project/vllm'), workflowOf(step(), 'in_progress')), { bearer: await token('vllm-project/vllm') }), 'in_progress');
  });

  test('405 for other methods', async () => {
    for (const method of ['GET', 'PUT']) assert.equal((await outpost.request(method, '/github/callback')).status, 405, method);
  });

  describe('POST /api/v1/dispatches/{id}/jobs', () => {
    let mine;
    let other;
    const received = async ({ number }) => until(() => vendor.events.find(({ body }) => body?.payload.number === number)?.body, { timeout: 10_000 });
    const pathOf = (body) => new URL(body.outpost.callback_url).pathname;

    before(async () => {
      const [a, b] = [await change(), await change()];
      [mine, other] = [{ ...await received(a), number: a.number }, await received(b)];
    });

    test('accepts the bare workflow with the dispatch\'s own token', async () => {
      const bearer = mine.outpost.callback_token;
      const run = step({ workflow: 'jenkins', job: 'suite', tests: [{ suite: 'unit', name: 'add', status: 'FAIL', message: 'no' }], conclusion: 'failure' });
      const job = recorded(await post(workflowOf(run, 'in_progress'), { bearer, path: pathOf(mine) }), 'in_progress');
      assert.equal(recorded(await post(workflowOf(run, 'completed'), { bearer, path: pathOf(mine) }), 'completed'), job);
      const view = await jobs(mine, 'lab');
      assert.deepEqual(view.jobs.map(({ workflow, name, conclusion }) => [workflow, name, conclusion]), [['jenkins', 'suite', 'failure']]);
    });

    test('refuses every other token', async () => {
      const workflow = workflowOf(step(), 'in_progress');
      refused(await post(workflow, { bearer: null, path: pathOf(mine) }), 401);
      const good = mine.outpost.callback_token;
      const flipped = `${good.slice(0, -2)}${good.at(-2) === 'A' ? 'B' : 'A'}${good.at(-1)}`;
      for (const bearer of ['x', flipped, `${good}x`, good.slice(0, -1)]) refused(await post(workflow, { bearer, path: pathOf(mine) }), 401);
      const crossed = await post(workflow, { bearer: other.outpost.callback_token, path: pathOf(mine) });
      assert.ok([401, 403].includes(crossed.status), `${crossed.status}`);
      const nowhere = await post(workflow, { bearer: good, path: `/api/v1/dispatches/${'a'.repeat(26)}/jobs` });
      assert.ok([400, 401, 403, 404].includes(nowhere.status), `${nowhere.status}`);
    });

    test('400 and 409 as for the callback', async () => {
      const options = { bearer: mine.outpost.callback_token, path: pathOf(mine) };
      refused(await post({}, options), 400, /status|name|run_id/);
      refused(await post('{', options), 400);
      const run = step({ job: 'once' });
      recorded(await post(workflowOf(run, 'completed'), options), 'completed');
      assert.equal((await post(workflowOf({ ...run, conclusion: 'failure' }, 'completed'), options)).status, 409);
    });

    test('the dispatch\'s token survives a restart', async () => {
      await outpost.restart({ hard: true });
      recorded(await post(workflowOf(step({ job: 'after' }), 'completed'), { bearer: mine.outpost.callback_token, path: pathOf(mine) }), 'completed');
    });
  });

  test('the log contains no token', () => {
    assert.doesNotMatch(outpost.log.map(({ line }) => line).join('\n'), /eyJ[A-Za-z0-9_-]{20}/);
    for (const { body } of vendor.events) assert.ok(!outpost.log.some(({ line }) => line.includes(body.outpost.callback_token)));
  });
});
