// App JWTs and installation tokens, as strict as GitHub's (emulate accepts unknown bearer tokens, and its tokens never expire).
import { createHash, createPublicKey } from 'node:crypto';
import { jwtVerify } from 'jose';

export const fingerprint = (token) => createHash('sha256').update(token).digest('hex').slice(0, 12);

const ANY_READ = {};

// The permission of a call: permission → level. One of several permissions is enough. Any valid token may read public data.
const NEEDS = [
  ['POST', /^\/repos\/[^/]+\/[^/]+\/dispatches$/, { contents: 'write' }],
  ['POST', /^\/repos\/[^/]+\/[^/]+\/issues$/, { issues: 'write' }],
  ['PATCH', /^\/repos\/[^/]+\/[^/]+\/issues\/\d+$/, { issues: 'write', pull_requests: 'write' }],
  ['POST', /^\/repos\/[^/]+\/[^/]+\/issues\/\d+\/comments$/, { issues: 'write', pull_requests: 'write' }],
  ['PATCH', /^\/repos\/[^/]+\/[^/]+\/issues\/comments\/\d+$/, { issues: 'write', pull_requests: 'write' }],
  ['DELETE', /^\/repos\/[^/]+\/[^/]+\/issues\/comments\/\d+$/, { issues: 'write', pull_requests: 'write' }],
  ['POST', /^\/repos\/[^/]+\/[^/]+\/issues\/comments\/\d+\/reactions$/, { issues: 'write', pull_requests: 'write' }],
  ['POST', /^\/repos\/[^/]+\/[^/]+\/check-runs$/, { checks: 'write' }],
  ['PATCH', /^\/repos\/[^/]+\/[^/]+\/check-runs\/\d+$/, { checks: 'write' }],
  ['POST', /^\/repos\/[^/]+\/[^/]+\/statuses\/[^/]+$/, { statuses: 'write' }],
  ['POST', /^\/repos\/[^/]+\/[^/]+\/actions\/runs\/\d+\/[a-z-]+$/, { actions: 'write' }],
];

const needs = (method, path) => NEEDS.find(([verb, pattern]) => verb === method && pattern.test(path))?.[2] ?? ANY_READ;

// The App's own calls, which require a JWT. An installation token is not enough.
const wantsJwt = (path) => path === '/app' || path.startsWith('/app/') || /^\/repos\/[^/]+\/[^/]+\/installation$/.test(path);

const refusal = (status, message) => ({ refused: { status, headers: {}, body: JSON.stringify({ message, documentation_url: 'https://docs.github.com/rest' }) } });

export class Gate {
  #app;
  #world;
  #issued = new Map();
  #publicKey;

  constructor({ app, world, tokenTtl }) {
    this.#app = app;
    this.#world = world;
    this.#publicKey = createPublicKey(app.privateKey);
    this.tokenTtl = tokenTtl;
  }

  // Returns {refused} or {kind, token, entry}.
  async admit({ method, path, authorization }) {
    const [, token] = /^(?:Bearer|token) (\S+)$/i.exec(authorization ?? '') ?? [];
    if (!token) return refusal(401, 'Requires authentication');
    return wantsJwt(path) ? this.#jwt(token) : this.#installation(method, path, token);
  }

  async #jwt(token) {
    if (!token.startsWith('eyJ')) return refusal(401, 'A JSON web token could not be decoded');
    let claims;
    try {
      ({ payload: claims } = await jwtVerify(token, this.#publicKey, { algorithms: ['RS256'], clockTolerance: 0, requiredClaims: ['iat', 'exp', 'iss'] }));
    } catch (error) {
      if (error.code === 'ERR_JWT_EXPIRED') return refusal(401, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires");
      return refusal(401, 'A JSON web token could not be decoded');
    }
    const now = Math.floor(Date.now() / 1000);
    if (String(claims.iss) !== String(this.#app.id)) return refusal(401, "'Issuer' claim ('iss') must be an Integer");
    if (claims.exp > now + 600) return refusal(401, "'Expiration time' claim ('exp') is too far in the future");
    if (claims.iat > now + 60) return refusal(401, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued");
    return { kind: 'app', token };
  }

  #installation(method, path, token) {
    const entry = this.#issued.get(token);
    if (!entry || entry.expiresAt <= Date.now()) return refusal(401, 'Bad credentials');
    const [, name] = /^\/repos\/([^/]+\/[^/]+)(?:\/|$)/.exec(path) ?? [];
    const repository = name && this.#world.repository(name);
    if (name && !repository) return refusal(404, 'Not Found');
    const inside = !repository || entry.repositories === 'all' || entry.repositories.includes(repository.id);
    const needed = Object.entries(needs(method, path));
    if (needed.length === 0 ? !inside && repository.private : !inside)
      return repository.private ? refusal(404, 'Not Found') : refusal(403, 'Resource not accessible by integration');
    if (needed.length > 0 && !needed.some(([permission, level]) => entry.permissions[permission] === level || entry.permissions[permission] === 'write'))
      return refusal(403, 'Resource not accessible by integration');
    return { kind: 'installation', token, entry };
  }

  // Records the token that emulate issued, and shortens its lifetime, also in the answer.
  issue(installation, answer, requested) {
    const expiresAt = Math.floor((Date.now() + this.tokenTtl) / 1000) * 1000;
    answer.expires_at = new Date(expiresAt).toISOString().replace('.000Z', 'Z');
    // A token always has a list of repositories, because an installation has.
    const repositories = answer.repositories?.map(({ id }) => id) ?? 'all';
    this.#issued.set(answer.token, { installation, expiresAt, repositories, permissions: answer.permissions, requested });
    return answer;
  }

  tokens() {
    return [...this.#issued].map(([token, { installation, expiresAt, permissions, requested }]) =>
      ({ fingerprint: fingerprint(token), installation, expiresAt, permissions, requested }));
  }

  expireTokens() {
    for (const entry of this.#issued.values()) entry.expiresAt = 0;
  }
}
