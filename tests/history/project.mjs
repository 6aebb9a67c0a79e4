// Main and the pull requests as the world planned them: GitHub's webhooks about them and its answers (github.mjs).
import { createHash } from 'node:crypto';
import { pullRequest, push as pushPayload } from '../github/payloads.mjs';
import { DAY, HOUR, RELEASE } from './world.mjs';

const sha1 = (text) => createHash('sha1').update(text).digest('hex');
const seconds = (ms) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

export class Project {
  #play;
  #nextNumber = 1;

  heads = new Map(); // SHA → head, of pull requests and of main
  byNumber = new Map(); // → pull request

  constructor(play) {
    this.#play = play;
    this.world = play.world;
    this.#know(this.world.tip);
  }

  begin() {
    for (const push of [...this.world.pushes, ...this.world.releasePushes]) this.#play.at(push.at, push.branch ?? 'main', () => this.push(push));
    this.world.pulls.forEach((plan, i) => this.#play.at(plan.at, `plan ${i}`, () => this.open(plan)));
  }

  // ---- GitHub's answers ----

  mergeBase(base, sha) {
    const head = this.heads.get(sha);
    if (!head || head.pull?.isUnknown) return null;
    return { sha: head.base.sha, ms: head.base.at };
  }

  files(number) { return this.byNumber.get(number)?.files; }
  commitFiles(sha) { return this.heads.get(sha)?.files; }
  tip(branch) { return this.world.tipOf(branch)?.sha; }
  pulls() {
    return [...this.byNumber.values()].filter(({ isOpen }) => isOpen).map((pull) => this.#payload('opened', pull, pull.updatedAt).pull_request);
  }

  // ---- main ----

  async push({ branch = 'main', at, commits, breaks, fixes, picks }) {
    const before = this.world.tipOf(branch) ?? this.world.tip;
    if (picks !== undefined) ({ breaks, fixes } = this.#picked(before, picks));
    const landed = commits.map((commit, i) => {
      const isLast = i === commits.length - 1;
      return this.world.land({ ...commit, branch, at, breaks: isLast ? breaks : [], fixes: isLast ? fixes : [] });
    });
    for (const commit of landed) this.#know(commit);
    const payload = pushPayload({ branch, before: before.sha, after: landed.at(-1).sha });
    payload.commits = landed.map(({ sha, author, files, title }) => ({
      ...payload.commits[0], id: sha, message: `${title}\n\nmore`, timestamp: seconds(at), author: this.#signature(author),
      committer: { name: 'GitHub', username: 'web-flow', email: 'noreply@github.com' }, added: [], removed: [], modified: files,
    }));
    payload.head_commit = payload.commits.at(-1);
    payload.repository.pushed_at = Math.floor(at / 1000);
    await this.#play.daemon.deliver('push', payload);
  }

  // Some commits name a person without a login.
  #signature(author) {
    return this.world.unlinked.has(author) ? { name: `Dev ${author.replace('author-', '')}`, email: 'b@example.com' } : { name: author, username: author, email: 'a@example.com' };
  }

  // A cherry-pick brings a breakage or a fix of main, or neither. draw: 0 to 1
  #picked({ broken }, draw) {
    const missing = this.world.tip.broken.filter((one) => !broken.includes(one)), left = broken.filter((one) => !this.world.tip.broken.includes(one));
    return { breaks: draw < 0.1 ? missing.slice(0, 1) : [], fixes: draw > 0.6 ? left : [] };
  }

  #know(commit) {
    this.heads.set(commit.sha, { sha: commit.sha, base: commit, breaks: [], author: commit.author, files: commit.files, isMain: true });
  }

  // ---- pull requests ----

  #payload(action, pull, at, more = {}) {
    return pullRequest(action, {
      number: pull.number, headSha: pull.head.sha, baseSha: this.world.tipOf(pull.to).sha, baseRef: pull.to, author: pull.author, title: pull.title,
      association: 'CONTRIBUTOR', updatedAt: seconds(at), createdAt: seconds(pull.at), ...more,
    });
  }

  #baseOf(dice, branch) {
    const list = this.world.branches.get(branch);
    const age = dice.chance(0.75) ? dice.below(8) : dice.below(40);
    return list[Math.max(0, list.length - 1 - age)];
  }

  // A breakage that main had and fixed in the last days. → {breakage, commit}
  #fixedOnMain(dice, at) {
    const found = this.world.main.flatMap((commit) => (at - commit.at < 10 * DAY ? commit.fixes ?? [] : []).filter((one) => !this.world.tip.broken.includes(one)).map((breakage) => ({ breakage, commit })));
    return found.length > 0 ? dice.pick(found) : undefined;
  }

  // Another pull request to stack on or to try again.
  #other(dice, fits) {
    const found = [...this.byNumber.values()].filter(fits);
    return found.length > 0 ? dice.pick(found) : undefined;
  }

  open({ kind, at, from }) {
    const { world } = this;
    const number = this.#nextNumber++;
    const dice = world.dice('pull', number);
    const isRecent = (one) => one.breaks.length > 0 && at - one.at < 4 * DAY;
    const fits = { stacked: (one) => isRecent(one) && one.isOpen, sibling: (one) => isRecent(one) && one.mistakes.length > 0, 'same limit': (one) => isRecent(one) && one.mistakes.length > 0 }[kind];
    const parent = from ?? (fits && this.#other(dice, fits));
    const fixed = kind === 'reverts a fix' ? this.#fixedOnMain(dice, at) : undefined;
    const needsOther = ['stacked', 'sibling', 'same limit', 'reverts a fix'].includes(kind);
    const to = parent?.to ?? (['harmless', 'real'].includes(kind) && world.branches.has(RELEASE) && dice.chance(0.14) ? RELEASE : 'main');
    const pull = {
      number, kind: parent || fixed || !needsOther ? kind : 'real', at, parent, dice, isOpen: true, author: dice.pick(world.authors), to,
      title: world.title(dice), files: world.someFiles(dice), breaks: [], mistakes: [], base: this.#baseOf(dice, to), round: 0, isUnknown: dice.chance(0.01),
    };
    if (parent && (kind === 'sibling' || (kind !== 'same limit' && dice.chance(kind === 'reland' ? 0.8 : 0.75)))) pull.author = parent.author;
    if (kind === 'stacked' && parent) Object.assign(pull, { base: parent.base, files: [...parent.files, ...pull.files], breaks: [...parent.breaks] });
    if (kind === 'sibling' && parent) Object.assign(pull, { breaks: [...parent.mistakes], files: [parent.files[0], ...pull.files] }); // the same mistake is in the same file
    if (kind === 'same limit' && parent) pull.breaks.push(...parent.mistakes.map((one) => ({ ...one }))); // two independent authors
    if (kind === 'reland') Object.assign(pull, { files: parent.files, base: world.tipOf(to), breaks: dice.chance(0.6) ? parent.landed : [] });
    if (fixed) Object.assign(pull, { base: world.tip, breaks: [fixed.breakage], files: dice.chance(0.6) ? fixed.commit.files : pull.files });
    if (kind === 'unsettles') pull.unsettled = world.unsettled(dice);
    if (['real', 'lands broken'].includes(pull.kind) || (pull.kind === 'stacked' && dice.chance(0.4)))
      pull.mistakes.push(world.breakage(dice, { vague: 0.3 }));
    pull.breaks.push(...pull.mistakes);
    this.byNumber.set(number, pull);
    this.#plan(pull);
    return this.#newHead(pull, 'opened', at);
  }

  #plan(pull) {
    const { dice } = pull;
    let time = pull.at;
    for (let n = dice.below(3); n > 0; n--) {
      time += (2 + dice.number() * 40) * HOUR;
      this.#play.at(time, pull.number, this.#update.bind(this, pull, time), { looksAt: pull });
    }
    const end = time + (8 + dice.number() ** 2 * 200) * HOUR;
    this.#play.at(end, pull.number, this.#close.bind(this, pull, end), { looksAt: pull });
  }

  #newHead(pull, action, at) {
    const before = pull.head?.sha;
    pull.head = {
      sha: sha1(`${this.world.seed} pull ${pull.number} ${++pull.round}`), base: pull.base, breaks: pull.breaks, author: pull.author, files: pull.files, unsettled: pull.unsettled, pull, at, isPull: true,
    };
    pull.updatedAt = at;
    this.heads.set(pull.head.sha, pull.head);
    return this.#play.daemon.deliver('pull_request', this.#payload(action, pull, at, { before }));
  }

  #update(pull, at) {
    const { dice } = pull;
    if (dice.chance(0.5)) pull.base = this.#baseOf(dice, pull.to);
    if (pull.kind !== 'lands broken' && dice.chance(0.35)) pull.breaks = [];
    return this.#newHead(pull, 'synchronize', at);
  }

  // Merges it unless it is red. Some are merged although they are red, then reverted and tried again.
  async #close(pull, at) {
    const isMerged = (pull.breaks.length === 0 && !pull.unsettled) || pull.kind === 'lands broken';
    pull.isOpen = false;
    pull.updatedAt = at;
    await this.#play.daemon.deliver('pull_request', this.#payload('closed', pull, at, { merged: isMerged }));
    if (!isMerged) return;
    const { dice, author, files, title, to } = pull;
    const breaks = pull.breaks.filter((one) => !this.world.tipOf(to).broken.includes(one));
    pull.landed = breaks;
    this.#play.at(at + 60_000, to, () => this.push({ branch: to, at: at + 60_000, commits: [{ author, files, title }], breaks, fixes: [] }));
    if (breaks.length === 0) return;
    const reverted = at + (2 + dice.number() * 30) * HOUR, again = reverted + (1 + dice.number() ** 2 * 90) * HOUR;
    if (again > this.world.end) return;
    this.#play.at(reverted, to, () => this.push({ branch: to, at: reverted, commits: [{ author: dice.pick(this.world.authors), files, title: `Revert "${title}"` }], breaks: [], fixes: breaks }));
    this.#play.at(again, `again ${pull.number}`, () => this.open({ kind: 'reland', at: again, from: pull }));
  }
}
