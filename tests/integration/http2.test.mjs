// GitHub speaks HTTP/2, so simultaneous requests share connections.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http2 from 'node:http2';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { sign } from '@octokit/webhooks-methods';
import { rsaKey } from '../github/keys.mjs';
import { pullRequest } from '../github/payloads.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const COUNT = 20;

// The endpoints of GitHub that a dispatch uses, over TLS and HTTP/2 only.
function answer(method, target) {
  if (target.endsWith('/installation')) return [200, { id: 7, app_id: 1 }];
  if (target.endsWith('/access_tokens')) return [201, { token: 'ghs_x', expires_at: new Date(Date.now() + 3_600_000).toISOString() }];
  if (target.endsWith('/dispatches')) return [204];
  return [200, method === 'GET' && target === '/app' ? { slug: 'outpost-test' } : []];
}

test('requests to GitHub share HTTP/2 connections', { skip: notBuilt }, async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'http2-'));
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => path.join(dir, name));
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'], { stdio: 'ignore' });
  const server = http2.createSecureServer({ key: fs.readFileSync(key), cert: fs.readFileSync(cert), allowHTTP1: false });
  const sessions = new Set();
  const dispatchedOn = [];
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    const [status, value] = answer(headers[':method'], headers[':path']);
    stream.resume();
    stream.on('end', () => {
      if (status === 204) dispatchedOn.push(stream.session);
      stream.respond({ ':status': status, 'content-type': 'application/json' }, { endStream: value === undefined });
      if (value !== undefined) stream.end(JSON.stringify(value));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const outpost = await Outpost.start({
    privateKey: rsaKey(), secret: 's', env: { CURL_CA_BUNDLE: cert },
    accelerators: [{ name: 'chip', title: 'Chip', level: 'L2', runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }] }],
    config: { github: { api_url: `https://127.0.0.1:${server.address().port}` }, comment: { enabled: false } },
  });
  try {
    for (let number = 1; number <= COUNT; number++) {
      const body = JSON.stringify(pullRequest('opened', { number }));
      const { status } = await outpost.request('POST', '/github/webhook', { body, headers: {
        'content-type': 'application/json', 'x-github-event': 'pull_request', 'x-github-delivery': `h2-${number}`, 'x-hub-signature-256': await sign('s', body),
      } });
      assert.equal(status, 202);
    }
    await until(() => dispatchedOn.length >= COUNT, { timeout: 20_000, what: 'every dispatch has arrived' });
    assert.equal(dispatchedOn.length, COUNT);
    assert.ok(sessions.size <= COUNT / 5, `${sessions.size} connections for ${COUNT} dispatches`);
  } finally {
    await outpost.close();
    for (const session of sessions) session.destroy();
    server.close();
    fs.rmSync(dir, { recursive: true });
  }
});
