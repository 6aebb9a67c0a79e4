// Hostile texts from authors, committers, maintainers and vendors, and far more of them than usual: in comments, check runs,
// replies, issues, notices, tables and logs they are plain text, and each is written once.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { checkRerequested, fakeSha, issueComment, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { HOSTILE, SHA } from './lib/hostile.mjs';
import { UNSEEN, rendered } from './lib/markdown.mjs';
import { OUTPOSTCTL, Outpost, notBuilt, runProgram, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const CHIP = 'vendor/chip';
const SECRET = 'hook secret';
const ISSUE = 'https://github.com/pytorch/pytorch/issues/77';
const LIMIT = 65_536;
const GROUP = 34; // the number of texts in one pull request
const groups = Array.from({ length: Math.ceil(HOSTILE.length / GROUP) }, (_, i) => HOSTILE.slice(i * GROUP, (i + 1) * GROUP));
const orLetter = (text) => (text.replace(/[\x00-\x20\x7f]/g, '') ? text : `x${text}`);
const utf8 = (text) => Buffer.byteLength(text);

// Outpost's own colours on a terminal.
const PLAIN = /\x1b\[(0|1|2|31|32|33|36)m/g;

describe('hostile texts about a change', { skip: notBuilt }, () => {
  let rig;
  let lab;
  let outpost;
  let next = 700;
  const tokens = {};

  before(async () => {
    [rig, lab] = await Promise.all([startRig({ repositories: [UPSTREAM, CHIP].map((name) => ({ name })) }), startSilentVendor({ secret: SECRET })]);
    const common = { level: 'L4', trust: 'anyone', links: { docs: 'https://vendor.example/docs', help: 'https://vendor.example/help' }, triggers: { pull_request: {}, push: { branches: ['main'] } },
      tests: { must_pass: ['model/<b>@octocat #1', 'model/|`x`'], skip: ['model/[x](https://evil.example/)'] } };
    outpost = await Outpost.start({
      rig,
      accelerators: [
        { name: 'chip', title: '[x](https://evil.example/) | <b> @octocat #1', vendor: '</td>', oncall: ['alice'], ...common, runners: [{ name: 'ci', github: { repository: CHIP } }] },
        { name: 'lab', title: '<!-- outpost:results --> ` @octocat', oncall: ['alice'], ...common, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] },
      ],
      secrets: { lab: { hook: SECRET } },
      config: { comment: { min_interval: '1s' }, required: { suites: ['model', '<b>|@octocat'] } },
      env: { ASAN_OPTIONS: 'quarantine_size_mb=1:malloc_context_size=2' },
    });
    for (const name of ['chip', 'lab']) tokens[name] = (await outpost.ctl('token', 'issue', name)).stdout.trim();
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([lab?.stop(), rig?.close()]);
  });

  const OURS = () => [outpost.url, `https://github.com/${UPSTREAM}/`, 'https://github.com/example/ci/actions/runs/', 'https://vendor.example/', ISSUE];

  async function opened(options = {}) {
    const pull = rig.openPull(UPSTREAM, { number: next++, association: 'CONTRIBUTOR', ...options });
    const answer = await rig.deliver('pull_request', pullRequestOf('opened', pull, { body: options.body }));
    assert.equal(answer.status_code, 202, answer.response?.body);
    return pull;
  }
  const dispatchOf = async (target, name) => (await outpost.waitForApi(target, (view) => view.accelerators.some((a) => a.name === name && a.dispatches.length > 0), { timeout: 20_000, what: `${name} has a dispatch of ${target}` }))
    .accelerators.find((a) => a.name === name).dispatches[0].id;

  // Reports a job of `name` with these tests and returns its id.
  async function report(target, name, tests, more = {}) {
    const id = await dispatchOf(target, name);
    const workflow = workflowOf({ workflow: 'ci', job: 'test', run_id: `${name} ${target}`, conclusion: tests.some(({ status }) => status !== 'PASS') ? 'failure' : 'success', tests, ...more }, 'completed');
    const answer = await post(`${outpost.url}/api/v1/dispatches/${id}/jobs`, tokens[name], workflow);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body.job;
  }

  // Asserts that the Markdown contains no markup of others. ours: Outpost's own texts that are a mention or a reference.
  async function assertPlainText(markdown, { tables = 0, ours = /$^/g, what = '' } = {}) {
    assert.ok([...markdown].length <= LIMIT, `${what}: ${[...markdown].length} characters`);
    const page = await rendered(markdown.replace(/^<!-- outpost:[\w:]+ -->$/gm, '').replace(ours, ''));
    assert.deepEqual(page.strange({ links: OURS() }), [], `${what}:\n${markdown}`);
    assert.equal(page.html.split('<table>').length - 1, tables, what);
    for (const cells of page.table) assert.equal(cells.length, page.table[0].length, `${what}: ${cells}`);
    return page;
  }

  async function onTerminal(...args) {
    const { code, stdout } = await outpost.ctlOnTerminal(...args);
    assert.equal(code, 0, stdout);
    assert.doesNotMatch(stdout.replace(/\r\n/g, '\n').replace(PLAIN, ''), UNSEEN, JSON.stringify(stdout));
    return stdout;
  }

  const bots = (pull) => rig.comments(UPSTREAM, pull.number).filter(({ author }) => author === rig.bot);
  const results = (pull) => bots(pull).filter(({ body }) => /^<!-- outpost:results -->$/m.test(body));
  const replies = (pull) => bots(pull).filter(({ body }) => body.startsWith('<!-- outpost:reply:'));
  const preview = async (pull) => {
    const { code, stdout, stderr } = await outpost.ctl('comment', 'preview', String(pull.number), '--markdown');
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const settled = () => until(async () => {
    const { outbox, deliveries } = await outpost.api('status');
    return outbox.due === 0 && deliveries.accepted === 0;
  }, { timeout: 60_000, what: 'no delivery or effect is pending' });

  async function assertChecks(pull) {
    const runs = await until(() => { const list = rig.checkRuns(UPSTREAM, pull.headSha); return list.some(({ name, conclusion }) => name === 'outpost' && conclusion) && list; }, { timeout: 60_000, what: `the check runs of #${pull.number}` });
    // If annotations change, Outpost creates a new check run, because GitHub removes no annotation. GitHub shows the newest of a name.
    assert.equal(new Set(runs.map(({ name }) => name)).size, 3, `one check run per job, and the verdict: ${runs.map(({ name }) => name)}`);
    for (const { name, output, externalId, detailsUrl } of runs) {
      for (const text of [name, output.title, externalId]) assert.doesNotMatch(text, UNSEEN, JSON.stringify(text));
      assert.ok(utf8(output.title) <= 1024 && utf8(output.summary) <= LIMIT && utf8(output.text ?? '') <= LIMIT, name);
      assert.ok(detailsUrl.startsWith(outpost.url), detailsUrl);
      await assertPlainText(output.summary, { what: `summary of ${name}` });
      if (name === 'outpost') assert.equal(JSON.parse(/^```json\n([^`]*)\n```$/m.exec(output.text)[1]).schema, 1);
    }
    return runs;
  }

  test('hostile pull requests and reports stay plain text in comments and check runs', async () => {
    const lines = [1, 10_000_000, 12];
    for (const [i, texts] of groups.entries()) {
      const tests = texts.map((text, k) => ({ suite: k % 3 ? 'model' : orLetter(text), name: orLetter(text), dtype: text, status: k % 5 ? 'FAIL' : 'ERROR', message: `${text} at 0x7f0012345678`, trace: text, file: `${text}/test_x.py`, line: lines[k % lines.length] }));
      // Two changes to different files with the same failures, which are evidence for each other.
      const pulls = [];
      for (let nth = 0; nth < 2; nth++)
        pulls.push(await opened({ title: texts[nth], headRef: `x-${i}-${nth}-"'<b>|\`@octocat`, author: `author-${i}-${nth}`, body: texts.join('\n'), files: [`area-${i}-${nth}/x.cpp`],
          labels: [...texts.filter((text) => text.trim()).map((text) => text.slice(0, 50)), ...Array.from({ length: 300 }, (_, n) => `label ${n}`)] }));
      await Promise.all(pulls.flatMap((pull) => ['chip', 'lab'].map((name) => report(`pulls/${pull.number}`, name, tests, { workflow: orLetter(texts[0]), job: orLetter(texts[1]) }))));
      for (const pull of pulls) {
        await assertChecks(pull);
        const text = await preview(pull);
        await assertPlainText(text, { tables: 1, what: `the comment on #${pull.number}` });
        await until(() => results(pull).length === 1, { timeout: 90_000, what: `one comment on #${pull.number}` });
        await assertPlainText(results(pull)[0].body, { tables: 1, what: `the posted comment on #${pull.number}` });
        assert.ok((await outpost.api(`pulls/${pull.number}`)).verdicts.length >= texts.length);
        await onTerminal('comment', 'preview', String(pull.number));
      }
    }
    await onTerminal('dispatches');
    await onTerminal('deliveries');
    await onTerminal('status');
  });

  test('extreme lines, numbers and files cause neither an annotation nor an error', async () => {
    const pull = await opened();
    const id = await dispatchOf(`pulls/${pull.number}`, 'chip');
    // Written by hand, because JSON allows larger numbers than JavaScript.
    const test_ = (i, file, line) => `{"suite":"model","name":"${i}","status":"FAIL","message":"expected ${i}","file":${JSON.stringify(file)},"line":${line}}`;
    const send = (run, tests) => outpost.request('POST', `/api/v1/dispatches/${id}/jobs`, { headers: { authorization: `Bearer ${tokens.chip}` }, timeout: 60_000,
      body: `{"schema_version":1,"status":"completed","conclusion":"failure","name":"ci","job_name":"t","run_id":"${run}","run_attempt":1,"tests":[${tests.join(',')}]}` });
    for (const line of ['9223372036854775807', '-9223372036854775808', '9223372036854775808', '0', '-1', '10000001', '1.5', '1e999', 'NaN', '"7"', 'true', '[]']) {
      const { status, json } = await send('odd', [test_('odd', 'a.py', line)]);
      assert.equal(status, 400, line);
      assert.ok(json.detail, line);
    }
    const places = ['/etc/passwd', '../x', 'a/../../x', '..', '\\\\host\\x', 'x'.repeat(5000), '', '\u202e', 'a\x1b[2J', './a', '.', 'a/..'].map((file, i) => test_(`place ${i}`, file, 3));
    const many = Array.from({ length: 900 }, (_, i) => test_(`many ${i}`, `dir/f${i}.py`, i + 1));
    const { status, text } = await send('1', [...places, ...many]);
    assert.equal(status, 200, text);
    await report(`pulls/${pull.number}`, 'lab', [{ suite: 'model', name: 'a', status: 'PASS' }]);
    const run = (await assertChecks(pull)).find(({ name }) => name.startsWith('crcr/'));
    assert.ok(run.output.annotations.length > 0 && run.output.annotations.length <= 200, `${run.output.annotations.length}`);
  });

  test('hostile messages, authors and ids of pushes stay plain text in issues and signed notices', async () => {
    const commit = (sha, text, i) => ({ id: sha, tree_id: sha, distinct: true, message: `${text}\n\nFixes #1 @octocat`, timestamp: i % 2 ? text : new Date().toISOString(), url: text, author: { name: text, email: text, username: i % 3 ? text : undefined }, committer: { name: text, email: text }, added: [text], removed: [], modified: [text] });
    let tip = fakeSha('before all that');
    // Pushes a chain of commits that ends at `after`, one commit for each text.
    const deliver = async (texts, more = {}) => {
      const commits = texts.map((text, i) => commit(fakeSha(`${tip} ${i}`), text, i));
      const payload = push({ before: tip, after: commits.at(-1).id });
      Object.assign(payload, { commits, head_commit: commits.at(-1), ...more });
      const answer = await rig.deliver('push', payload);
      tip = payload.after;
      return answer.status_code;
    };
    const red = HOSTILE.slice(0, 60).map((text, i) => ({ suite: orLetter(text), name: `${text} <!-- outpost:red:${i} -->`, dtype: text, status: 'FAIL', message: `${text} differs` }));
    for (let round = 0; round * 27 < HOSTILE.length; round++) {
      assert.equal(await deliver(['good']), 202);
      for (const name of ['chip', 'lab']) await report(`commits/${tip}`, name, [{ suite: 'model', name: 'a', status: 'PASS' }]);
      assert.equal(await deliver(HOSTILE.slice(round * 27, (round + 1) * 27)), 202);
      const bad = tip;
      for (const name of ['chip', 'lab']) await report(`commits/${bad}`, name, red);
      const issue = await until(() => rig.issues(CHIP)[round], { timeout: 90_000, what: 'the issue exists' });
      assert.doesNotMatch(issue.title, UNSEEN);
      await assertPlainText(issue.body, { ours: /^@alice: /, what: `the issue about ${bad}` });
      assert.equal(issue.body.split('@alice').length, 2);
      const { body: notice, valid } = await until(() => lab.events.find(({ event, body }) => event === 'red' && body.first_bad.sha === bad), { timeout: 90_000, what: 'the lab receives the notice' });
      assert.ok(valid);
      assert.ok(notice.commits.length > 0 && notice.tests.length > 0);
      assert.equal(notice.commits.at(-1).sha, bad);
    }
    await settled();
    assert.equal(rig.issues(CHIP).length, Math.ceil(HOSTILE.length / 27), 'an episode has one issue, even if its tests have hostile names');
    await until(() => rig.issues(CHIP).filter(({ state }) => state === 'open').length === 1, { timeout: 90_000, what: 'all issues but the last are closed' });
    for (const { number } of rig.issues(CHIP))
      for (const { body } of rig.comments(CHIP, number)) await assertPlainText(body, { ours: /^@alice: /, what: 'a comment on an issue' });

    // Payloads that GitHub never sends are refused or change nothing.
    const sha = () => fakeSha(`${Math.random()}`);
    for (const commits of [null, 7, 'x', {}, [null], [[]], [{}], [{ id: 7 }], [{ id: '../../x' }], [{ id: `${'0'.repeat(39)}g`, message: 7 }], [{ id: SHA, author: [], message: null, timestamp: {} }], Array(50).fill({ id: SHA })]) {
      assert.equal(await deliver(['x'], { commits, after: sha() }), 202, JSON.stringify(commits));
      await outpost.waitForApi(`commits/${tip}`, (view) => view.accelerators.length > 0, { timeout: 20_000 });
    }
    assert.equal(await deliver(Array.from({ length: 2048 }, (_, i) => `commit ${i} `.repeat(50))), 202);
    await report(`commits/${tip}`, 'chip', red);
    await onTerminal('status');
    await onTerminal('deliveries');
  });

  test('hostile comments to the bot get one plain answer each', async () => {
    const say = async (pull, body, more = {}) => {
      const id = rig.world.comment(UPSTREAM, pull.number, { body, author: 'alice' });
      const { status_code: status } = await rig.deliver('issue_comment', issueComment('created', { number: pull.number, author: 'alice', association: 'MEMBER', id, body, ...more }));
      assert.equal(status, 202);
      return id;
    };
    for (const texts of [0, 1, 2, 3].map((i) => HOSTILE.slice(i * 10, (i + 1) * 10))) {
      const pull = await opened();
      await dispatchOf(`pulls/${pull.number}`, 'chip');
      const id = await say(pull, texts.map((text, i) => `@${rig.app.slug} ${i % 2 ? `retest ${text}` : text}`).join('\n'));
      const [{ body }] = await until(() => replies(pull).length > 0 && replies(pull), { timeout: 60_000, what: `an answer to ${JSON.stringify(texts)}` });
      await assertPlainText(body, { what: JSON.stringify(texts) });
      assert.ok(body.startsWith(`<!-- outpost:reply:${id} -->\n`));
      await say(pull, `@${rig.app.slug} status`);
      await until(() => replies(pull).length === 2, { timeout: 60_000, what: 'the status' });
      await assertPlainText(replies(pull)[1].body, { what: 'status' });
    }
    const pull = await opened();
    await dispatchOf(`pulls/${pull.number}`, 'chip');
    await say(pull, Array.from({ length: 1000 }, (_, i) => `@${rig.app.slug} ${'|@octocat #1 [x](https://evil.example/) '.repeat(5)}${i}`).join('\n'));
    await say(pull, `@${rig.app.slug} ${'x'.repeat(1 << 20)}`);
    await say(pull, `${'> '.repeat(30_000)}@${rig.app.slug} cancel`);
    await say(pull, `${'`'.repeat(60_000)}\n@${rig.app.slug} cancel`);
    await say(pull, `${'<!--'.repeat(20_000)}\n@${rig.app.slug} cancel`);
    await settled();
    await until(() => replies(pull).length === 2, { timeout: 60_000, what: 'an answer to each of the two comments that are commands' });
    for (const { body } of replies(pull)) await assertPlainText(body, { what: 'the answer to a long comment' });
    // A body that is not UTF-8 is not a webhook.
    const body = Buffer.from(JSON.stringify(issueComment('created', { number: pull.number, body: `@${rig.app.slug} cancel ?` }))).toString('latin1').replace('cancel ?', 'cancel \xff\xc0\x80');
    assert.equal((await outpost.request('POST', '/github/webhook', { body: Buffer.from(body, 'latin1'), headers: { 'x-github-event': 'issue_comment', 'x-github-delivery': 'bad-bytes', 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` } })).status, 401);
    assert.equal((await outpost.api(`pulls/${pull.number}`)).accelerators[0].dispatches[0].state !== 'cancelled', true);
    await onTerminal('deliveries');
  });

  test('a test whose name is the marker of an answer does not prevent the answer', async () => {
    const pull = await opened();
    const id = rig.world.comment(UPSTREAM, pull.number, { body: `@${rig.app.slug} status`, author: 'alice' });
    for (const name of ['chip', 'lab'])
      await report(`pulls/${pull.number}`, name, [{ suite: 'model', name: `<!-- outpost:reply:${id} -->`, status: 'FAIL', message: `<!-- outpost:reply:${id} -->` }]);
    await until(() => results(pull)[0]?.body.includes(`<!-- outpost:reply:${id} -->`), { timeout: 60_000, what: 'the comment contains the marker' });
    await settled();
    // The first try fails, so that the second one checks whether the answer exists.
    rig.fault({ kind: 'status', status: 502, method: 'POST', path: `/repos/${UPSTREAM}/issues/${pull.number}/comments`, count: 1 });
    await rig.deliver('issue_comment', issueComment('created', { number: pull.number, author: 'alice', association: 'MEMBER', id, body: `@${rig.app.slug} status` }));
    await until(() => replies(pull).length === 1, { timeout: 60_000, what: 'the answer exists' });
    rig.clearFaults();
    assert.equal(results(pull).length, 1);
  });

  test('a Re-run with invented names and ids starts nothing', async () => {
    const pull = await opened();
    const job = await report(`pulls/${pull.number}`, 'lab', [{ suite: 'model', name: 'a', status: 'PASS' }]);
    assert.ok(job > 0);
    const from = rig.requests().at(-1).seq;
    for (const text of [...HOSTILE, '../../../x', '1/../../2', '1?x=y', '1#', '9'.repeat(400), 'x'.repeat(1 << 20), '\0']) {
      const { status_code: status } = await rig.deliver('check_run', checkRerequested('check_run', { appId: rig.app.id, headSha: pull.headSha, number: pull.number, name: text, externalId: `${text}:${pull.number}` }));
      assert.equal(status, 202, text);
      await rig.deliver('check_run', checkRerequested('check_run', { appId: rig.app.id, headSha: pull.headSha, number: pull.number, name: 'outpost/lab/ci/test', externalId: `${text}:${text}` }));
    }
    await settled();
    for (const { path: target } of rig.requests({ method: 'POST', after: from })) assert.doesNotMatch(target, /rerun|\.\./);
    await onTerminal('deliveries');
  });

  describe('known issues', () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    after(() => agent.destroy());

    // Sends outpostctl's request without starting a process.
    const ask = (body) => new Promise((resolve, reject) => {
      const request = http.request({ socketPath: path.join(outpost.stateDir, 'control.sock'), method: 'POST', path: '/control/known', agent, headers: { 'content-type': 'application/json' } }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      }).on('error', reject);
      request.end(JSON.stringify(body));
    });

    test('hostile patterns and addresses are refused or harmless', async () => {
      for (const text of [...HOSTILE, 'a/\ud800', 'x'.repeat(2000), `${'*'.repeat(100)}/a`, `${'[!'.repeat(50)}/]`, '{a,'.repeat(50)]) {
        for (const body of [{ test: `model/${text}`, url: ISSUE }, { test: 'nobody/x', url: text }, { test: 'nobody/x', url: `${ISSUE}?${text}` }, { test: 'nobody/x', url: ISSUE, accelerator: text }, { test: 'nobody/x', url: ISSUE, until: text }])
          assert.ok([200, 201, 400, 404].includes(await ask(body)), JSON.stringify(body));
        if (!UNSEEN.test(text)) continue;
        for (const args of [['--test', `model/${text}`, '--url', ISSUE], ['--test', 'nobody/x', '--url', ISSUE, '--accelerator', text]]) {
          const { code, stdout, stderr } = await outpost.ctl('known', 'add', ...args.map((arg) => arg.replaceAll('\0', '')));
          assert.ok([0, 1, 2].includes(code), `${JSON.stringify(args)}: ${code}`);
          if (code) assert.equal(stdout, '');
          assert.doesNotMatch(stderr, UNSEEN, JSON.stringify(stderr));
        }
      }
      await onTerminal('known', 'list');
      const pull = await opened();
      for (const name of ['chip', 'lab']) await report(`pulls/${pull.number}`, name, HOSTILE.map((text) => ({ suite: 'model', name: orLetter(text), status: 'FAIL', message: `${text} differs` })));
      await assertPlainText(await preview(pull), { tables: 1, what: 'KNOWN' });
      await assertChecks(pull);
    });

    test('an argument that is not UTF-8 is refused, not ignored', async () => {
      const before_ = JSON.parse((await outpost.ctl('--json', 'known', 'list')).stdout).known.length;
      for (const option of ['--accelerator', '--until'])
        assert.equal((await runProgram('sh', ['-c', `exec "$0" -c "$1" known add --test 'nobody/x' --url ${ISSUE} ${option} "$(printf '\\377')"`, OUTPOSTCTL, outpost.configFile], { cwd: outpost.dir })).code, 2, option);
      assert.equal(JSON.parse((await outpost.ctl('--json', 'known', 'list')).stdout).known.length, before_);
    });

    test('Outpost matches two thousand known issues', async () => {
      const all = await Promise.all(Array.from({ length: 2000 }, (_, i) => ask({ test: `**/*a*a*a*a*a*b${i}*/**`, url: `${ISSUE}?${i}` })));
      assert.deepEqual([...new Set(all)].map((status) => status < 300), [true], `${[...new Set(all)]}`);
      const pull = await opened();
      for (const name of ['chip', 'lab'])
        await report(`pulls/${pull.number}`, name, Array.from({ length: 300 }, (_, i) => ({ suite: 'model', name: `${'a'.repeat(100)}/${i}`, status: 'FAIL', message: `differs in ${'abc'[i % 3]}` })));
      await assertChecks(pull);
      const list = await outpost.ctl('known', 'list');
      assert.equal(list.code, 0, list.stderr);
      assert.doesNotMatch(list.stdout, UNSEEN);
    });
  });

  test('hostile texts add no log lines, violate no rule of GitHub and need little memory', async () => {
    await settled();
    for (const { line } of outpost.log) assert.doesNotMatch(line, /[\x00-\x1f\x7f-\x9f]/, JSON.stringify(line));
    const annotations = rig.requests({ path: /\/check-runs(\/\d+)?$/ }).filter(({ body }) => body).flatMap(({ body }) => JSON.parse(body).output?.annotations ?? []);
    assert.ok(annotations.length > 200);
    for (const { path: file, start_line: line, end_line: end, title, message } of annotations) {
      for (const text of [file, title, message]) assert.doesNotMatch(text, /[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/, JSON.stringify(text));
      assert.ok(!/^\/|(^|\/)\.\.(\/|$)/.test(file) && line > 0 && end >= line, `${file}:${line}`);
    }
    assert.deepEqual(rig.violations(), []);
    const memory = Number((await fs.readFile(`/proc/${outpost.pid}/status`, 'utf8')).match(/^RssAnon:\s+(\d+) kB$/m)[1]) / 1024;
    assert.ok(memory < 600, `${memory} MiB`);
  });
});

describe('sixty accelerators with all tests red', { skip: notBuilt }, () => {
  test('the comment has one table and stays within the limit', async () => {
    const CHECKED = 5; // accelerators with check runs
    const names = Array.from({ length: 60 }, (_, i) => `chip-${i}`);
    const [rig, lab] = await Promise.all([startRig({ repositories: [{ name: UPSTREAM }] }), startSilentVendor({ secret: SECRET })]);
    let outpost;
    try {
      outpost = await Outpost.start({
        rig, secrets: Object.fromEntries(names.map((name) => [name, { hook: SECRET }])), config: { comment: { min_interval: '1s' } },
        accelerators: names.map((name, i) => ({ name, title: `${name} | <b>`, level: i < CHECKED ? 'L4' : 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] })),
        env: { ASAN_OPTIONS: 'quarantine_size_mb=1:malloc_context_size=2' },
      });
      const pull = rig.openPull(UPSTREAM, { number: 7, association: 'CONTRIBUTOR' });
      await rig.deliver('pull_request', pullRequestOf('opened', pull));
      const events = await until(() => lab.events.length === names.length && lab.events, { timeout: 60_000, what: 'all accelerators received the dispatch' });
      await Promise.all(events.map(async ({ body: { outpost: block } }, k) => {
        const tests = Array.from({ length: 330 }, (_, i) => ({ suite: 'model', name: `test ${i} | ${HOSTILE[i % HOSTILE.length]}`, status: 'FAIL', message: `${HOSTILE[(i + k) % HOSTILE.length]} ${'x'.repeat(900)}` }));
        const answer = await post(block.callback_url, block.callback_token, workflowOf({ workflow: 'ci', job: 'test', run_id: String(k), conclusion: 'failure', tests }, 'completed'));
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
      }));
      await until(() => rig.checkRuns(UPSTREAM, pull.headSha).filter(({ conclusion }) => conclusion).length === CHECKED + 1, { timeout: 120_000, what: 'one check run per job, and the verdict' });
      const { stdout, code, stderr } = await outpost.ctl('comment', 'preview', '7', '--markdown');
      assert.equal(code, 0, stderr);
      for (const body of [stdout, (await until(() => rig.comments(UPSTREAM, 7)[0], { timeout: 20_000 })).body]) {
        assert.ok([...body].length <= LIMIT);
        const page = await rendered(body);
        assert.deepEqual(page.strange({ links: [outpost.url, `https://github.com/${UPSTREAM}/`, 'https://github.com/example/ci/actions/runs/'] }), []);
        assert.equal(page.html.split('<table>').length, 2);
      }
      const memory = Number((await fs.readFile(`/proc/${outpost.pid}/status`, 'utf8')).match(/^VmHWM:\s+(\d+) kB$/m)[1]) / 1024;
      assert.ok(memory < 900, `${memory} MiB`);
      assert.deepEqual(rig.violations(), []);
    } finally {
      await outpost?.close();
      await Promise.all([lab.stop(), rig.close()]);
    }
  });
});
