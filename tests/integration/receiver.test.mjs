// examples/webhook-receiver/receive.py and its triggers with an experiment: the listed tests reach the vendor's CI unchanged, and
// no name is executed.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort, until } from './lib/outpost.mjs';

const examples = fileURLToPath(new URL('../../examples/webhook-receiver', import.meta.url));
const SECRET = 'between Outpost and the lab';
const SHA = 'c'.repeat(40);
const HOSTILE = ['model/llama3', 'unit/$(touch ran) `touch ran`', "unit/'; touch ran; '\"", '-rf/--help', '%s\\n/é\u00a0', '@/etc/passwd'];
const lines = HOSTILE.map((one) => `${one}\n`).join('');

describe('the webhook receiver and an experiment', () => {
  let folder;
  let receiver;
  let url;

  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'receiver-'));
    await fs.writeFile(path.join(folder, 'secret'), `${SECRET}\n`);
    // The command writes one file for each dispatch, with its arguments and the list.
    await fs.writeFile(path.join(folder, 'ci.sh'), `#!/bin/sh
{ echo "\${OUTPOST_TESTS-unset} $OUTPOST_EVENT $OUTPOST_HEAD_SHA pr=$OUTPOST_PR"; [ -z "\${OUTPOST_TESTS-}" ] || cat "$OUTPOST_TESTS"; } >"$OUTPOST_DISPATCH_ID.new"
mv "$OUTPOST_DISPATCH_ID.new" "$OUTPOST_DISPATCH_ID"
`, { mode: 0o755 });
    const port = await freePort();
    url = `http://127.0.0.1:${port}/`;
    receiver = spawn('/usr/bin/python3', [path.join(examples, 'receive.py'), 'secret', String(port), './ci.sh'], { cwd: folder, env: { ...process.env, TMPDIR: folder }, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(receiver.stdout, 'data');
  });

  after(async () => {
    const ended = once(receiver, 'exit');
    receiver.kill();
    await ended;
    await fs.rm(folder, { recursive: true, force: true });
  });

  const send = async (id, tests) => {
    const experiment = tests && { id: 7, of: 'd0', side: 'base', sha: SHA, tests, jobs: ['lab'] };
    const text = JSON.stringify({
      event_type: experiment ? 'experiment' : 'push', payload: { repository: { full_name: 'pytorch/pytorch' }, ref: 'refs/heads/main', head_sha: SHA },
      outpost: { dispatch_id: id, callback_url: 'http://127.0.0.1:1/', callback_token: 't', ...(experiment && { experiment }) },
    });
    const signature = `sha256=${createHmac('sha256', SECRET).update(text).digest('hex')}`;
    return (await fetch(url, { method: 'POST', body: text, headers: { 'x-outpost-event': experiment ? 'experiment' : 'push', 'x-hub-signature-256': signature } })).status;
  };
  const seen = async (id) => {
    const file = path.join(folder, id);
    await until(() => existsSync(file), { what: `the command of ${id} has ended` });
    const [first, ...rest] = readFileSync(file, 'utf8').split('\n');
    return { given: first.split(' '), list: rest.join('\n') };
  };

  test('the command gets a file with one test per line, which is removed when the command ends', async () => {
    assert.equal(await send('one', [...HOSTILE, 'unit/a\nunit/b', 'unit/\u2028c', 'unit/\u001b[2J']), 202);
    const { given, list } = await seen('one');
    assert.deepEqual(given.slice(1), ['experiment', SHA, 'pr=']);
    assert.equal(list, lines);
    await until(async () => (assert.equal(await send('two'), 202), !existsSync(given[0])), { what: 'the file is removed' });
    assert.equal((await seen('two')).given[0], 'unset', 'an ordinary dispatch lists no tests');
    assert.deepEqual((await fs.readdir(folder)).sort(), ['ci.sh', 'one', 'secret', 'two']);
  });

  test('an experiment without a usable test name is refused, because an empty list must not mean all tests', async () => {
    assert.equal(await send('three', ['unit/a\nunit/b']), 400);
    assert.equal(await send('three', []), 400);
    assert.ok(!existsSync(path.join(folder, 'three')));
  });

  for (const [script, env] of [
    ['trigger-gitlab.sh', (at) => ({ GITLAB_PROJECT: at, GITLAB_TRIGGER_TOKEN: 'secret' })],
    ['trigger-jenkins.sh', (at) => ({ JENKINS_JOB: at, JENKINS_USER: 'a:b' })],
  ])
    test(`${script} passes the list on as base64`, async (t) => {
      const bodies = [];
      const server = http.createServer(async (request, response) => {
        const parts = [];
        for await (const part of request) parts.push(part);
        bodies.push(Buffer.concat(parts).toString());
        response.end();
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      t.after(() => server.close());
      await fs.writeFile(path.join(folder, 'list'), lines);
      for (const OUTPOST_TESTS of ['list', undefined]) {
        const child = spawn('sh', [path.join(examples, script)], {
          cwd: folder, stdio: 'inherit',
          env: { PATH: process.env.PATH, OUTPOST_HEAD_SHA: SHA, OUTPOST_PR: '', OUTPOST_CALLBACK_URL: 'https://o/x', ...env(`http://127.0.0.1:${server.address().port}`), ...(OUTPOST_TESTS && { OUTPOST_TESTS }) },
        });
        assert.deepEqual(await once(child, 'exit'), [0, null]);
      }
      const sent = bodies.map((body) => /OUTPOST_TESTS_BASE64\]"\r\n\r\n([^\r]*)\r\n|[?&]?OUTPOST_TESTS_BASE64=([^&]*)/.exec(body)).map((found) => decodeURIComponent(found?.[1] ?? found?.[2] ?? '')); // curl leaves an empty one out
      assert.deepEqual(sent.map((one) => Buffer.from(one, 'base64').toString()), [lines, '']);
      // Run the decoding command that the script's comment recommends.
      const [, decode] = /^# {3}(\[ -z .*)$/m.exec(readFileSync(path.join(examples, script), 'utf8'));
      const job = spawnSync('sh', ['-c', `${decode}; cat "$OUTPOST_TESTS"`], { cwd: folder, encoding: 'utf8', env: { PATH: process.env.PATH, OUTPOST_TESTS_BASE64: sent[0] } });
      assert.equal(job.stdout, lines, job.stderr);
    });

  test('no test name is executed', async () => {
    assert.ok(!(await fs.readdir(folder)).includes('ran'));
  });
});
