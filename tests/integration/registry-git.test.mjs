// accelerators.git: the vendors' files from a git repository over HTTPS.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { GitServer } from './lib/git-server.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const REGISTRY = 'pytorch-fdn/accelerator-registry';
const VENDOR = 'Ascend/pytorch';
const file = (name) => `name: ${name}\ntitle: ${name.toUpperCase()}\nlevel: L2\nrunners:\n  - {name: ci, github: {repository: ${VENDOR}}}\n`;

describe('the registry from git', { skip: notBuilt }, () => {
  let rig;
  let git;
  let outpost;

  before(async () => {
    rig = await startRig();
  });
  after(() => rig?.close());
  afterEach(async () => {
    await outpost?.close();
    await git?.close();
    outpost = git = undefined;
  });

  const options = (interval) => ({
    rig, env: { CURL_CA_BUNDLE: '', SSL_CERT_FILE: git.certificate },
    config: { accelerators: { directory: null, git: { url: git.url, interval } } },
  });
  const start = async ({ interval = '1d', ...more } = {}) => {
    git = await GitServer.start({ repository: REGISTRY });
    git.commit({ 'npu.yml': file('npu') });
    outpost = await Outpost.start({ ...options(interval), ...more });
  };
  const names = async () => (await outpost.api('accelerators')).accelerators.map(({ name }) => name).sort();
  const registry = async () => (await outpost.api('status')).registry;
  const inForce = (sha) => until(async () => (await registry()).commit === sha, { timeout: 10_000, what: `${sha} is in force` });
  const isRefused = (sha) => until(async () => (await registry()).refused === sha, { timeout: 10_000, what: `${sha} is refused` });
  const pushed = (branch = 'main', name = REGISTRY) => rig.deliver('push', push({ repository: name, branch, after: git.tip }));

  test('a push webhook of the registry loads its new commit at once', async () => {
    await start();
    assert.deepEqual(await names(), ['npu']);
    assert.equal((await registry()).commit, git.tip);
    const next = git.commit({ 'gpu.yml': file('gpu'), 'npu.yml': file('npu') });
    const answer = await pushed();
    assert.equal(answer.status_code, 200);
    assert.match(answer.response.body, /"status":"ignored","reason":"[^"]*registry/);
    await inForce(next);
    assert.deepEqual(await names(), ['gpu', 'npu']);
    const { length } = git.requests;
    assert.equal((await pushed('topic')).status_code, 200);
    assert.equal((await pushed('main', 'somebody/else')).status_code, 200);
    assert.equal(git.requests.length, length, 'pushes to other branches and repositories start no fetch');
    assert.equal((await pushed('main', REGISTRY.toUpperCase())).status_code, 200);
    await until(() => git.requests.length > length, { what: 'the repository name matches without case' });
  });

  test('each interval loads a new commit, and its accelerators get dispatches', async () => {
    await start({ interval: '1s' });
    const next = git.commit({ 'gpu.yml': file('gpu') });
    await inForce(next);
    assert.deepEqual(await names(), ['gpu']);
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull('pytorch/pytorch', { number: 31, association: 'MEMBER' })));
    await rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: { payload } }) => payload.number === 31 });
  });

  test('an invalid commit is refused completely with file and line, and the old one stays in force', async () => {
    await start();
    const good = git.tip;
    const bad = git.commit({ 'gpu.yml': file('gpu'), 'npu.yml': `${file('npu')}level: L9\n` });
    await pushed();
    await isRefused(bad);
    const where = `accelerators.git@${bad.slice(0, 7)}:accelerators.d/npu.yml:`;
    const shown = await registry();
    assert.equal(shown.commit, good);
    assert.ok(shown.refused_why.startsWith(where), shown.refused_why);
    assert.deepEqual(await names(), ['npu']);
    const { stdout } = await outpost.ctl('status');
    assert.match(stdout, new RegExp(`registry +${good.slice(0, 7)}, in force `));
    assert.match(stdout, new RegExp(`! the registry's commit ${bad.slice(0, 7)} was refused, the commit before it is in force:\\n${where}\\d+: `));
    assert.match((await outpost.get('/metrics')).text, /^outpost_registry_refused 1$/m);
    await outpost.waitForLog({ ev: 'registry_error', at: /npu\.yml:\d+: / });
    // A force-push back and a corrected commit both clear the refusal.
    git.reset(good);
    await pushed();
    await until(async () => (await registry()).refused === null);
    const corrected = git.commit({ 'gpu.yml': file('gpu'), 'npu.yml': file('npu') });
    await pushed();
    await inForce(corrected);
    assert.match((await outpost.get('/metrics')).text, /^outpost_registry_refused 0$/m);
    assert.doesNotMatch((await outpost.ctl('status')).stdout, /refused/);
  });

  test('a commit with a missing secret is refused until the secret exists and a reload', async () => {
    await start();
    const lab = git.commit({ 'lab.yml': 'name: lab\ntitle: Lab\nlevel: L2\nrunners:\n  - {name: ci, webhook: {url: "http://127.0.0.1:9/hook", secret: hook}}\n' });
    await pushed();
    await isRefused(lab);
    assert.match((await registry()).refused_why, /lab\.yml:\d+: cannot read .*hook/);
    await outpost.reload();
    await isRefused(lab);
    await outpost.configure({ secrets: { lab: { hook: 'a secret' } } });
    await outpost.reload();
    await inForce(lab);
    assert.deepEqual(await names(), ['lab']);
  });

  test('after a restart without a network the last good commit is in force', async () => {
    await start();
    git.mode = 'down';
    await outpost.restart();
    assert.deepEqual(await names(), ['npu']);
    const shown = await until(async () => (await registry()).fetch_error && registry());
    assert.equal(shown.commit, git.tip);
    assert.match(shown.fetch_error, /503/);
    assert.match((await outpost.ctl('status')).stdout, /! fetching the registry: .*503/);
    const check = await outpost.check();
    assert.equal(check.code, 0);
    assert.match(check.stderr, new RegExp(`1 accelerator, with accelerators\\.git@${git.tip.slice(0, 7)}`));
    git.mode = 'serve';
    const next = git.commit({ 'gpu.yml': file('gpu') });
    await pushed();
    await inForce(next);
    assert.equal((await registry()).fetch_error, null);
  });

  test('a first start without a network waits for the registry and loses no delivery meanwhile', async () => {
    git = await GitServer.start({ repository: REGISTRY });
    git.commit({ 'npu.yml': file('npu') });
    git.mode = 'down';
    outpost = await Outpost.prepare(options('1d'));
    assert.match((await outpost.check()).stderr, /nothing has been fetched yet/);
    assert.ok(!existsSync(path.join(outpost.stateDir, 'registry')), '--check creates no files');
    outpost.options.wait = false;
    await outpost.spawn();
    await outpost.waitForLog({ ev: 'registry_not_fetched' });
    const answer = await outpost.get('/readyz');
    assert.equal(answer.status, 503);
    assert.match(answer.text, /registry is not loaded/);
    assert.match((await outpost.ctl('status')).stdout, /registry +not loaded yet/);
    const opened = await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull('pytorch/pytorch', { number: 32, association: 'MEMBER' })));
    assert.equal(opened.status_code, 202);
    git.mode = 'serve';
    await until(async () => (await outpost.get('/readyz')).status === 200, { timeout: 10_000 });
    assert.deepEqual(await names(), ['npu']);
    await rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: { payload } }) => payload.number === 32 });
  });

  test('a hostile tree is refused and leaves no files behind', async () => {
    await start();
    const good = git.tip;
    const blob = git.blob(file('x'));
    const hostile = [
      [[['120000', 'x.yml', git.blob('/etc/passwd')]], /x\.yml:1: a symbolic link/],
      [[['160000', 'x.yml', good]], /x\.yml:1: a submodule/],
      [[['100644', '../x.yml', blob]], /:1: the name may have/],
      [[['100644', '..', blob]], /:1: the name may have/],
      [[['100644', 'a b.yml', blob]], /:1: the name may have/],
      [[['100644', 'x\u001b[2J.yml', blob]], /:1: the name may have/],
      [[['100644', 'x.yml', blob], ['100644', 'x.yml', blob]], /x\.yml:1: a second file of this name/],
      [[['100644', 'x.yml', git.blob(Buffer.alloc(10 << 20, 'x'))]], /x\.yml:1: larger than 256 KiB/],
      [Array.from({ length: 5000 }, (_, i) => ['100644', `x${i}.yml`, blob]), /more than 1000 files/],
      [[['100644', 'x.yaml', blob]], /x\.yaml:1: only \*\.yml is read/],
    ];
    for (const [entries, why] of hostile) {
      const sha = git.commitEntries(entries, { fresh: true });
      await pushed();
      await isRefused(sha);
      const shown = await registry();
      assert.match(shown.refused_why, why);
      assert.doesNotMatch(shown.refused_why, /[\u0000-\u0009\u000b-\u001f]/);
      assert.equal(shown.commit, good);
    }
    const none = git.commitTree(git.tree([['100644', 'README', blob]]), { fresh: true });
    await pushed();
    await isRefused(none);
    assert.match((await registry()).refused_why, /no such folder/);
    // Other files are ignored.
    const odd = git.commitEntries([['100644', '.hidden.yml', blob], ['100644', 'README.md', blob], ['120000', 'link', git.blob('/etc')], ['100644', 'npu.yml', git.blob(file('npu'))], ['40000', 'sub', git.tree([['100644', 'x.yml', blob]])]], { fresh: true });
    await pushed();
    await inForce(odd);
    assert.deepEqual(await names(), ['npu']);
    const folder = path.join(outpost.stateDir, 'registry');
    await until(() => readdirSync(folder).length === 3, { what: 'the folder has repo.git, good and one checkout' });
    assert.deepEqual(readdirSync(path.join(folder, readdirSync(folder).find((name) => name.startsWith(odd)))), ['npu.yml']);
  });

  test('an untrusted certificate stops the fetch', async () => {
    await start();
    const good = git.tip;
    git.commit({ 'gpu.yml': file('gpu') });
    outpost.options.env = {};
    await outpost.restart();
    const { fetch_error: error, commit } = await until(async () => (await registry()).fetch_error && registry());
    assert.match(error, /certificate|SSL|TLS/i);
    assert.equal(commit, good);
  });

  // Finding 11.
  test('no redirect is followed, neither to another server nor to another path', async () => {
    await start();
    const good = git.tip;
    const other = await GitServer.start({ repository: REGISTRY });
    try {
      other.commit({ 'evil.yml': file('evil') });
      git.commit({ 'evil.yml': file('evil') });
      git.serveAlsoAs('someone/evil');
      git.reset(good);
      const samePath = (url) => url.replace(`/${REGISTRY}.git`, '/someone/evil.git');
      const targets = [
        [302, (url) => `https://127.0.0.1:${new URL(other.url).port}${url}`], [302, (url) => `${new URL(other.url).origin}${url}`],
        ...[301, 302, 303, 307, 308].map((status) => [status, samePath]), [302, (url) => `${new URL(git.url).origin}${samePath(url)}`],
      ];
      for (const [status, redirect] of targets)
        for (const isTerse of [false, true]) {
          Object.assign(git, { redirect: () => undefined, isTerse });
          await pushed();
          await until(async () => (await registry()).fetch_error === null);
          Object.assign(git, { redirect: (url) => url.includes(REGISTRY) && redirect(url), redirectStatus: status });
          await pushed();
          const { fetch_error: why, commit } = await until(async () => (await registry()).fetch_error && registry());
          assert.match(why, /it redirects to .*, and redirects are not followed: set the new address/, `${status} ${redirect}`);
          assert.equal(commit, good);
        }
      assert.deepEqual(other.requests, []);
      assert.deepEqual(git.requests.filter((r) => r.includes('someone/evil')), []);
      assert.match((await outpost.ctl('status')).stdout, /! fetching the registry: .*redirect/);
      const next = git.commit({ 'gpu.yml': file('gpu') });
      for (const target of [samePath, (url) => `${new URL(other.url).origin}${url}`]) { // a redirect of the second request
        git.redirect = (url) => url.endsWith(`${REGISTRY}.git/git-upload-pack`) && target(url);
        await pushed();
        await until(async () => /redirect/.test((await registry()).fetch_error) && git.requests.at(-1).startsWith('POST'));
        git.redirect = () => undefined;
      }
      assert.deepEqual(other.requests, []);
      assert.deepEqual(git.requests.filter((r) => r.includes('someone/evil')), []);
      await pushed();
      await inForce(next);
    } finally {
      Object.assign(git, { redirect: () => undefined, redirectStatus: 302 });
      await other.close();
    }
  });

  test('a silent server blocks neither the service nor its stop', async () => {
    await start();
    git.mode = 'silent';
    const { length } = git.requests;
    await pushed();
    await until(() => git.requests.length > length);
    await outpost.reload();
    assert.deepEqual(await names(), ['npu']);
    await outpost.stop();
  });

  test('simultaneous reloads and new commits end with the newest commit', async () => {
    await start();
    for (let i = 0; i < 5; i++) {
      const next = git.commit({ [`gpu${i}.yml`]: file(`gpu${i}`) });
      await Promise.all([pushed(), outpost.reload(), outpost.reload()]);
      await inForce(next);
      assert.deepEqual(await names(), [`gpu${i}`]);
    }
    process.kill(outpost.pid, 'SIGHUP');
    git.mode = 'silent';
    await outpost.restart({ hard: true });
    assert.deepEqual(await names(), ['gpu4'], 'after a kill, the last commit is in force before a fetch');
  });

  test('with an invalid first commit, outpostd is not ready until it is corrected', async () => {
    git = await GitServer.start({ repository: REGISTRY });
    const bad = git.commit({ 'npu.yml': 'name: npu\n' });
    outpost = await Outpost.prepare(options('1s'));
    outpost.options.wait = false;
    await outpost.spawn();
    await outpost.waitForLog({ ev: 'registry_refused' });
    assert.equal((await outpost.get('/readyz')).status, 503);
    const report = await outpost.request('POST', '/api/v1/dispatches/abc/jobs', { headers: { authorization: 'Bearer x' }, body: '{}' });
    assert.equal(report.status, 503, 'a report gets 503 and is sent again');
    assert.match((await outpost.ctl('status')).stdout, new RegExp(`commit ${bad.slice(0, 7)} was refused, no commit of it is in force:\\n.*npu\\.yml:1: `));
    git.commit({ 'npu.yml': file('npu') });
    await until(async () => (await outpost.get('/readyz')).status === 200, { timeout: 10_000 });
  });

  test('a last commit that no longer fits outpost.yml stops the start with a message how to continue', async () => {
    git = await GitServer.start({ repository: REGISTRY });
    git.commit({ 'npu.yml': 'name: npu\ntitle: NPU\nlevel: L2\n' }); // hosted in the infra repository
    const settings = options('1d');
    outpost = await Outpost.start({ ...settings, config: { ...settings.config, infra: { repository: 'pytorch-fdn/infra' } } });
    await outpost.stop();
    await outpost.configure({ config: settings.config });
    const { code, stdout } = await outpost.check();
    assert.equal(code, 1);
    assert.match(stdout, new RegExp(`^accelerators\\.git@${git.tip.slice(0, 7)}:accelerators\\.d/npu\\.yml:1: runners is missing`, 'm'));
    assert.match(stdout, /^\S*outpost\.yml:1: .*correct this file, or remove \S+\/registry\/good/m);
    execFileSync('rm', [path.join(outpost.stateDir, 'registry', 'good')]);
    assert.equal((await outpost.check()).code, 0);
  });
});
