// Moves the wall clock: the daemon's by libfaketime, that of its database, and with them this process's, which is GitHub's.
//
//   const clock = await MovedClock.of(outpost);   // before the daemon starts
//   await clock.set(ms);                          // so far ahead of the real clock
//   await clock.put(ms);                          // so much further than now
//   outpost.options.env = clock.env;              // for each daemon that starts later
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { until } from './outpost.mjs';

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

// A rename, so that a reader of the file always finds a complete content.
async function replace(file, content) {
  await fs.writeFile(`${file}.new`, content);
  await fs.rename(`${file}.new`, file);
}

export class MovedClock {
  #file;
  #outpost;

  static async of(outpost) {
    const self = new MovedClock();
    const folder = path.join(outpost.dir, 'clock');
    await fs.mkdir(folder);
    await fs.chmod(outpost.dir, 0o711); // a server of PostgreSQL reads the file
    self.#file = path.join(folder, 'text');
    self.#outpost = outpost;
    await self.set(0);
    await outpost.database.followClock(`${self.#file}.bytes`, 0);
    return self;
  }

  get env() {
    return { LD_PRELOAD: FAKETIME, FAKETIME_TIMESTAMP_FILE: this.#file, FAKETIME_NO_CACHE: '1', DONT_FAKE_MONOTONIC: '1', ASAN_OPTIONS: 'verify_asan_link_order=0' };
  }

  async set(ms) {
    const bytes = Buffer.alloc(8);
    ahead = ms;
    bytes.writeBigInt64BE(BigInt(Math.round(ahead)) * 1_000_000n);
    await replace(`${this.#file}.bytes`, bytes);
    await replace(this.#file, `+${ahead / 1000}\n`);
    if (this.#outpost.database.isOnServer) await until(() => this.#isFollowed(), { what: 'the daemon follows the clock of its database' });
  }

  // A page names the daemon's time. One that does not run reads the time when it starts.
  async #isFollowed() {
    const answer = await fetch(new URL('/platforms', this.#outpost.url)).catch(() => undefined);
    const now = answer && /"now":("?)([^",}]+)\1/.exec(await answer.text())?.[2];
    return !now || Math.abs(new Date(/^\d+$/.test(now) ? Number(now) : now) - Date.now()) < 5000;
  }

  put(ms) { return this.set(ahead + ms); }

  static right() { ahead = 0; }
}
