// Tests the rig: GitHub's own client library, Octokit, uses it without a violation, it refuses the requests that GitHub refuses,
// and each fault works.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/core';
import { verify } from '@octokit/webhooks-methods';
import { SignJWT, createRemoteJWKSet, jwtVerify } from 'jose';
import { AUDIENCE, githubClaims, startIssuer } from './oidc.mjs';
import { examples, fakeSha, issueComment, ping, pullRequest, pullRequestOf, push } from './payloads.mjs';
import { startRig } from './rig.mjs';
import { startDispatchVendor, startSilentVendor, startWebhookVendor } from './vendors.mjs';

const UPSTREAM = { owner: 'pytorch', repo: 'pytorch' };
const VENDOR = { owner: 'Ascend', repo: 'pytorch' };
const DISPATCH = 'POST /repos/{owner}/{repo}/dispatches';
const COMMENTS = '/repos/{owner}/{repo}/issues/{issue_number}/comments';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

// A receiver that records its requests and answers with a chosen status.
async function startReceiver(status = 202) {
  const got = [];
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    got.push({ path: request.url, headers: request.headers, body });
    response.writeHead(receiver.status).end('{}');
  });
  const receiver = { got, status, close: () => new Promise((resolve) => server.close(resolve).closeAllConnections()) };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  receiver.url = `http://127.0.0.1:${server.address().port}/hook`;
  return receiver;
}

describe('the rig', () => {
  let rig;
  let app;
  let next = 100;

  const octokit = (auth) => {
    const client = new Octokit({ baseUrl: rig.url, log: quiet, authStrategy: createAppAuth, auth: { appId: rig.app.id, privateKey: rig.app.privateKey, ...auth } });
    client.hook.before('request', (options) => { options.headers['x-github-api-version'] = '2022-11-28'; });
    return client;
  };
  const installation = async (target, more = {}) => {
    const { data } = await app.request('GET /repos/{owner}/{repo}/installation', target);
    const { token } = await app.auth({ type: 'installation', installationId: data.id, refresh: true, ...more });
    const client = new Octokit({ baseUrl: rig.url, log: quiet, auth: token });
    client.hook.before('request', (options) => { options.headers['x-github-api-version'] = '2022-11-28'; });
    return client;
  };
  const status = (expected) => (error) => error.status === expected;
  const expectViolations = (pattern) => {
    const found = rig.violations().splice(0);
    assert.match(JSON.stringify(found), pattern);
  };

  before(async () => {
    rig = await startRig({ repositories: [
      { name: 'pytorch/pytorch' }, { name: 'Ascend/pytorch' }, { name: 'Ascend/secret', private: true, installed: false }, { name: 'nobody/here', installed: false },
    ] });
    app = octokit({});
  });
  after(() => rig.close());
  beforeEach(() => rig.clearFaults());

  describe('an App client', () => {
    test('gets a token by JWT and dispatches', async () => {
      const client = await installation(VENDOR, { repositoryNames: ['pytorch'], permissions: { contents: 'write' } });
      const { status: code } = await client.request(DISPATCH, { ...VENDOR, event_type: 'pull_request', client_payload: { event_type: 'pull_request', payload: { number: 1 } } });
      assert.equal(code, 204);
      const [dispatch] = rig.dispatches({ repository: 'Ascend/pytorch' });
      assert.equal(dispatch.client_payload.payload.number, 1);
      const [record] = rig.requests({ method: 'POST', path: '/repos/{owner}/{repo}/dispatches' });
      assert.match(record.token, /^[0-9a-f]{12}$/);
      assert.ok(!('authorization' in record.headers), 'the token itself is not recorded');
      assert.deepEqual(rig.violations(), []);
    });

    test('writes, lists and edits a comment as the App\'s bot', async () => {
      const number = next++;
      rig.openPull('pytorch/pytorch', { number });
      rig.world.comment('pytorch/pytorch', number, { body: 'a person was here' });
      const client = await installation(UPSTREAM);
      const made = await client.request(`POST ${COMMENTS}`, { ...UPSTREAM, issue_number: number, body: 'first' });
      assert.equal(made.data.user.login, rig.bot);
      await client.request('PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}', { ...UPSTREAM, comment_id: made.data.id, body: 'second' });
      const listed = await client.request(`GET ${COMMENTS}`, { ...UPSTREAM, issue_number: number, per_page: 100 });
      assert.deepEqual(listed.data.map((one) => [one.user.login, one.body]), [['octocat', 'a person was here'], [rig.bot, 'second']]);
      assert.deepEqual(rig.violations(), []);
    });

    test('reads pulls, files, branches, commits and a comparison that agree with each other', async () => {
      const client = await installation(UPSTREAM);
      const base = rig.push('pytorch/pytorch', { files: ['setup.py'] });
      const pull = rig.openPull('pytorch/pytorch', { number: 4711, headSha: fakeSha('head'), association: 'FIRST_TIME_CONTRIBUTOR', labels: ['ciflow/crcr/npu'],
        draft: true, files: ['aten/src/ATen/native/Add.cpp', 'test/test_ops.py'] });
      const one = await client.request('GET /repos/{owner}/{repo}/pulls/{pull_number}', { ...UPSTREAM, pull_number: 4711 });
      assert.deepEqual([one.data.head.sha, one.data.base.sha, one.data.author_association, one.data.draft, one.data.labels[0].name],
        [pull.headSha, base, 'FIRST_TIME_CONTRIBUTOR', true, 'ciflow/crcr/npu']);
      const list = await client.request('GET /repos/{owner}/{repo}/pulls', { ...UPSTREAM, state: 'open', per_page: 100 });
      assert.ok(list.data.some((entry) => entry.number === 4711 && entry.head.sha === pull.headSha));
      const files = await client.request('GET /repos/{owner}/{repo}/pulls/{pull_number}/files', { ...UPSTREAM, pull_number: 4711, per_page: 1 });
      assert.equal(files.data[0].filename, 'aten/src/ATen/native/Add.cpp');
      assert.match(files.headers.link, /page=2>; rel="next"/);
      const comparison = await client.request('GET /repos/{owner}/{repo}/compare/{basehead}', { ...UPSTREAM, basehead: `${base}...${pull.headSha}` });
      assert.equal(comparison.data.merge_base_commit.sha, base);
      assert.deepEqual(comparison.data.files.map(({ filename }) => filename), ['aten/src/ATen/native/Add.cpp', 'test/test_ops.py']);
      const branch = await client.request('GET /repos/{owner}/{repo}/branches/{branch}', { ...UPSTREAM, branch: 'main' });
      assert.equal(branch.data.commit.sha, base);
      const moved = rig.updatePull('pytorch/pytorch', 4711, { headSha: fakeSha('new head') });
      const again = await client.request('GET /repos/{owner}/{repo}/pulls/{pull_number}', { ...UPSTREAM, pull_number: 4711 });
      assert.equal(again.data.head.sha, moved.headSha);
      rig.updatePull('pytorch/pytorch', 4711, { state: 'closed' });
      const open = await client.request('GET /repos/{owner}/{repo}/pulls', { ...UPSTREAM, state: 'open', per_page: 100 });
      assert.ok(!open.data.some((entry) => entry.number === 4711));
      assert.deepEqual(rig.violations(), []);
    });

    test('makes check runs and reactions', async () => {
      const client = await installation(UPSTREAM);
      const sha = fakeSha('checked');
      const run = await client.request('POST /repos/{owner}/{repo}/check-runs', { ...UPSTREAM, name: 'crcr/a/b/ci/test', head_sha: sha, status: 'in_progress', external_id: '1:2' });
      await client.request('PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}', { ...UPSTREAM, check_run_id: run.data.id, status: 'completed', conclusion: 'success' });
      assert.deepEqual(rig.checkRuns('pytorch/pytorch', sha).map(({ conclusion, externalId }) => [conclusion, externalId]), [['success', '1:2']]);
      await client.request('POST /repos/{owner}/{repo}/issues/comments/{comment_id}/reactions', { ...UPSTREAM, comment_id: 9, content: '+1' });
      assert.equal(rig.reactions('pytorch/pytorch', 9)[0].user.login, rig.bot);
      await client.request('POST /repos/{owner}/{repo}/statuses/{sha}', { ...UPSTREAM, sha, state: 'success' });
      assert.deepEqual(rig.violations(), []);
    });

    test('gets its budget with each answer, and a 304 costs nothing', async () => {
      const client = await installation(UPSTREAM);
      const target = { ...UPSTREAM, branch: 'main' };
      const first = await client.request('GET /repos/{owner}/{repo}/branches/{branch}', target);
      assert.ok(Number(first.headers['x-ratelimit-remaining']) > 1000);
      await assert.rejects(client.request('GET /repos/{owner}/{repo}/branches/{branch}', { ...target, headers: { 'if-none-match': first.headers.etag } }), (error) => {
        assert.equal(error.status, 304);
        assert.equal(error.response.headers['x-ratelimit-used'], first.headers['x-ratelimit-used']);
        return true;
      });
      rig.push('pytorch/pytorch');
      const third = await client.request('GET /repos/{owner}/{repo}/branches/{branch}', { ...target, headers: { 'if-none-match': first.headers.etag } });
      assert.equal(third.status, 200);
    });
  });

  describe('refuses', () => {
    test('a body that breaks the description', async () => {
      const client = await installation(VENDOR);
      await assert.rejects(client.request(DISPATCH, { ...VENDOR, client_payload: {} }), status(422));
      expectViolations(/event_type/);
      await assert.rejects(client.request(DISPATCH, { ...VENDOR, event_type: 'x'.repeat(101) }), status(422));
      expectViolations(/event_type/);
      await assert.rejects(client.request(`POST ${COMMENTS}`, { ...UPSTREAM, issue_number: 1, body: 7 }), status(403));
      assert.deepEqual(rig.violations(), []);
    });

    test('a dispatch that is too large or has too many keys', async () => {
      const client = await installation(VENDOR);
      await assert.rejects(client.request(DISPATCH, { ...VENDOR, event_type: 'push', client_payload: { text: 'x'.repeat(70_000) } }), status(422));
      expectViolations(/too large/);
      const wide = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`key${i}`, i]));
      await assert.rejects(client.request(DISPATCH, { ...VENDOR, event_type: 'push', client_payload: wide }), status(422));
      expectViolations(/client_payload/);
    });

    test('a comment over 65,536 characters', async () => {
      rig.openPull('pytorch/pytorch', { number: 600 });
      const client = await installation(UPSTREAM);
      await client.request(`POST ${COMMENTS}`, { ...UPSTREAM, issue_number: 600, body: 'é'.repeat(65_536) });
      await assert.rejects(client.request(`POST ${COMMENTS}`, { ...UPSTREAM, issue_number: 600, body: 'é'.repeat(65_537) }), status(422));
      expectViolations(/65537 characters/);
    });

    test('calls without a User-Agent or an API version, and unknown calls', async () => {
      const client = await installation(UPSTREAM);
      const { token } = await client.auth();
      const ask = (path, headers) => new Promise((resolve) => {
        http.get(rig.url + path, { headers: { authorization: `Bearer ${token}`, ...headers } }, (answer) => resolve(answer.resume().statusCode));
      });
      assert.equal(await ask('/repos/pytorch/pytorch', { 'x-github-api-version': '2022-11-28' }), 403);
      expectViolations(/User-Agent/);
      assert.equal(await ask('/repos/pytorch/pytorch', { 'user-agent': 'outpost' }), 422);
      expectViolations(/x-github-api-version/i);
      assert.equal(await ask('/user/repos', { 'user-agent': 'outpost', 'x-github-api-version': '2022-11-28' }), 404);
      expectViolations(/NO_PATH_MATCHED/);
    });

    test('wrong, late and far-dated JWTs', async () => {
      const key = createPrivateKey(rig.app.privateKey);
      const ask = async (claims, header = { alg: 'RS256' }, signer = key) => {
        const jwt = await new SignJWT(claims).setProtectedHeader(header).sign(signer);
        return (await fetch(`${rig.url}/app`, { headers: { authorization: `Bearer ${jwt}`, 'x-github-api-version': '2022-11-28' } })).status;
      };
      const now = Math.floor(Date.now() / 1000);
      assert.equal(await ask({ iss: String(rig.app.id), iat: now - 60, exp: now + 540 }), 200);
      assert.equal(await ask({ iss: rig.app.id, iat: now - 60, exp: now + 540 }), 200);
      assert.equal(await ask({ iss: '999', iat: now - 60, exp: now + 540 }), 401);
      assert.equal(await ask({ iss: String(rig.app.id), iat: now - 600, exp: now - 1 }), 401);
      assert.equal(await ask({ iss: String(rig.app.id), iat: now, exp: now + 900 }), 401);
      assert.equal(await ask({ iss: String(rig.app.id), iat: now, exp: now + 540 }, { alg: 'HS256' }, Buffer.from('secret')), 401);
    });

    test('tokens outside their repositories and permissions, unknown and expired tokens', async () => {
      const narrow = await installation(VENDOR, { repositoryNames: ['pytorch'], permissions: { metadata: 'read' } });
      await assert.rejects(narrow.request(DISPATCH, { ...VENDOR, event_type: 'push' }), status(403));
      await assert.rejects(narrow.request(DISPATCH, { ...UPSTREAM, event_type: 'push' }), status(403));
      await assert.rejects(narrow.request('GET /repos/{owner}/{repo}', { owner: 'Ascend', repo: 'secret' }), status(404));
      await assert.rejects(app.request('GET /repos/{owner}/{repo}/installation', { owner: 'nobody', repo: 'here' }), status(404));
      const { data } = await app.request('GET /repos/{owner}/{repo}/installation', VENDOR);
      const ask = { installation_id: data.id, headers: { 'content-type': 'application/json' } };
      await assert.rejects(app.request('POST /app/installations/{installation_id}/access_tokens', { ...ask, permissions: { administration: 'write' } }), status(422));
      await assert.rejects(app.request('POST /app/installations/{installation_id}/access_tokens', { ...ask, repositories: ['elsewhere'] }), status(422));
      const stranger = new Octokit({ baseUrl: rig.url, log: quiet, auth: 'ghs_unknown' });
      await assert.rejects(stranger.request('GET /rate_limit'), status(401));
      const client = await installation(VENDOR);
      rig.expireTokens();
      await assert.rejects(client.request(DISPATCH, { ...VENDOR, event_type: 'push' }), status(401));
      assert.deepEqual(rig.violations(), []);
    });

    test('tokens after a chosen lifetime', async () => {
      rig.gate.tokenTtl = 0;
      try {
        const client = await installation(VENDOR);
        await assert.rejects(client.request(DISPATCH, { ...VENDOR, event_type: 'push' }), status(401));
      } finally {
        rig.gate.tokenTtl = 3_600_000;
      }
    });
  });

  describe('faults', () => {
    const path = '/repos/{owner}/{repo}/dispatches';
    const dispatch = (client, more = {}) => client.request(DISPATCH, { ...VENDOR, event_type: 'push', client_payload: {}, ...more });
    let client;
    before(async () => { client = await installation(VENDOR); });

    test('server errors strike as often as requested, after the requested number of requests', async () => {
      rig.fault({ kind: 'status', status: 502, method: 'POST', path, skip: 1, count: 2 });
      await dispatch(client);
      await assert.rejects(dispatch(client), status(502));
      await assert.rejects(dispatch(client), status(502));
      await dispatch(client);
    });

    test('a secondary limit with and without Retry-After leaves the primary budget alone', async () => {
      rig.fault({ kind: 'secondary', path, retryAfter: 3 });
      await assert.rejects(dispatch(client), (error) => error.status === 403 && error.response.headers['retry-after'] === '3'
        && /secondary rate limit/.test(error.message) && Number(error.response.headers['x-ratelimit-remaining']) > 1000);
      rig.fault({ kind: 'secondary', path });
      await assert.rejects(dispatch(client), (error) => error.status === 403 && error.response.headers['retry-after'] === undefined);
    });

    test('a primary limit gives the time of its end', async () => {
      rig.fault({ kind: 'primary', path, resetIn: 7 });
      await assert.rejects(dispatch(client), (error) => error.status === 403 && error.response.headers['x-ratelimit-remaining'] === '0'
        && Number(error.response.headers['x-ratelimit-reset']) - Date.now() / 1000 < 8);
    });

    test('expired, unprocessable and notFound give their statuses', async () => {
      for (const [kind, code] of [['expired', 401], ['unprocessable', 422], ['notFound', 404]]) {
        rig.fault({ kind, path });
        await assert.rejects(dispatch(client), status(code));
      }
    });

    test('a reset strikes before or after the effect', async () => {
      const count = () => rig.dispatches({ repository: 'Ascend/pytorch' }).length;
      const start = count();
      rig.fault({ kind: 'reset', path });
      await assert.rejects(dispatch(client));
      assert.equal(count(), start);
      rig.fault({ kind: 'reset', path, when: 'after' });
      await assert.rejects(dispatch(client));
      assert.equal(count(), start + 1);
    });

    test('an answer can hang, be slow or be truncated', async () => {
      const hang = rig.fault({ kind: 'hang', path });
      const patience = new AbortController();
      const answer = dispatch(client, { request: { signal: patience.signal } }).then(() => 'an answer', ({ name }) => name);
      let early;
      answer.then((value) => { early = value; });
      // The rig answers another request meanwhile, but not this one.
      do await client.request('GET /repos/{owner}/{repo}', VENDOR); while (hang.struck === 0 && !early);
      assert.equal(early, undefined);
      patience.abort();
      assert.equal(await answer, 'AbortError');
      rig.fault({ kind: 'slow', path, ms: 120 });
      const started = performance.now();
      await dispatch(client);
      assert.ok(performance.now() - started >= 115);
      rig.fault({ kind: 'truncate', path: '/repos/{owner}/{repo}' });
      const { token } = await client.auth();
      const cut = await fetch(`${rig.url}/repos/Ascend/pytorch`, { headers: { authorization: `Bearer ${token}`, 'x-github-api-version': '2022-11-28' } });
      assert.equal(cut.status, 200);
      await assert.rejects(cut.json());
    });

    test('a random fault strikes the same requests with the same seed', async () => {
      const run = async () => {
        const fault = rig.fault({ kind: 'status', status: 500, path, probability: 0.5, seed: 42 });
        const seen = [];
        for (let i = 0; i < 12; i++) seen.push(await dispatch(client).then(() => '.', () => 'x'));
        fault.remove();
        return seen.join('');
      };
      const first = await run();
      assert.match(first, /x/);
      assert.match(first, /\./);
      assert.equal(await run(), first);
    });
  });

  describe('webhooks', () => {
    let receiver;
    before(async () => {
      receiver = await startReceiver();
      rig.setTarget(receiver.url);
    });
    after(() => receiver.close());

    test('have a signature that Octokit verifies, and GitHub\'s headers', async () => {
      const number = next++;
      const pull = rig.openPull('pytorch/pytorch', { number });
      const sent = await rig.deliver('pull_request', pullRequestOf('opened', pull), { guid: '0b989ba4-242f-11e5-81e1-c7b6966d2516' });
      const { headers, body } = receiver.got.at(-1);
      assert.equal(sent.status_code, 202);
      assert.equal(headers['x-github-delivery'], '0b989ba4-242f-11e5-81e1-c7b6966d2516');
      assert.equal(headers['x-github-event'], 'pull_request');
      assert.ok(await verify(rig.secret, body, headers['x-hub-signature-256']));
      assert.equal(JSON.parse(body).pull_request.head.sha, pull.headSha);
      assert.ok(JSON.parse(body).installation.id > 0);
    });

    test('are listed newest first, paged by cursor, filtered and redelivered', async () => {
      receiver.status = 500;
      const failed = await rig.deliver('push', push({}));
      receiver.status = 202;
      const lost = await rig.deliver('push', push({}), { lost: true });
      for (let i = 0; i < 3; i++) await rig.deliver('push', push({}));
      const first = await app.request('GET /app/hook/deliveries', { per_page: 2 });
      assert.equal(first.data.length, 2);
      assert.ok(first.data[0].id > first.data[1].id);
      const [, url] = /<([^>]+)>; rel="next"/.exec(first.headers.link);
      const second = await app.request(`GET ${url.slice(rig.url.length)}`);
      assert.ok(second.data[0].id < first.data[1].id);
      const failures = await app.request('GET /app/hook/deliveries', { status: 'failure' });
      assert.deepEqual(failures.data.slice(0, 2).map(({ guid }) => guid), [lost.guid, failed.guid]);
      const before = receiver.got.length;
      await app.request('POST /app/hook/deliveries/{delivery_id}/attempts', { delivery_id: lost.id });
      await rig.deliveries.settle();
      assert.equal(receiver.got.length, before + 1);
      assert.equal(receiver.got.at(-1).headers['x-github-delivery'], lost.guid);
      const newest = await app.request('GET /app/hook/deliveries', { per_page: 1 });
      assert.deepEqual([newest.data[0].guid, newest.data[0].redelivery, newest.data[0].status_code], [lost.guid, true, 202]);
      const whole = await app.request('GET /app/hook/deliveries/{delivery_id}', { delivery_id: newest.data[0].id });
      assert.equal(whole.data.request.payload.ref, 'refs/heads/main');
      assert.deepEqual(rig.violations(), []);
    });
  });

  describe('payloads', () => {
    test('Octokit\'s examples are renamed', () => {
      const all = examples();
      assert.equal(all.length, 329);
      assert.ok(all.filter(({ payload }) => payload.repository?.full_name === 'pytorch/pytorch').length > 250);
    });

    test('events are built with chosen values', () => {
      const headSha = fakeSha('x');
      const opened = pullRequest('opened', { number: 7, headSha, association: 'MEMBER', draft: true, labels: ['a'] });
      assert.deepEqual([opened.number, opened.pull_request.number, opened.pull_request.head.sha, opened.pull_request.labels[0].name], [7, 7, headSha, 'a']);
      assert.ok(JSON.stringify(opened).length > 20_000);
      assert.equal(pullRequest('edited', { number: 7 }).changes.base.ref.from, 'release/2.9');
      assert.equal(pullRequest('synchronize', { headSha }).after, headSha);
      assert.equal(push({ branch: 'viable/strict', after: headSha }).head_commit.id, headSha);
      assert.equal(issueComment('created', { number: 7, body: 'hi', association: 'NONE' }).comment.author_association, 'NONE');
      assert.ok(ping().zen);
    });
  });

  describe('vendors', () => {
    let issuer;
    let callbacks;
    before(async () => {
      issuer = await startIssuer();
      callbacks = await startReceiver(200);
    });
    after(() => Promise.all([issuer.close(), callbacks.close()]));

    test('the issuer\'s tokens verify, even after a rotation, and broken ones do not', async () => {
      const keys = createRemoteJWKSet(new URL(issuer.jwksUrl), { cooldownDuration: 0 });
      const options = { issuer: issuer.issuer, audience: AUDIENCE, algorithms: ['RS256'] };
      const check = async (...args) => jwtVerify(await issuer.mint(...args), keys, options);
      assert.equal((await check(githubClaims('Ascend/pytorch'))).payload.repository, 'Ascend/pytorch');
      await issuer.rotate();
      await check(githubClaims('Ascend/pytorch'));
      assert.equal(issuer.fetches, 2);
      await assert.rejects(check({}, { expiresIn: -10 }), { code: 'ERR_JWT_EXPIRED' });
      await assert.rejects(check({ aud: 'other' }), { code: 'ERR_JWT_CLAIM_VALIDATION_FAILED' });
      await assert.rejects(check({}, { signWith: 'stranger' }), { code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' });
      await assert.rejects(check({}, { alg: 'none' }));
      await assert.rejects(check({}, { alg: 'HS256' }));
      issuer.break({ status: 503 });
      await assert.rejects(check({}, { kid: 'unknown' }), { code: 'ERR_JOSE_GENERIC' });
      issuer.heal();
    });

    test('a vendor with repository_dispatch reports twice per job with a token of its repository', async () => {
      const vendor = startDispatchVendor({ rigUrl: rig.url, repository: 'Ascend/pytorch', tokenUrl: issuer.tokenUrl, callbackUrl: callbacks.url, after: rig.requests().at(-1).seq });
      const client = await installation(VENDOR);
      const reported = new Promise((resolve) => vendor.on('report', ({ status: state }) => state === 'completed' && resolve()));
      await client.request(DISPATCH, { ...VENDOR, event_type: 'pull_request', client_payload: { event_type: 'pull_request', delivery_id: 'd', payload: { action: 'opened' }, outpost: { dispatch_id: 'i' } } });
      await reported;
      await vendor.stop();
      const bodies = callbacks.got.map(({ body }) => JSON.parse(body));
      assert.deepEqual(bodies.map(({ workflow }) => workflow.status), ['in_progress', 'completed']);
      assert.equal(bodies[1].outpost.dispatch_id, 'i');
      const { payload } = await jwtVerify(callbacks.got[0].headers.authorization.slice(7), createRemoteJWKSet(new URL(issuer.jwksUrl)));
      assert.equal(payload.repository, 'Ascend/pytorch');
    });

    test('a webhook vendor accepts only signed events, and a silent one never reports', async () => {
      const { sign } = await import('@octokit/webhooks-methods');
      callbacks.got.length = 0;
      const [vendor, silent] = await Promise.all([startWebhookVendor({ secret: 's3cret' }), startSilentVendor({ secret: 's3cret' })]);
      const body = JSON.stringify({ event_type: 'pull_request', outpost: { callback_url: callbacks.url, callback_token: 'tok' } });
      const send = async (url, signature) => (await fetch(url, { method: 'POST', body, headers: { 'x-outpost-event': 'pull_request', 'x-hub-signature-256': signature } })).status;
      assert.equal(await send(vendor.url, `sha256=${'0'.repeat(64)}`), 401);
      assert.equal(await send(vendor.url, await sign('s3cret', body)), 202);
      assert.equal(await send(silent.url, await sign('s3cret', body)), 202);
      await Promise.all([vendor.stop(), silent.stop()]);
      assert.deepEqual(callbacks.got.map((one) => [one.headers.authorization, JSON.parse(one.body).status]), [['Bearer tok', 'in_progress'], ['Bearer tok', 'completed']]);
      assert.deepEqual(vendor.events.map(({ valid }) => valid), [false, true]);
    });
  });

  test('the answers of emulate are compared with the description on request', async () => {
    for (const gaps of [false, true]) {
      const own = await startRig({ gaps });
      try {
        const client = new Octokit({ baseUrl: own.url, log: quiet, authStrategy: createAppAuth, auth: { appId: own.app.id, privateKey: own.app.privateKey } });
        client.hook.before('request', (options) => { options.headers['x-github-api-version'] = '2022-11-28'; });
        await client.request('GET /app/installations');
        assert.equal(own.emulatorGaps().length > 0, gaps, JSON.stringify(own.emulatorGaps()));
      } finally {
        await own.close();
      }
    }
  });

  test('the rig as a program prints one JSON line, is controlled over HTTP and ends with its standard input', async () => {
    const child = spawn(process.execPath, [new URL('./rig.mjs', import.meta.url).pathname], { stdio: ['pipe', 'pipe', 'inherit'] });
    const [line] = await once(child.stdout, 'data');
    const info = JSON.parse(line);
    const pull = await (await fetch(`${info.control}pulls`, { method: 'POST', body: JSON.stringify({ repository: 'pytorch/pytorch', number: 5 }) })).json();
    assert.equal(pull.number, 5);
    const fault = await fetch(`${info.control}faults`, { method: 'POST', body: JSON.stringify({ kind: 'nonsense' }) });
    assert.equal(fault.status, 400);
    assert.deepEqual(await (await fetch(`${info.control}violations`)).json(), []);
    child.stdin.end();
    const [code] = await once(child, 'exit');
    assert.equal(code, 0);
  });
});
