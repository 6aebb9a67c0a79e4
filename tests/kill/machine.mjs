// A vendor's machine for the kill tests: outpost-runner in its own folder, which can be killed and restarted.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');

export const OUTPOST_RUNNER = process.env.OUTPOST_RUNNER ?? path.join(root, 'build', process.env.BUILD ?? 'release', 'outpost-runner');
export const runnerNotBuilt = existsSync(OUTPOST_RUNNER) ? false : `${path.relative(root, OUTPOST_RUNNER)} is not built`;

const children = new Set();
process.on('exit', () => { for (const child of children) child.kill('SIGKILL'); });

export class Machine {
  // options: outpost, name, accelerator, dir (made), server (default: outpost's), config: merged over the generated file,
  // command: the command that starts the program (default: the program itself), env
  static async make({ outpost, name, accelerator, dir, server, config = {}, command = [], env = {} }) {
    const self = new Machine();
    Object.assign(self, { name, dir, command, env, starts: 0 });
    await fs.mkdir(dir, { recursive: true });
    const { code, stdout, stderr } = await outpost.ctl('runner', 'add', name, '--accelerator', accelerator);
    if (code !== 0) throw new Error(`runner add ${name}: ${stderr}`);
    await fs.writeFile(path.join(dir, 'token'), stdout, { mode: 0o600 });
    self.configFile = path.join(dir, 'runner.yml');
    await fs.writeFile(self.configFile, stringify({
      server: server ?? outpost.url, name, accelerator, token_file: 'token', labels: ['any'], work_dir: path.join(dir, 'work'),
      sandbox: 'none', ...config,
    }));
    return self;
  }

  async start() {
    const log = await fs.open(path.join(this.dir, 'runner.log'), 'a');
    const [program, ...args] = [...this.command, OUTPOST_RUNNER, '-c', this.configFile];
    this.child = spawn(program, args, { cwd: this.dir, stdio: ['ignore', log.fd, log.fd], env: { ...process.env, ...this.env } });
    await log.close();
    const child = this.child;
    children.add(child);
    this.starts++;
    this.exit = once(child, 'exit').then(([code, signal]) => {
      children.delete(child);
      return { code, signal };
    });
  }

  get isAlive() {
    return this.child?.exitCode === null && this.child?.signalCode === null;
  }

  // Kills only the program, as by kill -9, and not its children.
  async kill() {
    if (this.isAlive) this.child.kill('SIGKILL');
    await this.exit;
  }

  // Sends SIGTERM, after which the exit status must be 0.
  async stop() {
    if (!this.isAlive) return { code: this.child?.exitCode, signal: this.child?.signalCode };
    this.child.kill('SIGTERM');
    return this.exit;
  }

  log() {
    return fs.readFile(path.join(this.dir, 'runner.log'), 'utf8');
  }
}
