// The stateful GitHub behind the rig: the `emulate` package in this process without a socket.
//
// This module changes emulate's own tables where its API cannot, so that every later read agrees: a pull request with a chosen
// number, head SHA and author association; a new head; a branch tip with a chosen SHA; the list of changed files (emulate invents
// `file1.ts`); times that a test sets; paging beyond its limits. Lanes avoid its limit of 5,000 requests per token. Its outgoing
// webhooks (without GUIDs) are disabled: the rig sends them.
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const REQUESTS_PER_LANE = 4000;

const sha1 = (text) => createHash('sha1').update(text).digest('hex');
const nodeId = (kind, id) => Buffer.from(`0:${kind}${id}`).toString('base64');

// emulate's API hides its store, but its plugin gets it when it registers, so intercept that. It must not listen on a socket,
// because that would be on all addresses.
async function openEmulator(options) {
  const api = fileURLToPath(import.meta.resolve('emulate'));
  const folder = path.dirname(api);
  const source = await fs.readFile(api, 'utf8');
  const chunk = /label: "GitHub REST API[\s\S]*?import\("\.\/(.+?)"\)/.exec(source)?.[1];
  if (!chunk) throw new Error('emulate is not the version that the rig was written for (0.11.2)');
  const { githubPlugin, getGitHubStore } = await import(path.join(folder, chunk));
  const { createEmulator } = await import(api);
  const register = githubPlugin.register;
  const listen = net.Server.prototype.listen;
  const marker = -1;
  let inside;
  githubPlugin.register = function (app, store, webhooks, baseUrl, tokens) {
    inside = { app, tables: getGitHubStore(store), tokens };
    register.call(this, app, store, webhooks, baseUrl, tokens);
    webhooks.dispatch = async () => {};
  };
  net.Server.prototype.listen = function (port, ...rest) {
    return port === marker ? this : listen.call(this, port, ...rest);
  };
  try {
    await createEmulator({ service: 'github', port: marker, ...options });
  } finally {
    githubPlugin.register = register;
    net.Server.prototype.listen = listen;
  }
  return inside;
}

let lastOpened = Promise.resolve();

export class World {
  #app;
  #t;
  #tokens;
  #lanes = new Map();
  #pulls = new Map(); // "owner/repo#n" → the values without a column in emulate's row
  #files = new Map(); // commit SHA → changed paths
  #jwtLane = 0;

  // repositories: [{name: 'owner/repo', private, installed}]
  static async open({ baseUrl, app, repositories, members }) {
    const world = new World();
    const owners = [...new Set(repositories.map(({ name }) => name.split('/')[0]))];
    const logins = [...new Set(members)];
    const open = () => openEmulator({
      baseUrl,
      seed: {
        tokens: {},
        github: {
          users: logins.map((login) => ({ login })),
          orgs: owners.map((login) => ({ login, members: logins.map((member) => ({ login: member })) })),
          repos: repositories.map(({ name, private: hidden }) => ({
            owner: name.split('/')[0], name: name.split('/')[1], private: hidden ?? false,
          })),
          apps: [{
            app_id: app.id, slug: app.slug, name: app.name, private_key: app.privateKey,
            permissions: app.permissions, events: app.events,
            installations: owners
              .map((account, index) => ({
                installation_id: 7001 + index, account, repository_selection: 'selected',
                repositories: repositories.filter(({ name, installed }) =>
                  name.split('/')[0] === account && installed !== false).map(({ name }) => name),
              }))
              .filter((installation) => installation.repositories.length > 0),
          }],
        },
      },
    });
    // One after the other, because each replaces functions of the package for a moment.
    lastOpened = lastOpened.then(open, open);
    const inside = await lastOpened;
    world.#app = inside.app;
    world.#t = inside.tables;
    world.#tokens = inside.tokens;
    world.baseUrl = baseUrl;
    return world;
  }

  // Passes a request to emulate. Returns {status, headers, body}; body is text.
  async request({ method, target, headers, body, token }) {
    const sent = new Headers();
    for (const name of ['accept', 'content-type', 'authorization'])
      if (headers[name]) sent.set(name, headers[name]);
    if (token) sent.set('authorization', `Bearer ${this.#lane(token)}`);
    const answer = await this.#app.fetch(new Request(this.baseUrl + target, {
      method, headers: sent, body: method === 'GET' || method === 'HEAD' ? undefined : body,
    }));
    const text = await answer.text();
    return {
      status: answer.status,
      headers: Object.fromEntries([...answer.headers].filter(([name]) => name === 'link' || name === 'content-type')),
      body: this.#amend(target, text),
    };
  }

  #lane(token) {
    const lane = this.#lanes.get(token) ?? { used: 0, name: token };
    if (lane.used === REQUESTS_PER_LANE) {
      if (lane.name !== token) this.#tokens.delete(lane.name);
      lane.name = `${token}.${++this.#jwtLane}`;
      lane.used = 0;
      this.#tokens.set(lane.name, this.#tokens.get(token));
    }
    lane.used++;
    this.#lanes.set(token, lane);
    return lane.name;
  }

  forgetToken(token) {
    this.#tokens.delete(token);
  }

  repository(name) {
    const lower = name.toLowerCase();
    return this.#t.repos.all().find((row) => row.full_name.toLowerCase() === lower);
  }

  installationOf(name) {
    const row = this.repository(name);
    return row && this.#t.appInstallations.all().find((one) => one.repository_ids.includes(row.id));
  }

  repositoryById(id) {
    return this.#t.repos.get(id);
  }

  setInstalled(name, installed) {
    const row = this.repository(name);
    const owner = this.#t.appInstallations.all().find((one) => one.account_id === row.owner_id);
    if (!owner) throw new Error(`${name.split('/')[0]} has no installation`);
    const ids = owner.repository_ids.filter((id) => id !== row.id);
    this.#t.appInstallations.update(owner.id, { repository_ids: installed ? [...ids, row.id] : ids });
  }

  #user(login, type = 'User') {
    const found = this.#t.users.findOneBy('login', login);
    if (found) return found;
    const row = this.#t.users.insert({
      login, node_id: '', avatar_url: '', gravatar_id: '', type, site_admin: false, name: login,
      company: null, blog: '', location: null, email: null, hireable: null, bio: null,
      twitter_username: null, public_repos: 0, public_gists: 0, followers: 0, following: 0,
    });
    return this.#t.users.update(row.id, { node_id: nodeId('User', row.id) });
  }

  // A person or bot as the API shows it.
  user(login, type) {
    const { id, node_id } = this.#user(login, type);
    const url = `${this.baseUrl}/users/${encodeURIComponent(login)}`;
    return {
      login, id, node_id, avatar_url: `${this.baseUrl}/avatars/u/${id}`, gravatar_id: '', url, html_url: `${this.baseUrl}/${encodeURIComponent(login)}`,
      followers_url: `${url}/followers`, following_url: `${url}/following{/other_user}`, gists_url: `${url}/gists{/gist_id}`,
      starred_url: `${url}/starred{/owner}{/repo}`, subscriptions_url: `${url}/subscriptions`, organizations_url: `${url}/orgs`,
      repos_url: `${url}/repos`, events_url: `${url}/events{/privacy}`, received_events_url: `${url}/received_events`, type, site_admin: false,
    };
  }

  #commit(repo, { sha, parents, files, message, author }) {
    if (this.#t.commits.findBy('repo_id', repo.id).some((row) => row.sha === sha)) return;
    const parent = this.#t.commits.findBy('repo_id', repo.id).find((row) => row.sha === parents[0]);
    const base = parent && this.#t.trees.findBy('repo_id', repo.id).find((row) => row.sha === parent.tree_sha);
    const entries = new Map((base?.tree ?? []).map((entry) => [entry.path, entry]));
    for (const file of files) {
      const content = `${file} as of ${sha}\n`;
      const blob = sha1(`blob ${content.length}\0${content}`);
      this.#t.blobs.insert({ repo_id: repo.id, sha: blob, node_id: `B_${blob}`, content, encoding: 'utf-8', size: content.length });
      entries.set(file, { path: file, mode: '100644', type: 'blob', sha: blob, size: content.length });
    }
    const tree = files.length ? sha1(`tree of ${sha}`) : base?.sha ?? sha1('tree of nothing');
    if (tree !== base?.sha)
      this.#t.trees.insert({ repo_id: repo.id, sha: tree, node_id: `T_${tree}`, tree: [...entries.values()], truncated: false });
    const now = new Date().toISOString();
    const row = this.#t.commits.insert({
      repo_id: repo.id, sha, node_id: '', message, tree_sha: tree, parent_shas: parents,
      author_name: author, author_email: `${author}@example.org`, author_date: now,
      committer_name: author, committer_email: `${author}@example.org`, committer_date: now, user_id: null,
    });
    this.#t.commits.update(row.id, { node_id: nodeId('Commit', row.id) });
    this.#files.set(sha, files);
  }

  #point(repo, branch, sha) {
    const ref = this.#t.refs.findBy('repo_id', repo.id).find((row) => row.ref === `refs/heads/${branch}`);
    if (ref) this.#t.refs.update(ref.id, { sha });
    else this.#t.refs.insert({ repo_id: repo.id, ref: `refs/heads/${branch}`, sha, node_id: `R_${branch}` });
    const row = this.#t.branches.findBy('repo_id', repo.id).find((one) => one.name === branch);
    if (row) this.#t.branches.update(row.id, { sha });
    else this.#t.branches.insert({ repo_id: repo.id, name: branch, sha, protected: false });
  }

  branchTip(name, branch = 'main') {
    return this.#t.branches.findBy('repo_id', this.repository(name).id).find((row) => row.name === branch)?.sha;
  }

  // Adds a commit to a branch, with a random SHA by default. Returns the new tip.
  push(name, { branch = 'main', sha, files = ['README.md'], message = 'A change', author = 'octocat' } = {}) {
    const repo = this.repository(name);
    const before = this.branchTip(name, branch) ?? this.branchTip(name, repo.default_branch);
    const after = sha ?? sha1(`${name} ${branch} ${before} ${Math.random()}`);
    this.#commit(repo, { sha: after, parents: before ? [before] : [], files, message, author });
    this.#point(repo, branch, after);
    return after;
  }

  openPull(name, { number, headSha, headRef, baseRef = 'main', baseSha, title = 'A change', body = null, author = 'octocat',
    association = 'CONTRIBUTOR', draft = false, labels = [], files = ['torch/csrc/Module.cpp'], updatedAt } = {}) {
    const repo = this.repository(name);
    const pulls = this.#t.pullRequests.findBy('repo_id', repo.id);
    const n = number ?? Math.max(0, ...pulls.map((row) => row.number), ...this.#t.issues.findBy('repo_id', repo.id).map((row) => row.number)) + 1;
    if (pulls.some((row) => row.number === n)) throw new Error(`${name}#${n} is there already`);
    if (baseSha) {
      this.#commit(repo, { sha: baseSha, parents: [this.branchTip(name, baseRef)], files: [], message: 'The base', author: 'octocat' });
      this.#point(repo, baseRef, baseSha);
    }
    const base = this.branchTip(name, baseRef);
    const head = headSha ?? sha1(`${name} ${n} ${Math.random()}`);
    const ref = headRef ?? `change-${n}`;
    const user = this.#user(author);
    this.#commit(repo, { sha: head, parents: [base], files, message: title, author });
    this.#point(repo, ref, head);
    const common = {
      node_id: '', number: n, repo_id: repo.id, title, body, state: 'open', locked: false, user_id: user.id,
      assignee_ids: [], label_ids: labels.map((label) => this.#label(repo, label)), milestone_id: null, comments: 0, closed_at: null,
    };
    const issue = this.#t.issues.insert({ ...common, state_reason: null, active_lock_reason: null, closed_by_id: null, is_pull_request: true });
    this.#t.issues.update(issue.id, { node_id: nodeId('Issue', issue.id) });
    const row = this.#t.pullRequests.insert({
      ...common, head_ref: ref, head_sha: head, head_repo_id: repo.id, base_ref: baseRef, base_sha: base, base_repo_id: repo.id,
      merged: false, merged_at: null, merged_by_id: null, merge_commit_sha: null, mergeable: true, mergeable_state: 'clean',
      review_comments: 0, commits: 1, additions: files.length, deletions: 0, changed_files: files.length, draft,
      requested_reviewer_ids: [], requested_team_ids: [], auto_merge: null,
    });
    this.#t.pullRequests.update(row.id, { node_id: nodeId('PullRequest', row.id) });
    this.#pulls.set(`${repo.full_name}#${n}`, { author_association: association, ...(updatedAt && { updated_at: updatedAt }) });
    return this.pull(name, n);
  }

  #label(repo, label) {
    const found = this.#t.labels.findBy('repo_id', repo.id).find((row) => row.name === label);
    if (found) return found.id;
    const row = this.#t.labels.insert({ node_id: '', repo_id: repo.id, name: label, description: null, color: 'ededed', default: false });
    this.#t.labels.update(row.id, { node_id: nodeId('Label', row.id) });
    return row.id;
  }

  #pullRow(name, number) {
    const repo = this.repository(name);
    const row = this.#t.pullRequests.findBy('repo_id', repo.id).find((one) => one.number === number);
    if (!row) throw new Error(`${name}#${number} is not there`);
    return { repo, row };
  }

  // changes: any of headSha, baseRef, baseSha, state (open, closed, merged), draft, labels, title,
  // association, updatedAt, files (of the new head).
  updatePull(name, number, changes) {
    const { repo, row } = this.#pullRow(name, number);
    const extra = this.#pulls.get(`${repo.full_name}#${number}`);
    const set = {};
    if (changes.headSha) {
      const files = changes.files ?? this.#files.get(row.head_sha) ?? [];
      this.#commit(repo, { sha: changes.headSha, parents: [row.base_sha], files, message: row.title, author: 'octocat' });
      this.#point(repo, row.head_ref, changes.headSha);
      Object.assign(set, { head_sha: changes.headSha, changed_files: files.length });
    }
    if (changes.baseRef) set.base_ref = changes.baseRef;
    if (changes.baseSha) {
      this.#commit(repo, { sha: changes.baseSha, parents: [], files: [], message: 'The base', author: 'octocat' });
      set.base_sha = changes.baseSha;
    }
    if (changes.state) {
      const now = new Date().toISOString();
      const merged = changes.state === 'merged';
      Object.assign(set, { state: changes.state === 'open' ? 'open' : 'closed', merged, merged_at: merged ? now : null,
        closed_at: changes.state === 'open' ? null : now });
    }
    if (changes.draft !== undefined) set.draft = changes.draft;
    if (changes.title) set.title = changes.title;
    if (changes.labels) set.label_ids = changes.labels.map((label) => this.#label(repo, label));
    this.#t.pullRequests.update(row.id, set);
    if (changes.association) extra.author_association = changes.association;
    if (changes.updatedAt) extra.updated_at = changes.updatedAt;
    return this.pull(name, number);
  }

  pull(name, number) {
    const { repo, row } = this.#pullRow(name, number);
    const extra = this.#pulls.get(`${repo.full_name}#${number}`);
    return {
      repository: repo.full_name, number, title: row.title, state: row.merged ? 'merged' : row.state, draft: row.draft,
      headSha: row.head_sha, headRef: row.head_ref, baseSha: row.base_sha, baseRef: row.base_ref,
      author: this.#t.users.get(row.user_id).login, association: extra?.author_association,
      labels: row.label_ids.map((id) => this.#t.labels.get(id).name), files: this.#files.get(row.head_sha) ?? [],
    };
  }

  pullFiles(name, number) {
    const { repo, row } = this.#pullRow(name, number);
    return (this.#files.get(row.head_sha) ?? []).map((filename) => ({
      sha: sha1(`${filename} ${row.head_sha}`), filename, status: 'modified', additions: 1, deletions: 0, changes: 1,
      blob_url: `${this.baseUrl}/${repo.full_name}/blob/${row.head_sha}/${filename}`,
      raw_url: `${this.baseUrl}/${repo.full_name}/raw/${row.head_sha}/${filename}`,
      contents_url: `${this.baseUrl}/repos/${repo.full_name}/contents/${filename}?ref=${row.head_sha}`,
    }));
  }

  // Adds a comment by a person. The daemon's own comments arrive through the API.
  comment(name, number, { body, author = 'octocat', type = 'User' }) {
    const repo = this.repository(name);
    const row = this.#t.comments.insert({
      node_id: '', repo_id: repo.id, issue_number: number, pull_number: null, commit_sha: null, body,
      user_id: this.#user(author, type).id, in_reply_to_id: null, path: null, position: null, line: null, side: null,
      subject_type: null, comment_type: 'issue', review_id: null,
    });
    this.#t.comments.update(row.id, { node_id: nodeId('IssueComment', row.id) });
    return row.id;
  }

  comments(name, number) {
    const repo = this.repository(name);
    return this.#t.comments.findBy('repo_id', repo.id)
      .filter((row) => row.comment_type === 'issue' && row.issue_number === number)
      .map((row) => ({ id: row.id, author: this.#t.users.get(row.user_id)?.login, body: row.body,
        createdAt: row.created_at, updatedAt: row.updated_at }));
  }

  issues(name) {
    const repo = this.repository(name);
    return this.#t.issues.findBy('repo_id', repo.id).filter((row) => !row.is_pull_request)
      .map((row) => ({ number: row.number, author: this.#t.users.get(row.user_id)?.login, title: row.title, body: row.body, state: row.state, stateReason: row.state_reason }));
  }

  checkRuns(name, sha) {
    const repo = this.repository(name);
    return this.#t.checkRuns.findBy('repo_id', repo.id).filter((row) => !sha || row.head_sha === sha)
      .map(({ id, name: title, head_sha: headSha, status, conclusion, external_id: externalId, details_url: detailsUrl, output }) =>
        ({ id, name: title, headSha, status, conclusion, externalId, detailsUrl, output }));
  }

  annotations(id) { return this.#t.checkRuns.get(id)?.output.annotations ?? []; }

  // GitHub adds to a check run's annotations with each update; emulate replaces them.
  keepAnnotations(id, before, added = []) {
    const { output } = this.#t.checkRuns.get(id);
    const annotations = [...before, ...added];
    this.#t.checkRuns.update(id, { output: { ...output, annotations, annotations_count: annotations.length } });
  }

  // Adds the values without a column in emulate's rows to its answers.
  #amend(target, text) {
    const match = /^\/repos\/([^/]+\/[^/]+)\/pulls(?:\/(\d+))?(?:\?|$)/.exec(target);
    if (!match) return text;
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      return text;
    }
    for (const pull of Array.isArray(value) ? value : [value])
      if (pull?.base?.repo) Object.assign(pull, this.#pulls.get(`${pull.base.repo.full_name}#${pull.number}`));
    return JSON.stringify(value);
  }
}
