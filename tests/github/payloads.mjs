// Real GitHub payloads: Octokit's 329 examples, and the few events that Outpost acts on, built from them
// with chosen numbers and SHAs. Only the names of repositories change, so sizes and oddities stay as GitHub sent them.
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';

const groups = createRequire(import.meta.url)('@octokit/webhooks-examples');

export const UPSTREAM = 'pytorch/pytorch';
const REPOSITORY_ID = 65_600_975;

export const fakeSha = (text) => createHash('sha1').update(String(text)).digest('hex');

function renameRepository(repository, name) {
  if (!repository?.full_name) return;
  const [owner, repo] = name.split('/');
  repository.full_name = name;
  repository.name = repo;
  if (repository.owner) {
    repository.owner.login = owner;
    if ('name' in repository.owner) repository.owner.name = owner;
  }
}

// Changes the payload's repository to `name` and returns the payload.
export function rename(payload, name = UPSTREAM) {
  renameRepository(payload.repository, name);
  renameRepository(payload.pull_request?.base?.repo, name);
  if (payload.pull_request?.base?.label) payload.pull_request.base.label = `${name.split('/')[0]}:${payload.pull_request.base.ref}`;
  if (payload.organization?.login) payload.organization.login = name.split('/')[0];
  return payload;
}

// All examples: [{event, action, payload}], each a fresh copy. name: null leaves them unchanged.
export function examples({ name = UPSTREAM, events } = {}) {
  return groups
    .filter((group) => !events || events.includes(group.name))
    .flatMap((group) => group.examples.map((example) => {
      const payload = structuredClone(example);
      return { event: group.name, action: payload.action ?? null, payload: name ? rename(payload, name) : payload };
    }));
}

function example(event, action, fits = () => true) {
  const found = groups.find((group) => group.name === event)?.examples
    .find((one) => (action === undefined || one.action === action) && fits(one));
  if (!found) throw new Error(`no example of ${event} ${action ?? ''}`);
  return structuredClone(found);
}

const label = (name) => ({
  id: Number.parseInt(fakeSha(name).slice(0, 8), 16), node_id: 'MDU6TGFiZWwx', url: `https://api.github.com/repos/${UPSTREAM}/labels/${encodeURIComponent(name)}`,
  name, color: 'ededed', default: false, description: '',
});

// A pull_request event. Most tests give number and headSha. Other values stay as in the example.
//   {repository, number, headSha, headRef, headRepository, baseSha, baseRef, title, body, author, association, draft,
//    labels, state, merged, updatedAt, createdAt, before (synchronize), label (labeled, unlabeled),
//    changes (edited; {base: {ref, sha}} is filled up), sender}
export function pullRequest(action, options = {}) {
  const name = options.repository ?? UPSTREAM;
  const payload = rename(example('pull_request', 'opened', (one) => one.pull_request.state === 'open'), name);
  const pull = payload.pull_request;
  const number = options.number ?? payload.number;
  payload.action = action;
  payload.number = number;
  payload.repository.id = REPOSITORY_ID;
  const old = new RegExp(`/${pull.number}(?=/|$)`);
  for (const key of ['url', 'html_url', 'diff_url', 'patch_url', 'issue_url', 'commits_url', 'review_comments_url', 'comments_url'])
    if (pull[key]) pull[key] = pull[key].replace(old, `/${number}`).replace(/\/\d+\.(diff|patch)$/, `/${number}.$1`);
  pull.number = number;
  pull.head.sha = options.headSha ?? fakeSha(`head of ${number}`);
  pull.base.sha = options.baseSha ?? fakeSha('base');
  pull.base.ref = options.baseRef ?? 'main';
  pull.base.label = `${name.split('/')[0]}:${pull.base.ref}`;
  pull.author_association = options.association ?? 'CONTRIBUTOR';
  pull.draft = options.draft ?? false;
  pull.labels = (options.labels ?? []).map(label);
  pull.merged = options.merged ?? false;
  pull.state = options.state ?? (action === 'closed' ? 'closed' : 'open');
  pull.closed_at = pull.state === 'closed' ? new Date().toISOString() : null;
  pull.merged_at = pull.merged ? pull.closed_at : null;
  pull.updated_at = options.updatedAt ?? new Date().toISOString();
  if (options.createdAt) pull.created_at = options.createdAt;
  if (options.headRef) pull.head.ref = options.headRef;
  if (options.headRepository && pull.head.repo) renameRepository(pull.head.repo, options.headRepository);
  if (options.title !== undefined) pull.title = options.title;
  if (options.body !== undefined) pull.body = options.body;
  if (options.author) pull.user.login = options.author;
  if (options.sender ?? options.author) payload.sender.login = options.sender ?? options.author;
  if (action === 'synchronize') {
    payload.before = options.before ?? fakeSha(`before ${pull.head.sha}`);
    payload.after = pull.head.sha;
  }
  if (action === 'labeled' || action === 'unlabeled') {
    payload.label = label(options.label ?? 'ciflow/crcr/test');
    if (action === 'labeled' && !pull.labels.some((one) => one.name === payload.label.name)) pull.labels.push(payload.label);
  }
  if (action === 'edited') {
    const { base, ...others } = options.changes ?? { base: {} };
    payload.changes = { ...others, ...(base && { base: { ref: { from: base.ref ?? 'release/2.9' }, sha: { from: base.sha ?? fakeSha('old base') } } }) };
  }
  return payload;
}

// The same from a pull request of the rig (rig.openPull, rig.updatePull).
export function pullRequestOf(action, pull, options = {}) {
  const { repository, number, headSha, headRef, baseSha, baseRef, title, draft, author, association, labels } = pull;
  return pullRequest(action, { repository, number, headSha, headRef, baseSha, baseRef, title, draft, author, association, labels,
    merged: pull.state === 'merged', ...options });
}

// A push: {repository, ref | branch, before, after, message, deleted, created}
export function push(options = {}) {
  const payload = rename(example('push', undefined, (one) => one.commits.length > 0 && !one.deleted), options.repository ?? UPSTREAM);
  payload.repository.id = REPOSITORY_ID;
  payload.ref = options.ref ?? `refs/heads/${options.branch ?? 'main'}`;
  payload.after = options.after ?? fakeSha(`pushed ${Math.random()}`);
  payload.before = options.before ?? fakeSha('before the push');
  payload.deleted = options.deleted ?? false;
  payload.created = options.created ?? false;
  const commit = payload.head_commit ?? payload.commits[0];
  commit.id = payload.after;
  if (options.message) commit.message = options.message;
  payload.commits = payload.deleted ? [] : [commit];
  payload.head_commit = payload.deleted ? null : commit;
  return payload;
}

// A comment on a pull request: {repository, number, body, author, association, createdAt, id, pullAuthor, bot}
let nextComment = 3_000_000_001; // each comment has a new id

export function issueComment(action, options = {}) {
  const payload = rename(example('issue_comment', 'created'), options.repository ?? UPSTREAM);
  const number = options.number ?? 1;
  payload.action = action;
  payload.repository.id = REPOSITORY_ID;
  payload.issue.number = number;
  payload.issue.state = 'open';
  payload.issue.pull_request = {
    url: `https://api.github.com/repos/${UPSTREAM}/pulls/${number}`, html_url: `https://github.com/${UPSTREAM}/pull/${number}`,
    diff_url: `https://github.com/${UPSTREAM}/pull/${number}.diff`, patch_url: `https://github.com/${UPSTREAM}/pull/${number}.patch`, merged_at: null,
  };
  if (options.pullAuthor) payload.issue.user.login = options.pullAuthor;
  const now = new Date().toISOString();
  Object.assign(payload.comment, {
    id: options.id ?? nextComment++, body: options.body ?? 'hello', author_association: options.association ?? 'MEMBER',
    created_at: options.createdAt ?? now, updated_at: options.createdAt ?? now,
  });
  const author = options.author ?? 'alice';
  payload.comment.user.login = payload.sender.login = author;
  payload.comment.user.type = payload.sender.type = options.bot ? 'Bot' : 'User';
  return payload;
}

// A requested re-run of a check run or suite: {repository, id, name, headSha, externalId, number, appId}
export function checkRerequested(kind, options = {}) {
  const payload = rename(example(kind, kind === 'check_suite' ? undefined : 'rerequested'), options.repository ?? UPSTREAM);
  payload.action = 'rerequested';
  payload.repository.id = REPOSITORY_ID;
  const check = payload[kind];
  if (options.id) check.id = options.id;
  if (options.name) check.name = options.name;
  if (options.headSha) check.head_sha = options.headSha;
  if (options.externalId) check.external_id = options.externalId;
  if (options.appId) check.app.id = options.appId;
  check.pull_requests = options.number ? [{ number: options.number }] : [];
  return payload;
}

export function ping() {
  return example('ping', undefined);
}
