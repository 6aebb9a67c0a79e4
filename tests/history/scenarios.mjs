// Plays the named scenarios (scenarios/*.txt), each to its own daemon, with vendors that run experiments and with vendors that do
// not.
//
//   node tests/history/scenarios.mjs [--mode with|without] [--at-once 3] [--folder scenarios] [PART OF A NAME…]
//
// Exits with 1 if a verdict is forbidden or an expected one is missing.
import { once } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startIssuer } from '../github/oidc.mjs';
import { Clock } from './clock.mjs';
import { Github } from './github.mjs';
import { Stage } from './stage.mjs';
import { readStories } from './story.mjs';

const FOLDER = path.join(path.dirname(fileURLToPath(import.meta.url)), 'scenarios');
const START = Date.UTC(2026, 0, 5);
const WORK = ['pull_request', 'push', 'experiment']; // the events that start a run
export const MODES = ['with', 'without'];

export const stories = (folder = FOLDER) => readStories(folder);

// The vendors' own CI systems of all scenarios: http://127.0.0.1:PORT/SCENARIO/ACCELERATOR.
class Vendors {
  #stages = new Map();
  #next = 1;

  static async start() {
    const self = new Vendors();
    self.server = http.createServer((request, response) => {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      request.on('end', () => {
        const [, id, name] = request.url.split('/');
        if (WORK.includes(request.headers['x-outpost-event'])) self.#stages.get(id)?.dispatched(JSON.parse(Buffer.concat(parts).toString('utf8')), name);
        response.writeHead(202, { 'content-length': 0 }).end();
      });
    }).listen(0, '127.0.0.1');
    await once(self.server, 'listening');
    return self;
  }

  // The addresses of this scenario's accelerators.
  urlOf = (stage, name) => {
    stage.vendorId ??= String(this.#next++);
    this.#stages.set(stage.vendorId, stage);
    return `http://127.0.0.1:${this.server.address().port}/${stage.vendorId}/${name}`;
  };

  async close() {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }
}

export class Theatre {
  static async open() {
    const self = new Theatre();
    [self.issuer, self.vendors] = await Promise.all([startIssuer(), Vendors.start()]);
    return self;
  }

  close() { return Promise.all([this.issuer.close(), this.vendors.close()]); }

  // → {problems: [text], experiments}
  async play(story, mode) {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-scenario-'));
    const clock = new Clock(folder, START);
    clock.logFile = path.join(folder, 'log');
    let stage;
    const github = await Github.start({
      mergeBase: (base, sha) => stage.mergeBase(base, sha), files: (number) => stage.filesOf(number), commitFiles: (sha) => stage.filesAt(sha),
      tip: (branch) => stage.tip(branch), pulls: () => stage.openPulls(),
    });
    try {
      stage = new Stage(story, { isExperimenting: mode === 'with', clock, github, issuer: this.issuer, vendorUrl: this.vendors.urlOf });
      github.on('dispatch', (repository, body) => stage.dispatched(body.client_payload, repository.split('/')[1]));
      github.on('comment', (number, body) => stage.commented(number, body));
      return await stage.run();
    } finally {
      await github.close();
      clock.close();
      if (!process.env.KEEP) await fs.rm(folder, { recursive: true, force: true });
    }
  }
}

// Each story in one of the two modes, in turn; `first` is the mode of the first story.
export const halfOf = (list, first) => list.map((story, i) => ({ story, mode: MODES[(MODES.indexOf(first) + i) % MODES.length] }));

// Plays each {story, mode}; calls done({story, mode, problems, seconds}) as they end.
export async function playAll(plays, atOnce, done) {
  const theatre = await Theatre.open();
  const left = [...plays];
  const player = async () => {
    for (let next; (next = left.shift());) {
      const began = performance.now();
      let problems;
      try {
        ({ problems } = await theatre.play(next.story, next.mode));
      } catch (error) {
        problems = [error.stack];
      }
      done({ ...next, problems, seconds: (performance.now() - began) / 1000 });
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, player));
  } finally {
    await theatre.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { mode: { type: 'string' }, 'at-once': { type: 'string', default: '3' }, folder: { type: 'string' } } });
  const chosen = stories(values.folder).filter(({ name, file }) => positionals.length === 0 || positionals.some((part) => `${file} ${name}`.includes(part)));
  const tally = new Map();
  const modes = values.mode ? [values.mode] : MODES;
  await playAll(chosen.flatMap((story) => modes.map((mode) => ({ story, mode }))), Number(values['at-once']), ({ story, mode, problems, seconds }) => {
    const [ok, all] = tally.get(mode) ?? [0, 0];
    tally.set(mode, [ok + (problems.length === 0), all + 1]);
    console.log(`${problems.length === 0 ? 'ok   ' : 'WRONG'} ${mode.padEnd(7)} ${seconds.toFixed(1).padStart(5)} s  ${story.file.replace(/^scenarios\//, '')}: ${story.name}`);
    for (const problem of problems) console.log(`        ${problem}`);
  });
  for (const [mode, [ok, all]] of tally) console.log(`${mode} experiments: ${ok} of ${all} scenarios hold`);
  process.exitCode = [...tally.values()].every(([ok, all]) => ok === all) ? 0 : 1;
}
