// A repository behind git's own protocol.
//
//   const git = await GitDaemon.start();
//   const tip = git.commit('message');   // on the branch trunk
//   git.url
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { removeFolder } from './folder.mjs';
import { freePort, until } from './outpost.mjs';

export class GitDaemon {
  static async start() {
    const self = new GitDaemon();
    self.dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-git-daemon-'));
    self.repo = path.join(self.dir, 'spyre.git');
    execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=trunk', self.repo]);
    const port = await freePort();
    self.child = spawn('git', ['daemon', '--listen=127.0.0.1', `--port=${port}`, `--base-path=${self.dir}`, '--export-all', '--reuseaddr', self.dir], { stdio: 'ignore', detached: true });
    self.url = `git://127.0.0.1:${port}/spyre.git`;
    await until(() => new Promise((resolve, reject) => {
      const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); });
      socket.on('error', reject);
    }), { timeout: 20_000, what: 'git daemon answers' });
    return self;
  }

  commit(message) {
    const env = { ...process.env, GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.org', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.org' };
    const git = (args, input) => execFileSync('git', ['--git-dir', this.repo, ...args], { input, env }).toString().trim();
    const tip = git(['commit-tree', git(['hash-object', '-w', '-t', 'tree', '--stdin'], ''), '-m', message]);
    git(['update-ref', 'refs/heads/trunk', tip]);
    return tip;
  }

  async close() {
    process.kill(-this.child.pid, 'SIGKILL');
    await removeFolder(this.dir);
  }
}
