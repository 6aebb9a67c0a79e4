// The daemon's time: both of its clocks run ahead of ours by the values in a file (clock.c), so one write makes hours pass, and
// deadlines, budgets and pauses become due. A database of PostgreSQL follows the same file.
import { spawnSync } from 'node:child_process';
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = path.join(path.dirname(fileURLToPath(import.meta.url)), 'clock.c');

// Compiled once for this process.
let built;
function library() {
  if (built) return built;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'outpost-clock-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'clock.so');
  const { status, stderr } = spawnSync('cc', ['-O2', '-shared', '-fPIC', '-D_GNU_SOURCE', '-o', file, SOURCE], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`clock.c: ${stderr}`);
  built = file;
  return built;
}

export class Clock {
  #file;
  #path;
  #wall; // ms ahead
  #mono = 0;
  moves = 0;

  constructor(folder, startMs) {
    const file = path.join(folder, 'clock');
    this.#file = openSync(file, 'w');
    chmodSync(folder, 0o755); // the server of PostgreSQL reads the file
    this.#path = file;
    this.#wall = startMs - Date.now();
    this.#write();
    const asan = [process.env.ASAN_OPTIONS, 'verify_asan_link_order=0'].filter(Boolean).join(':');
    this.environment = { LD_PRELOAD: library(), HISTORY_CLOCK: file, ASAN_OPTIONS: asan };
  }

  // The wall clock a second time, in the order of bytes that PostgreSQL can read.
  #write() {
    const numbers = Buffer.alloc(24);
    numbers.writeBigInt64LE(BigInt(this.#wall) * 1_000_000n, 0);
    numbers.writeBigInt64LE(BigInt(this.#mono) * 1_000_000n, 8);
    numbers.writeBigInt64BE(BigInt(this.#wall) * 1_000_000n, 16);
    writeSync(this.#file, numbers, 0, numbers.length, 0);
  }

  // The daemon's database follows it. Before the daemon starts.
  move(database) { return database.followClock(this.#path, 16); }

  now() {
    return Date.now() + this.#wall;
  }

  advance(ms) {
    this.moves++;
    this.#wall += Math.ceil(ms);
    this.#mono += Math.ceil(ms);
    this.#write();
  }

  // It never goes back.
  advanceTo(ms) {
    if (ms > this.now()) this.advance(ms - this.now());
  }

  close() {
    closeSync(this.#file);
  }
}
