// Other releases of outpostd, for upgrades: those that follow the present tree, with further versions of the tables, and that of an older
// commit.
import { execFile } from 'node:child_process';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { removeFolder } from './folder.mjs';
import { OUTPOSTD } from './outpost.mjs';

const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../..');
const VARIANT = path.basename(path.dirname(OUTPOSTD)), BUILD = path.dirname(path.dirname(OUTPOSTD));

// A release may add this while an older one runs beside it.
const EXPAND = (version) => [...['delivery', 'dispatch', 'outbox', 'job', 'node'].map((table) => `ALTER TABLE ${table} ADD COLUMN added_in_${version} TEXT;`),
  `CREATE TABLE added_in_${version} (name TEXT PRIMARY KEY, value TEXT NOT NULL);`].join('\n');

const run = (program, args, options) => promisify(execFile)(program, args, { maxBuffer: 1 << 26, ...options });
const make = (folder, target) => run('make', ['-C', folder, `VARIANT=${VARIANT}`, `-j${os.availableParallelism()}`, target], { env: { ...process.env, MAKEFLAGS: '', MAKELEVEL: '' } });

const numberOf = (text, name) => Number(new RegExp(`\\b${name} = (\\d+)`).exec(text)[1]);

// A copy of the tree in which only changed files are compiled again.
export class NextRelease {
  static async prepare() {
    const self = new NextRelease();
    self.folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-release-'));
    await run('cp', ['-as', path.join(ROOT, 'src'), self.folder]);
    for (const name of ['Makefile', 'tools', 'web', 'node_modules', 'package-lock.json']) await fs.symlink(path.join(ROOT, name), path.join(self.folder, name));
    await fs.mkdir(path.join(self.folder, 'build', VARIANT), { recursive: true });
    const built = (await fs.readdir(path.join(BUILD, VARIANT))).filter((name) => name !== 'tests').map((name) => path.join(BUILD, VARIANT, name));
    await run('cp', ['-a', ...built, path.join(self.folder, 'build', VARIANT)]);
    for (const name of ['web', 'db']) await run('cp', ['-a', path.join(BUILD, name), path.join(self.folder, 'build')]);
    return self;
  }

  // Builds the release after the present one, or after the last one that was built: with the next version of the tables, which programs
  // from `readableFrom` on can use (default: as now). Returns {program, version, schema, readableFrom}.
  async build({ readableFrom: from } = {}) {
    const file = path.join(this.folder, 'src/db/schema.h');
    const header = await fs.readFile(file, 'utf8');
    const readableFrom = from ?? numberOf(header, 'POSTGRES_READABLE_FROM');
    const schema = numberOf(header, 'SCHEMA_VERSION') + 1;
    const version = `99.0.${schema}`;
    await fs.rm(file); // a link
    await fs.writeFile(file, header.replace(/(SCHEMA_VERSION = )\d+/, `$1${schema}`).replace(/(POSTGRES_READABLE_FROM = )\d+/, `$1${readableFrom}`));
    for (const engine of ['schema', 'postgres']) await fs.writeFile(path.join(this.folder, `src/db/${engine}_${schema}.sql`), `${EXPAND(schema)}\n`);
    await fs.writeFile(path.join(this.folder, 'VERSION'), `${version}\n`);
    const built = path.join(this.folder, 'build', VARIANT, 'outpostd');
    await make(this.folder, path.relative(this.folder, built));
    const program = path.join(this.folder, `outpostd-${schema}`);
    await fs.copyFile(built, program);
    return { program, version, schema, readableFrom };
  }

  close() { return removeFolder(this.folder); }
}

// The last commit whose program does not work beside the present one; undefined: this clone has no history.
export async function commitBeforeSchema() {
  const schema = numberOf(await fs.readFile(path.join(ROOT, 'src/db/schema.h'), 'utf8'), 'POSTGRES_READABLE_FROM');
  const { stdout } = await run('git', ['log', '--format=%H', '--diff-filter=A', '--', `src/db/schema_${schema}.sql`], { cwd: ROOT });
  const [added] = stdout.trim().split('\n');
  if (!added) return undefined;
  return run('git', ['rev-parse', '--verify', '--quiet', `${added}^`], { cwd: ROOT }).then(({ stdout: hash }) => hash.trim(), () => undefined);
}

// Builds the outpostd of a commit in `folder`. Returns the program.
export async function buildCommit(commit, folder) {
  await fs.mkdir(folder, { recursive: true });
  await run('sh', ['-c', 'git archive "$1" | tar -x -C "$2"', 'sh', commit, folder], { cwd: ROOT });
  await fs.symlink(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  const program = path.join('build', VARIANT, 'outpostd');
  await make(folder, program);
  return path.join(folder, program);
}
