// outpostd accepts the example files that the pages show.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { parse, stringify } from 'yaml';
import { FIRST_FILE, PERIODIC, SCHEDULE } from '../../web/src/examples.js';
import { rsaKey } from '../github/keys.mjs';
import { notBuilt, Outpost } from './lib/outpost.mjs';

describe('the pages’ examples', { skip: notBuilt }, () => {
  test('pass --check without changes', async () => {
    const outpost = await Outpost.prepare({ wait: false });
    const folder = path.join(outpost.dir, 'accelerators.d');
    const merged = (name, more) => stringify({ ...parse(FIRST_FILE), name, ...parse(more) });
    try {
      await fs.writeFile(path.join(outpost.dir, 'app.pem'), rsaKey());
      await fs.writeFile(path.join(folder, 'first.yml'), FIRST_FILE);
      await fs.writeFile(path.join(folder, 'second.yml'), merged('second', SCHEDULE));
      await fs.writeFile(path.join(folder, 'third.yml'), merged('third', PERIODIC));
      const { code, stdout, stderr } = await outpost.check();
      assert.equal(code, 0, stdout + stderr);
    } finally {
      await outpost.close();
    }
  });
});
