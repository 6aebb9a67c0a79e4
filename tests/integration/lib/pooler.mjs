// pgbouncer in front of a server of PostgreSQL, with the configuration of docs/cluster.md. Only the addresses and the users are the test's.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { owner } from '../../postgres.mjs';
import { freePort, until } from './outpost.mjs';

const PAGE = new URL('../../../docs/cluster.md', import.meta.url);
const PROGRAM = '/usr/sbin/pgbouncer';

export const noPooler = existsSync(PROGRAM) ? false : 'pgbouncer is not installed';

const isListening = (port) => new Promise((resolve) => {
  const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); }).on('error', () => resolve(false));
});

export class Pooler {
  // folder: for its files; server: {port}; mode: transaction or session
  static async make({ folder, server, mode = 'transaction' }) {
    const self = new Pooler();
    Object.assign(self, { folder, port: await freePort() });
    const set = (text, key, value) => {
      const line = new RegExp(`^${key} = .*$`, 'm');
      if (!line.test(text)) throw new Error(`docs/cluster.md does not set ${key} of pgbouncer`);
      return text.replace(line, `${key} = ${value}`);
    };
    let [, text] = /^```ini\n(\[databases\][^]*?)^```$/m.exec(readFileSync(PAGE, 'utf8'));
    for (const [key, value] of Object.entries({
      outpost: `host=127.0.0.1 port=${server.port}`, listen_addr: '127.0.0.1', listen_port: self.port, auth_type: 'trust', auth_file: path.join(folder, 'users'), pool_mode: mode,
    })) text = set(text, key, value);
    await fs.mkdir(folder, { recursive: true });
    await fs.writeFile(path.join(folder, 'users'), '"outpost" ""\n');
    await fs.writeFile(path.join(folder, 'pgbouncer.ini'), `${text}unix_socket_dir =\n`);
    const { uid, gid } = owner();
    if (uid !== undefined) for (const name of [folder, path.join(folder, 'users'), path.join(folder, 'pgbouncer.ini')]) chownSync(name, uid, gid);
    return self;
  }

  async start() {
    const log = await fs.open(path.join(this.folder, 'log'), 'a');
    this.child = spawn(PROGRAM, ['pgbouncer.ini'], { cwd: this.folder, ...owner(), stdio: ['ignore', log.fd, log.fd] });
    await log.close();
    const kill = () => this.child.kill('SIGKILL');
    process.on('exit', kill);
    this.ended = once(this.child, 'exit').then(() => process.off('exit', kill));
    await Promise.race([
      until(() => isListening(this.port), { what: 'pgbouncer listens' }),
      this.ended.then(() => { throw new Error(`pgbouncer ended: ${readFileSync(path.join(this.folder, 'log'), 'utf8')}`); }),
    ]);
  }

  async kill() {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}
