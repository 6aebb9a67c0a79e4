// Makes the database of a daemon that has received nothing, with no setting either, and prints its name for OUTPOST_EMPTY_DATABASE.
// run-programs.sh makes it once, and each test's daemon begins with a copy: the migrations take most of the time of a start. Daemons
// without it (first-day, trouble) begin with no file.
//
// usage: empty-database.mjs FILE
import { rsaKey } from '../../github/keys.mjs';
import { Outpost } from './outpost.mjs';

const outpost = await Outpost.start({ privateKey: rsaKey(), program: process.env.OUTPOSTD_RELEASE });
try {
  await outpost.stop();
  console.log(await outpost.database.keepAs(process.argv[2]));
} finally {
  await outpost.close();
}
