// Machines that claim work from the daemon of a stage and report it, and the promise that no lease is held twice: when a machine has
// got a dispatch, an earlier machine's heartbeat no longer renews its lease of it, and no lease is given to two machines. Each job has a
// log, which is kept as it was sent.
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../integration/lib/outpost.mjs';
import { Puller } from '../integration/lib/puller.mjs';
import { Dice } from './story.mjs';

export const LEASE_MS = 5000;
const ANSWERS = [200, 400, 403, 404, 409]; // the other ones are repeated

export const FARM = {
  name: 'farm', title: 'Farm', level: 'L2', vendor: 'A farm', triggers: { pull_request: {}, push: { branches: ['main'] } },
  runners: [{ name: 'farm', pull: { labels: [], max_parallel: 100 } }],
};

export class Farm {
  problems = [];
  leases = new Map(); // id → {machine, dispatch, isReplaced}
  logs = new Map(); // job → its log, when the last piece was confirmed
  #last = new Map(); // dispatch → the newest lease
  #isOver = false;

  // sleepy: the share of leases during which a machine sleeps for longer than the lease lasts.
  static async open(outpost, { machines = 3, seed, sleepy = 0 }) {
    const self = new Farm();
    Object.assign(self, { outpost, dice: new Dice(seed), sleepy });
    self.machines = [];
    for (let i = 0; i < machines; i++)
      self.machines.push(await until(() => Puller.add(outpost, `machine-${i + 1}`, FARM.name), { what: 'a machine is registered' }));
    self.working = self.machines.map((machine) => self.#work(machine));
    return self;
  }

  // Until there is an answer that says something. undefined: the farm is over.
  async #ask(send) {
    for (; !this.#isOver; await sleep(100)) {
      const answer = await send().catch(() => undefined);
      if (answer && ANSWERS.includes(answer.status)) return answer;
      if (answer?.status === 204) return answer;
    }
    return undefined;
  }

  async #work(machine) {
    for (let id = crypto.randomUUID(); !this.#isOver;) {
      const answer = await this.#ask(() => machine.claim({ id, wait: 2, signal: AbortSignal.timeout(60_000) }));
      if (!answer || answer.status === 204) continue;
      id = crypto.randomUUID();
      if (answer.status !== 200) this.problems.push(`a claim of ${machine.name} got ${answer.status} ${answer.text}`);
      else await this.#run(machine, answer.json);
    }
  }

  #note(machine, { lease_id: id, dispatch_id: dispatch }) {
    const known = this.leases.get(id);
    if (known) {
      this.problems.push(`the lease ${id} of ${dispatch} was given to ${known.machine.name} and ${machine.name}`);
      return known;
    }
    const lease = { machine, id, dispatch };
    const before = this.#last.get(dispatch);
    if (before) before.isReplaced = true;
    this.#last.set(dispatch, lease);
    this.leases.set(id, lease);
    return lease;
  }

  // Sends a heartbeat. Returns whether the work goes on.
  async #renew(machine, lease) {
    const wasReplaced = lease.isReplaced; // at the time of sending
    const answer = await this.#ask(() => machine.renew(lease.id, { signal: AbortSignal.timeout(20_000) }));
    const isActive = answer?.status === 200 && answer.json.lease === 'active';
    if (isActive && wasReplaced) this.problems.push(`${lease.dispatch} was given to another machine, and ${machine.name} still holds the lease ${lease.id}`);
    return isActive;
  }

  // In pieces. Returns false if the lease is lost.
  async #sendLog(machine, { job_id: job, dispatch_id: dispatch, attempt }) {
    const text = Array.from({ length: 300 }, (_, i) => `${dispatch} attempt ${attempt} line ${i}\n`).join('');
    for (let offset = 0; offset < text.length;) {
      const end = Math.min(text.length, offset + 5000);
      const answer = await this.#ask(() => machine.ask('PUT', `/api/v1/jobs/${job}/log?offset=${offset}&last=${end === text.length ? 1 : 0}`, text.slice(offset, end), { type: 'text/plain', signal: AbortSignal.timeout(20_000) }));
      if (![200, 409].includes(answer?.status)) return false;
      if (answer.status === 409 && answer.json.bytes === offset) { // it is complete
        this.problems.push(`the log of job ${job} ended by itself after ${offset} bytes`);
        return false;
      }
      offset = answer.json.bytes;
    }
    this.logs.set(job, text);
    return true;
  }

  async checkLogs() {
    for (const [job, text] of this.logs) {
      const answer = await until(async () => {
        const one = await this.outpost.get(`/api/v1/jobs/${job}/log`);
        return one.status !== 503 && one;
      }, { what: `the log of job ${job}` });
      if (answer.text !== text) this.problems.push(`the log of job ${job} has ${answer.text.length} bytes (${answer.status}), and ${text.length} were confirmed`);
    }
  }

  async #run(machine, work) {
    const lease = this.#note(machine, work);
    const sha = work.change.head_sha;
    const isRed = Number.parseInt(sha[8], 16) < 4;
    await sleep(this.dice.chance(this.sleepy) ? LEASE_MS * 1.5 : this.dice.between(20, 200));
    if (!await this.#renew(machine, lease) || !await this.#sendLog(machine, work)) return;
    const tests = [{ suite: 'model', name: 'bert', status: isRed ? 'FAIL' : 'PASS', ...(isRed && { message: 'bert on farm: expected 1, got 2' }) }];
    await this.#ask(() => machine.finish(work, { conclusion: isRed ? 'failure' : 'success', tests, signal: AbortSignal.timeout(20_000) }));
  }

  async close() {
    this.#isOver = true;
    await Promise.all(this.working);
  }
}
