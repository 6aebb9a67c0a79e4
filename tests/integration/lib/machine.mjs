// A container that systemd boots: systemd-nspawn over this system with an overlay in memory. It shares this machine's network,
// so a test reaches its services over loopback; with isAlone it has only its own loopback.
//
//   const machine = await Machine.boot({ prepare: async (root) => { …install into root… } });
//   await machine.run('systemctl', 'start', 'outpostd');    // {stdout, stderr}, or throws with both
//   await machine.close();
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync, rmdirSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { removeFolder } from './folder.mjs';
import { until } from './outpost.mjs';

const run = promisify(execFile);

// The reason why no container can be booted here, or false.
export function notBootable() {
  if (process.getuid() !== 0) return 'only root can boot a machine';
  if (!existsSync('/usr/bin/systemd-nspawn')) return 'systemd-nspawn is not installed';
  if (!existsSync('/lib/systemd/systemd')) return 'systemd is not installed';
  return false;
}

// The first process of the container: its parent is nspawn, and its own PID is 1.
async function leaderOf(parent) {
  for (const pid of await fs.readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const status = await fs.readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    if (new RegExp(`^PPid:\\t${parent}$`, 'm').test(status) && /^NSpid:.*\t1$/m.test(status)) return pid;
  }
  return undefined;
}

// The control groups of a machine, in each hierarchy. Without its own, two machines have the same group for a service of the same name, and
// the one that ends the service removes it.
const groupsOf = (name) => readFileSync('/proc/self/mounts', 'utf8').split('\n').map((line) => line.split(' ')).filter(([, , type]) => /^cgroup2?$/.test(type))
  .map(([, mount]) => path.join(mount, name));

// Enters the groups, and becomes the command: sh -c ENTER sh 'GROUP GROUP' COMMAND...
const ENTER = 'for group in $1; do mkdir -p "$group" && { cat "${group%/*}/cpuset.cpus" >"$group/cpuset.cpus"; cat "${group%/*}/cpuset.mems" >"$group/cpuset.mems"; echo $$ >"$group/cgroup.procs"; } 2>/dev/null; done; shift; exec "$@"';

function removeGroups(folder) {
  for (const entry of existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : []) if (entry.isDirectory()) removeGroups(path.join(folder, entry.name));
  try { rmdirSync(folder); } catch { /* it has processes that end, or none was made */ }
}

export class Machine {
  static async boot({ prepare, isAlone = false }) {
    const self = new Machine();
    self.dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-machine-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1g,mode=755', 'tmpfs', self.dir]);
      for (const name of ['upper', 'work', 'root']) await fs.mkdir(path.join(self.dir, name));
      self.root = path.join(self.dir, 'root');
      execFileSync('mount', ['-t', 'overlay', 'overlay', '-o', `lowerdir=/,upperdir=${self.dir}/upper,workdir=${self.dir}/work`, self.root]);
      await fs.writeFile(path.join(self.root, 'etc/machine-id'), '');
      await prepare(self.root);
      // basic.target starts no services, so a test starts its own. By default the container's filter forbids key rings and
      // locked memory, which a service here may use.
      self.groups = groupsOf(path.basename(self.dir));
      self.container = spawn('sh', ['-c', ENTER, 'sh', self.groups.join(' '), 'systemd-nspawn', '-D', self.root, `--machine=${path.basename(self.dir).toLowerCase()}`, '--register=no', '--keep-unit', '--console=pipe', '--link-journal=no', ...(isAlone ? ['--private-network'] : []),
        '--system-call-filter=@keyring @memlock', '/lib/systemd/systemd', 'systemd.unit=basic.target'], { stdio: ['ignore', 'ignore', 'pipe'] });
      self.log = '';
      self.container.stderr.setEncoding('utf8').on('data', (text) => { self.log += text; });
      const boot = async () => {
        self.leader = await until(() => leaderOf(self.container.pid), { what: 'the container starts its first process' });
        await until(async () => /running|degraded/.test((await run('nsenter', ['-t', self.leader, '-a', 'systemctl', 'is-system-running']).catch((error) => error)).stdout), { what: 'systemd has booted' });
      };
      const ended = once(self.container, 'exit').then(([code]) => { throw new Error(`the container has ended with ${code}:\n${self.log}`); });
      ended.catch(() => {});
      await Promise.race([boot(), ended]);
      return self;
    } catch (error) {
      await self.close();
      throw error;
    }
  }

  async run(...command) {
    return run('nsenter', ['-t', this.leader, '-a', ...command], { maxBuffer: 64 << 20 });
  }

  // `systemctl`, which throws with the journal if it fails.
  async systemctl(...args) {
    try {
      await this.run('systemctl', ...args);
    } catch (error) {
      const { stdout } = await this.run('journalctl', '--no-pager', '-n', '40', '-o', 'cat', ...(args.length > 1 ? ['-u', args.at(-1)] : []));
      throw new Error(`systemctl ${args.join(' ')}: ${error.stderr}\n${stdout}`);
    }
  }

  // A property of a unit from the service manager.
  async show(unit, property) {
    return (await this.run('systemctl', 'show', '--value', '-p', property, unit)).stdout.trim();
  }

  async close() {
    if (this.container && this.container.exitCode === null && this.container.signalCode === null) {
      const ended = once(this.container, 'exit');
      this.container.kill('SIGKILL');
      if (this.leader) try { process.kill(Number(this.leader), 'SIGKILL'); } catch { /* it already ended */ }
      await ended;
    }
    for (const group of this.groups ?? []) removeGroups(group);
    for (const at of [this.root, this.dir])
      if (at) await until(() => run('umount', [at]).then(() => true, (error) => /not mounted/.test(error.stderr)), { timeout: 60_000, what: `${at} is unmounted` });
    await removeFolder(this.dir);
  }
}
