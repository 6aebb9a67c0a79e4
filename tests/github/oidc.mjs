// An OIDC issuer like GitHub Actions' or Buildkite's: publishes a key set, mints tokens with any claims,
// counts how often its keys are fetched, and breaks on request.
//
// As a program: `node tests/github/oidc.mjs [--port N]` prints one JSON line with its addresses; POST to
// token_url {claims, options} answers {token}. A job of GitHub Actions requests a token as from GitHub: actionsRequest(). Runs
// until stdin closes or SIGTERM.
import { createHmac, createPublicKey, randomUUID } from 'node:crypto';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SignJWT, exportJWK, exportSPKI } from 'jose';
import { rsaKeyObject } from './keys.mjs';

export const AUDIENCE = 'pytorch-cross-repo-ci-relay';

const encode = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

export class Issuer {
  #server;
  #sockets = new Set();
  #keys = []; // newest first
  #stranger;
  #fault;
  #hidden = false;
  #jobs = new Map(); // a job's request token → its claims
  fetches = 0;
  fetchLog = [];

  static async start({ port = 0 } = {}) {
    const self = new Issuer();
    await self.rotate();
    self.#server = http.createServer((request, response) => self.#serve(request, response).catch(() => response.destroy()));
    self.#server.on('connection', (socket) => {
      self.#sockets.add(socket);
      socket.on('close', () => self.#sockets.delete(socket));
    });
    await new Promise((resolve, reject) => {
      self.#server.once('error', reject);
      self.#server.listen(port, '127.0.0.1', resolve);
    });
    self.issuer = `http://127.0.0.1:${self.#server.address().port}`;
    self.jwksUrl = `${self.issuer}/.well-known/jwks`;
    self.tokenUrl = `${self.issuer}/_oidc/token`;
    return self;
  }

  async close() {
    const ended = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await ended;
  }

  // Creates a signing key. The old ones stay published unless keepOld is false.
  async rotate({ keepOld = true } = {}) {
    const privateKey = rsaKeyObject(), publicKey = createPublicKey(privateKey);
    const kid = randomUUID();
    const jwk = { ...await exportJWK(publicKey), kid, alg: 'RS256', use: 'sig' };
    this.#keys = [{ kid, publicKey, privateKey, jwk }, ...(keepOld ? this.#keys : [])];
    return kid;
  }

  // fault: {status} | {hang: true} | {body: text} | {reset: true}; heal() ends it.
  break(fault) { this.#fault = fault; }
  heal() { this.#fault = undefined; }

  // Signs with the newest key but does not publish it until show().
  hide() { this.#hidden = true; }
  show() { this.#hidden = false; }

  // options: expiresIn (s, may be negative), notBefore (s), kid, alg (RS256 | HS256 | none), signWith ('stranger': an
  // unpublished key under a published kid), header
  async mint(claims = {}, options = {}) {
    const now = Math.floor(Date.now() / 1000);
    const key = this.#keys[0];
    const payload = { iss: this.issuer, aud: AUDIENCE, iat: now, nbf: now + (options.notBefore ?? -5), exp: now + (options.expiresIn ?? 300), jti: randomUUID(), ...claims };
    for (const [name, value] of Object.entries(payload)) if (value === null) delete payload[name];
    const header = { typ: 'JWT', alg: options.alg ?? 'RS256', kid: options.kid ?? key.kid, ...options.header };
    if (header.alg === 'none') return `${encode(header)}.${encode(payload)}.`;
    if (header.alg === 'HS256') { // the old trick: the public key as an HMAC secret
      const input = `${encode(header)}.${encode(payload)}`;
      return `${input}.${createHmac('sha256', await exportSPKI(key.publicKey)).update(input).digest('base64url')}`;
    }
    this.#stranger ??= rsaKeyObject();
    return new SignJWT(payload).setProtectedHeader(header).sign(options.signWith === 'stranger' ? this.#stranger : key.privateKey);
  }

  // The environment that GitHub gives a job with `id-token: write`.
  actionsRequest(claims) {
    const token = randomUUID();
    this.#jobs.set(token, claims);
    return { url: `${this.issuer}/_actions/idtoken?api-version=2.0`, token };
  }

  async #actionsToken(request, url, json) {
    const claims = this.#jobs.get(/^bearer (.*)$/i.exec(request.headers.authorization ?? '')?.[1]);
    if (!claims) return json(401, { message: 'no such job' });
    const audience = url.searchParams.get('audience') ?? `https://github.com/${claims.repository_owner}`;
    return json(200, { count: 1, value: await this.mint({ ...claims, aud: audience }) });
  }

  async #serve(request, response) {
    const url = new URL(request.url, this.issuer);
    const json = (status, value) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (url.pathname === '/.well-known/openid-configuration') return json(200, { issuer: this.issuer, jwks_uri: this.jwksUrl });
    if (url.pathname === '/_oidc/token' && request.method === 'POST') {
      let text = '';
      for await (const part of request) text += part;
      const { claims, options } = JSON.parse(text || '{}');
      return json(200, { token: await this.mint(claims, options) });
    }
    if (url.pathname === '/_actions/idtoken') return this.#actionsToken(request, url, json);
    if (url.pathname !== '/.well-known/jwks') return json(404, { error: 'not here' });
    this.fetches++;
    this.fetchLog.push(Date.now());
    const fault = this.#fault;
    if (fault?.hang) return undefined;
    if (fault?.reset) return request.socket.resetAndDestroy();
    if (fault?.status) return json(fault.status, { error: 'broken' });
    if (fault?.body !== undefined) return response.writeHead(200, { 'content-type': 'application/json' }).end(fault.body);
    return json(200, { keys: this.#keys.slice(this.#hidden ? 1 : 0).map(({ jwk }) => jwk) });
  }
}

export const startIssuer = (options) => Issuer.start(options);

// The claims of GitHub Actions for a workflow in `repository`.
export function githubClaims(repository, { workflow = '.github/workflows/ci.yml', ref = 'refs/heads/main', ...more } = {}) {
  const [owner] = repository.split('/');
  return {
    sub: `repo:${repository}:ref:${ref}`, repository, repository_owner: owner, repository_id: '74', repository_owner_id: '65', ref, ref_type: 'branch',
    sha: '0'.repeat(40), event_name: 'repository_dispatch', workflow: 'ci', workflow_ref: `${repository}/${workflow}@${ref}`,
    job_workflow_ref: `${repository}/${workflow}@${ref}`, run_id: '1', run_number: '1', run_attempt: '1', actor: 'octocat', runner_environment: 'self-hosted', ...more,
  };
}

// The claims of Buildkite for a job of an organization's pipeline.
export function buildkiteClaims({ organization = 'vllm', organizationId, pipeline = 'ci', pipelineId, branch = 'main', ...more }) {
  return {
    sub: `organization:${organization}:pipeline:${pipeline}:ref:refs/heads/${branch}:commit:${'0'.repeat(40)}:step:test`,
    organization_slug: organization, organization_id: organizationId, pipeline_slug: pipeline, pipeline_id: pipelineId,
    build_number: 1, build_branch: branch, build_commit: '0'.repeat(40), step_key: 'test', job_id: randomUUID(), agent_id: randomUUID(), ...more,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { port: { type: 'string' } } });
  const issuer = await startIssuer({ port: Number(values.port ?? 0) });
  console.log(JSON.stringify({ issuer: issuer.issuer, jwks_url: issuer.jwksUrl, token_url: issuer.tokenUrl, pid: process.pid }));
  const stop = () => issuer.close().then(() => process.exit(0));
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.stdin.resume().once('end', stop).once('error', stop);
}
