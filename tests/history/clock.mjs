// Time as the daemon sees it: both of its clocks run ahead of ours by what stands in a file (clock.c), so hours pass
// in one write, and whatever waits for them (deadlines, budgets, pauses) is due as if they had.
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, writeSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = path.join(path.dirname(fileURLToPath(import.meta.url)), 'clock.c');

export class Clock {
  #file;
  #wall; // ms ahead
  #mono = 0;

  constructor(folder, startMs) {
    const library = path.join(folder, 'clock.so'), file = path.join(folder, 'clock');
    const { status, stderr } = spawnSync('cc', ['-O2', '-shared', '-fPIC', '-D_GNU_SOURCE', '-o', library, SOURCE], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`clock.c: ${stderr}`);
    this.#file = openSync(file, 'w');
    this.#wall = startMs - Date.now();
    this.#write();
    const asan = [process.env.ASAN_OPTIONS, 'verify_asan_link_order=0'].filter(Boolean).join(':');
    this.environment = { LD_PRELOAD: library, HISTORY_CLOCK: file, ASAN_OPTIONS: asan };
  }

  #write() {
    writeSync(this.#file, Buffer.from(new BigInt64Array([this.#wall, this.#mono].map((ms) => BigInt(ms) * 1_000_000n)).buffer), 0, 16, 0);
  }

  now() {
    return Date.now() + this.#wall;
  }

  advance(ms) {
    this.#wall += Math.ceil(ms);
    this.#mono += Math.ceil(ms);
    this.#write();
  }

  // Never back.
  advanceTo(ms) {
    if (ms > this.now()) this.advance(ms - this.now());
  }

  close() {
    closeSync(this.#file);
  }
}
