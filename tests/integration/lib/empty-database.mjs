// Writes the database of a daemon that has received nothing, with no setting either. run-programs.sh makes it once, and each test's
// daemon begins with a copy: the migrations take most of the time of a start. Daemons without it (first-day, trouble) begin with
// no file.
//
// usage: empty-database.mjs FILE
import { execFileSync } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';
import { rsaKey } from '../../github/keys.mjs';
import { Outpost } from './outpost.mjs';

const outpost = await Outpost.start({ privateKey: rsaKey(), program: process.env.OUTPOSTD_RELEASE });
try {
  await outpost.stop();
  const database = path.join(outpost.stateDir, 'outpost.db');
  execFileSync('sqlite3', [database, 'DELETE FROM setting; PRAGMA wal_checkpoint(TRUNCATE);']);
  await fs.copyFile(database, process.argv[2]);
} finally {
  await outpost.close();
}
