// Plays a world to a daemon in the order of time: webhooks as GitHub sends them, and reports as vendors send them. After each
// event it reads and records Outpost's verdicts of the affected pull requests.
import { until } from '../integration/lib/outpost.mjs';
import { Connection } from './connection.mjs';
import { Project } from './project.mjs';
import { Record } from './record.mjs';
import { settle } from './settle.mjs';
import { Vendors } from './vendors.mjs';
import { DAY, HOUR } from './world.mjs';

const SHORT = 3000; // longer than the second after which a failure makes other changes due

export class Play {
  #events = []; // the last one is the next; events of one time are in the order of their planning
  #due; // the time of the next periodic run

  sent = { webhooks: 0, reports: 0, reads: 0, looks: 0 };
  problems = [];

  // documents(run, job) → {report (Outpost's), log}, the documents that the vendor sends; hasStarts: vendors report the start of
  // a job; isCut: all events stop at the world's end, even if work is running; hasSchedules: periodic runs begin when they are
  // due; isExact: the daemon is idle before each event and each report of a job, so that the history repeats exactly
  constructor({ world, clock, isExact = false, slot = isExact ? 0 : HOUR / 60, say = () => {}, documents = () => ({}), hasStarts = false, isCut = false, hasSchedules = false }) {
    Object.assign(this, { world, clock, isExact, slot, say, documents, hasStarts, isCut, hasSchedules });
    this.project = new Project(this);
    this.vendors = new Vendors(this);
    this.record = new Record(this);
  }

  // The time of the newest event, which the vendors' plans depend on. The clock is a little later.
  now = 0;

  // isLater: time passes between this event and the others with its key
  at(time, key, act, { looksAt, isLater } = {}) {
    let low = 0, high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#events[middle].time > time) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, { time, key, act, looksAt, isLater });
  }

  // The events of the next hours, up to one that depends on an earlier one of them.
  #next() {
    const batch = [], keys = new Set();
    for (let event; (event = this.#events.at(-1)) && (batch.length === 0 || event.time < batch[0].time + this.slot) && !((event.looksAt || event.isLater) && keys.has(event.key));) {
      keys.add(event.key);
      batch.push(this.#events.pop());
    }
    return batch;
  }

  async run({ outpost, github, issuer }) {
    Object.assign(this, { github, issuer });
    this.daemon = new Connection({ url: outpost.url, secret: github.secret, sent: this.sent });
    github.on('dispatch', (repository, body) => this.vendors.dispatched(body.client_payload));
    github.on('comment', (number, body) => this.record.commented(number, body));
    this.project.begin();
    // The first reconciliation records the tip of main as it is before the first push.
    await until(() => github.counts.branches > 0, { what: 'the tip of main is read' });
    await this.#settle(2);
    for (let batch; (batch = this.#next()).length > 0;) {
      if (this.isCut && batch[0].time > this.world.end) break;
      this.say((batch[0].time - this.world.start) / DAY);
      await this.#stop(batch.at(-1).time);
      this.#pass(batch.at(-1).time);
      await this.#settle(2);
      this.record.commentsSettled();
      await Promise.all(batch.filter(({ looksAt }) => looksAt).map(({ looksAt }) => this.record.look(looksAt)));
      await this.#perform(batch);
      await this.#settle(1);
      await this.#pause();
      await this.record.lookAround();
    }
    for (const { number, isOpen } of this.project.byNumber.values()) if (isOpen) this.record.wake(number);
    await this.record.lookAround();
    this.daemon.close();
  }

  // The events of one pull request, or of main, one after the other.
  async #perform(batch) {
    const lines = new Map();
    for (const { key, act } of batch) lines.set(key, (lines.get(key) ?? Promise.resolve()).then(act));
    await Promise.all(lines.values());
  }

  // Calls fn for each: at the same time, or one after the other.
  async each(list, fn) {
    if (!this.isExact) return Promise.all(list.map(fn));
    for (const one of list) {
      await this.#settle(1);
      await fn(one);
    }
    return undefined;
  }

  // Until the comments are written that waited for the pause after the last one.
  async #pause() {
    let before;
    do {
      before = this.github.requests;
      this.clock.advance(SHORT);
      await this.#settle(1);
    } while (this.isExact && this.github.requests > before);
  }

  #settle(expected) { return settle(this, this.isExact ? Math.max(2, expected) : expected, { isExact: this.isExact }); }

  // Until `time` the clock stops at each due time of a periodic run, as a real clock would pass it: the daemon treats a due time
  // that is a minute old as missed.
  async #stop(time) {
    if (!this.hasSchedules) return;
    for (;;) {
      this.#due ??= await this.#nextDue();
      if (this.#due > time) return;
      this.#pass(this.#due);
      await this.#settle(2);
      const next = await this.#nextDue();
      if (next <= this.#due) throw new Error(`the periodic run of ${new Date(this.#due).toISOString()} was not begun`);
      this.#due = next;
    }
  }

  async #nextDue() {
    const { accelerators } = await this.daemon.get('/api/v1/nightly?days=1&limit=1');
    return 1000 + Math.min(...accelerators.map(({ schedule }) => Date.parse(schedule?.next ?? '')).filter(Number.isFinite)); // the API has whole seconds
  }

  // Hours pass, so idle connections will be closed.
  #pass(time) {
    this.now = Math.max(this.now, time);
    if (time <= this.clock.now()) return;
    this.daemon.close();
    this.clock.advanceTo(time);
  }
}
