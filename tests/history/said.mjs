// The truth of each red cell as far as it was reported, and all that Outpost ever said of it.
import { sameness } from './messages.mjs';

export class Said {
  #play;
  #toLook = new Set();
  #results = new Map(); // "SHA accelerator suite/test" → what its last report said, with the truth

  failures = new Map(); // "accelerator/test" → [{at, same, author, files, sha, isPull}]
  passes = new Map(); // "SHA accelerator/test" → [at]
  tested = new Map(); // accelerator → [{index, at, reds: Map, others: Set}] of main
  cells = new Map(); // "SHA accelerator suite/test" → {head, pull, result, said: [{at, said, truth, reason, evidence}]}

  constructor(play) {
    this.#play = play;
    for (const { name } of play.world.accelerators) this.tested.set(name, []);
  }

  // ---- the truth ----

  note({ accelerator: { name }, head }, tests, at) {
    const reds = new Map(), others = new Set();
    for (const result of tests) {
      const test = `${result.suite}/${result.name}`;
      this.#results.set(`${head.sha} ${name} ${test}`, result);
      if (result.truth) {
        reds.set(test, result);
        this.#append(this.failures, `${name} ${test}`, { at, same: sameness(result), author: head.author, files: head.files, sha: head.sha, truth: result.truth });
      } else if (result.status === 'PASS') this.#append(this.passes, `${head.sha} ${name} ${test}`, at);
      else others.add(test);
    }
    if (head.isMain) this.tested.get(name).push({ index: head.base.index, at, reds, others });
  }

  #append(map, key, value) {
    const list = map.get(key);
    if (list) list.push(value);
    else map.set(key, [value]);
  }

  // ---- what Outpost says ----

  // Of this pull request there is something new.
  wake(number) { this.#toLook.add(number); }

  async lookAround() {
    const numbers = [...this.#toLook];
    this.#toLook.clear();
    await Promise.all(numbers.map((number) => this.look(this.#play.project.byNumber.get(number))));
  }

  async look(pull) {
    this.#play.sent.looks++;
    const said = await this.#play.daemon.get(`/api/v1/pulls/${pull.number}`);
    if (said.head_sha !== pull.head.sha) {
      this.#play.problems.push(`#${pull.number}: shows ${said.head_sha}, its head is ${pull.head.sha}`);
      return;
    }
    const at = this.#play.clock.now();
    for (const verdict of said.verdicts) this.#hear(pull, verdict, at);
  }

  #hear(pull, verdict, at) {
    const test = `${verdict.suite}/${verdict.test}`;
    const key = `${pull.head.sha} ${verdict.accelerator} ${test}`;
    const result = this.#results.get(key) ?? (verdict.suite === 'dispatch' && { truth: 'outage', status: 'MISS' });
    if (!result || (verdict.suite !== 'dispatch' && result.status !== verdict.status)) {
      this.#play.problems.push(`#${pull.number} ${verdict.accelerator} ${test}: shows ${verdict.status}, reported was ${result?.status ?? 'nothing'}`);
      return;
    }
    if (!verdict.attribution) {
      this.cells.delete(key); // green in a later attempt
      return;
    }
    const cell = this.cells.get(key) ?? { pull, head: pull.head, accelerator: verdict.accelerator, test, said: [] };
    Object.assign(cell, { result, at, job: verdict.job });
    this.cells.set(key, cell);
    const last = cell.said.at(-1);
    if (last?.said !== verdict.attribution || last.truth !== result.truth)
      cell.said.push({ at, said: verdict.attribution, truth: result.truth, reason: verdict.reason, evidence: verdict.evidence_url });
  }
}
