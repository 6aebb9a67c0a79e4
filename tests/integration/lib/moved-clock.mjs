// Moves the wall clock: the daemon's by libfaketime, and with it this process's, which is GitHub's.
//
//   const clock = new MovedClock(outpost.dir);
//   await clock.set(ms);                 // so far ahead of the real clock
//   await clock.put(ms);                 // so much further than now
//   outpost.options.env = clock.env;     // for each daemon that starts later
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';

const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
const RealDate = Date;
let ahead = 0; // milliseconds

globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length) super(...args);
    else super(RealDate.now() + ahead);
  }

  static now() { return RealDate.now() + ahead; }
};

export const notMovable = !existsSync(FAKETIME) && 'libfaketime is not installed';
export const realNow = () => RealDate.now();

export class MovedClock {
  #file;

  constructor(dir) {
    this.#file = path.join(dir, 'clock');
  }

  get env() {
    return { LD_PRELOAD: FAKETIME, FAKETIME_TIMESTAMP_FILE: this.#file, FAKETIME_NO_CACHE: '1', DONT_FAKE_MONOTONIC: '1', ASAN_OPTIONS: 'verify_asan_link_order=0' };
  }

  // A rename, so that a reader of the file always finds a complete text.
  async set(ms) {
    ahead = ms;
    await fs.writeFile(`${this.#file}.new`, `+${ahead / 1000}\n`);
    await fs.rename(`${this.#file}.new`, this.#file);
  }

  put(ms) { return this.set(ahead + ms); }

  static right() { ahead = 0; }
}
