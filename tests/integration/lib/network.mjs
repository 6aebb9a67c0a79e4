// Network namespaces (as root): servers in a network of their own, and links to it that a test cuts. Unlike a proxy (link.mjs), a link
// that is cut answers nothing, not even the kernel's confirmation, and what was sent meanwhile may arrive when it is restored.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const NOBODY = '02:00:00:00:00:01'; // an Ethernet address that no interface has
const FIRST_NETWORK = 213; // 10.213.0.0/24 to 10.244.255.0/24
const NETWORKS = 32 * 256;

const run = (program, ...args) => execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const ip = (...args) => run('ip', ...args);
const inside = (ns, ...args) => ip('netns', 'exec', ns, ...args);

// The reason to skip, or false.
export function noNamespaces() {
  try {
    const name = `outpost-try-${process.pid}`;
    ip('netns', 'add', name);
    ip('netns', 'del', name);
    return false;
  } catch (error) {
    return `no network namespaces here: ${(error.stderr || error.message).trim()}`;
  }
}

// A pair of interfaces between two namespaces (null: the test's own): the i-th /30 of the network 10.SECOND.THIRD.0/24.
class Cable {
  constructor(from, to, [second, third], i) {
    const [a, b] = [1, 2].map((end) => `10.${second}.${third}.${4 * i + end}`);
    const [fromName, toName] = ['a', 'b'].map((end) => `op${second}-${third}-${i}${end}`);
    Object.assign(this, { from, fromAddress: a, fromName, to, toAddress: b, toName });
    ip('link', 'add', this.fromName, 'type', 'veth', 'peer', 'name', this.toName);
    for (const [ns, name, address] of [[from, this.fromName, this.fromAddress], [to, this.toName, this.toAddress]]) {
      if (ns) ip('link', 'set', name, 'netns', ns);
      this.#ip(ns, 'addr', 'add', `${address}/30`, 'dev', name);
      this.#ip(ns, 'link', 'set', name, 'up');
    }
  }

  #ip(ns, ...args) { return ns ? inside(ns, 'ip', ...args) : ip(...args); }

  // The interface goes down, which both sides notice.
  cut() { this.#ip(this.from, 'link', 'set', this.fromName, 'down'); }

  // Everything is lost on the way, which nobody notices.
  silence() {
    this.#ip(this.from, 'neigh', 'replace', this.toAddress, 'lladdr', NOBODY, 'dev', this.fromName, 'nud', 'permanent');
    this.#ip(this.to, 'neigh', 'replace', this.fromAddress, 'lladdr', NOBODY, 'dev', this.toName, 'nud', 'permanent');
  }

  // isForgotten: the connections break, as if a firewall had forgotten them; otherwise they go on.
  restore({ isForgotten = false } = {}) {
    this.#ip(this.from, 'link', 'set', this.fromName, 'up');
    for (const [ns, name, other] of [[this.from, this.fromName, this.toAddress], [this.to, this.toName, this.fromAddress]])
      if (this.#ip(ns, 'neigh', 'show', other, 'dev', name).includes('PERMANENT')) this.#ip(ns, 'neigh', 'del', other, 'dev', name);
    if (isForgotten) inside(this.from, 'ss', '-K', 'dst', this.toAddress);
  }

  // Returns false if the kernel does not support it.
  slow(rate) {
    try {
      for (const [ns, name] of [[this.from, this.fromName], [this.to, this.toName]])
        inside(ns, 'tc', 'qdisc', 'replace', 'dev', name, 'root', 'tbf', 'rate', rate, 'burst', '16kbit', 'latency', '800ms');
      return true;
    } catch {
      return false;
    }
  }

  fast() {
    for (const [ns, name] of [[this.from, this.fromName], [this.to, this.toName]])
      try { inside(ns, 'tc', 'qdisc', 'del', 'dev', name, 'root'); } catch { /* none was set */ }
  }
}

// A namespace for servers. Cables lead to it from the test's own, or from namespaces for one machine each. Its addresses are
// 10.SECOND.THIRD.0/24, and its name contains them: the kernel refuses a second namespace of that name, so that tests that run at the
// same time never share addresses.
export class Network {
  #addresses;
  #cables = 0;
  #namespaces = [];
  #closing = [];
  #remove = () => { for (const ns of this.#namespaces.splice(0)) ip('netns', 'del', ns); }; // their interfaces go with them

  constructor() {
    process.on('exit', this.#remove);
    const first = Math.floor(Math.random() * NETWORKS);
    for (let i = 0; !this.name; i++) {
      const n = (first + i) % NETWORKS;
      this.#addresses = [FIRST_NETWORK + (n >> 8), n & 255];
      const name = `outpost-${this.#addresses.join('-')}`;
      try {
        this.#make(name);
        this.name = name;
      } catch (error) {
        if (!/File exists/.test(error.stderr) || i + 1 === NETWORKS) throw error;
      }
    }
  }

  #make(ns) {
    ip('netns', 'add', ns);
    this.#namespaces.push(ns);
    inside(ns, 'ip', 'link', 'set', 'lo', 'up');
  }

  // The words in front of a command that runs there, as this user (undefined: as root).
  command({ uid, gid } = {}) {
    return ['ip', 'netns', 'exec', this.name, ...(uid === undefined ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'])];
  }

  cable() { return new Cable(this.name, null, this.#addresses, this.#cables++); }

  // A machine with a namespace of its own, `to`, at the end of the cable.
  cableToMachine() {
    const ns = `${this.name}-${this.#cables}`;
    this.#make(ns);
    return new Cable(this.name, ns, this.#addresses, this.#cables++);
  }

  // Makes a server of the test's own network appear in this one, at the same port of each of its addresses. folder: for a socket.
  async admit({ folder, port }) {
    const socket = path.join(folder, `${this.name}.sock`);
    const here = net.createServer({ allowHalfOpen: true }, (client) => join(client, net.connect({ port, host: '127.0.0.1', allowHalfOpen: true }))).listen(socket);
    await once(here, 'listening');
    const [program, ...args] = [...this.command(), process.execPath, fileURLToPath(import.meta.url), String(port), socket];
    const there = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const kill = () => there.kill('SIGKILL');
    process.on('exit', kill);
    await once(there.stdout, 'data');
    this.#closing.push(async () => {
      process.off('exit', kill);
      kill();
      await once(there, 'exit');
      here.close();
    });
  }

  async close() {
    for (const one of this.#closing) await one();
    process.off('exit', this.#remove);
    this.#remove();
  }
}

function join(...pair) {
  for (const [from, to] of [pair, pair.toReversed()]) from.on('error', () => to.destroy()).on('close', () => to.destroySoon()).pipe(to);
}

// As a program in the namespace: node network.mjs PORT SOCKET
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [port, socket] = process.argv.slice(2);
  net.createServer({ allowHalfOpen: true }, (client) => join(client, net.connect({ path: socket, allowHalfOpen: true }))).listen(Number(port), '0.0.0.0', () => console.log('ready'));
}
