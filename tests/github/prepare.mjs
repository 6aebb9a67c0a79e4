// Makes what the rig keeps in build/rig/, once, before many test files need it at the same time: GitHub's description, its form
// after Prism has read it, bundled packages, and the RSA keys.
//
// usage: node tests/github/prepare.mjs
import { Description } from './description.mjs';
import { rsaKey } from './keys.mjs';
import { LIBRARIES, library } from './libraries.mjs';

LIBRARIES.forEach(library);
rsaKey();
const description = await Description.open();
// The code of what these requests call is kept compiled (libraries.mjs).
const REQUESTS = [
  ['GET', '/repos/pytorch/pytorch/installation', undefined, 200, {}],
  ['POST', '/app/installations/1/access_tokens', { permissions: { contents: 'read' } }, 201, { token: 't', expires_at: '2026-01-01T00:00:00Z' }],
  ['POST', '/repos/pytorch/pytorch/dispatches', { event_type: 'e', client_payload: {} }, 204],
  ['POST', '/repos/pytorch/pytorch/issues/1/comments', { body: 'text' }, 201, {}],
];
for (const [method, path, body, statusCode, answer] of REQUESTS)
  await description.apply({ method, path, query: {}, headers: { 'content-type': 'application/json', 'user-agent': 'prepare' }, body }, () => ({ statusCode, headers: { 'content-type': 'application/json' }, body: answer }));
