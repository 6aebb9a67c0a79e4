// Several daemons on one database behind nginx (docs/cluster.md), with the methods of one (outpost.mjs). A daemon that ends while the
// database is away starts again, as systemd does it.
import { EventEmitter } from 'node:events';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startBalancer } from './balancer.mjs';
import { Database } from './database-server.mjs';
import { Link } from './link.mjs';
import { Network } from './network.mjs';
import { Pooler } from './pooler.mjs';
import { Outpost, freePort, until } from './outpost.mjs';
import { removeFolder } from './folder.mjs';

const RESTART_MS = 500;
const portOf = (rig) => Number(new URL(rig.url).port);

export class Cluster extends EventEmitter {
  nodes = [];
  networks = {}; // of `cables`
  #isClosing = false;

  // options: as for Outpost.prepare(), and
  //   nodes      the number of daemons;  database: options of Database.start()
  //   links      each daemon reaches the database and GitHub through links that a test may cut: nodes[i].links.{database, github}.
  //              'proxies', or 'cables': the database and GitHub are in networks of their own
  //   pooler     'transaction' or 'session': the daemons reach a durable database through pgbouncer in this mode
  static async prepare({ nodes = 3, database = {}, links, pooler, ...options }) {
    const self = new Cluster();
    self.setMaxListeners(0);
    self.folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-cluster-'));
    if (links === 'cables') {
      self.networks = { database: new Network(), github: new Network() };
      await self.networks.github.admit({ folder: self.folder, port: portOf(options.rig) });
    }
    self.database = await Database.start({ ...database, network: self.networks.database });
    if (pooler) {
      self.pooler = await Pooler.make({ folder: path.join(self.database.folder, 'pgbouncer'), server: self.database.primary, mode: pooler });
      await self.pooler.start();
    }
    self.port = await freePort();
    self.url = `http://127.0.0.1:${self.port}`;
    for (let i = 0; i < nodes; i++) self.nodes.push(await self.#prepareNode(`node-${i + 1}`, options, links));
    self.balancer = await startBalancer({ folder: path.join(self.folder, 'nginx'), port: self.port, ports: self.nodes.map(({ port }) => port) });
    return self;
  }

  // The links of a daemon, and the places that they lead to.
  async #layLinks(kind, rig) {
    const { servers } = this.database;
    if (kind === 'cables') {
      const [database, github] = [this.networks.database.cable(), this.networks.github.cable()];
      return {
        links: { database: [database], github: [github] },
        places: { database: servers.map(({ port }) => ({ host: database.fromAddress, port })), github: { host: github.fromAddress, port: portOf(rig) } },
      };
    }
    const [github, ...database] = await Promise.all([portOf(rig), ...servers.map(({ port }) => port)].map((port) => Link.open({ host: '127.0.0.1', port })));
    const place = ({ port }) => ({ host: '127.0.0.1', port });
    return { links: { database, github: [github] }, places: { database: database.map(place), github: place(github) } };
  }

  async #prepareNode(name, options, kind) {
    const { links, places } = kind ? await this.#layLinks(kind, options.rig) : { links: { database: [], github: [] }, places: {} };
    const port = await freePort();
    const node = await Outpost.prepare({
      ...options, port, listen: `127.0.0.1:${port}`, url: this.url, wait: false,
      config: {
        ...options.config, node: name, trusted_proxies: ['127.0.0.1'],
        store: this.database.url(this.pooler ? [this.pooler] : places.database),
        github: { ...options.config?.github, ...(kind && { api_url: `http://${places.github.host}:${places.github.port}` }) },
      },
    });
    Object.assign(node, { name, links, ownUrl: `http://127.0.0.1:${port}` });
    return node;
  }

  // Starts one daemon, and starts it again whenever it ends by itself while the database is out of its reach: in a test's outage, or where
  // a busy machine keeps the database from answering a daemon that starts.
  async start(node) {
    await node.spawn();
    node.isStarted = true;
    const { pid } = node;
    const isCurrent = () => !this.#isClosing && node.isStarted && node.pid === pid;
    node.exited.then(async ({ code, signal }) => {
      if (!isCurrent()) return;
      const mayEnd = this.mayFail(node) || await node.hasMissedDatabase();
      if (!isCurrent()) return;
      if (signal || !mayEnd) this.emit('exit', { code, signal, node });
      else await node.kill(); // so that stop() knows of its end
      await sleep(RESTART_MS);
      if (isCurrent()) await this.start(node);
    });
  }

  // Returns false if the daemon has ended by itself and has not started again yet.
  signal(node, name) {
    try {
      return process.kill(node.pid, name);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
      return false;
    }
  }

  // A test replaces it: whether a daemon may end by itself now.
  mayFail() { return false; }

  async spawn() {
    for (const node of this.nodes) await this.start(node);
  }

  // Stops a daemon and starts another program in its place, as an upgrade does.
  async replace(node, program) {
    node.isStarted = false;
    await node.stop();
    node.options.program = program;
    await this.start(node);
  }

  async killNode(node) {
    node.isStarted = false;
    await node.kill();
  }

  isReady(node) {
    return fetch(`${node.ownUrl}/readyz`, { signal: AbortSignal.timeout(5000) }).then(({ status }) => status === 200, () => false);
  }

  ready(nodes = this.nodes) {
    return until(async () => (await Promise.all(nodes.map((node) => this.isReady(node)))).every(Boolean), { interval: 20, what: 'each daemon is ready' });
  }

  // Through nginx, to any daemon.
  request(...args) { return this.nodes[0].request(...args); }
  get(...args) { return this.nodes[0].get(...args); }
  api(...args) { return this.nodes[0].api(...args); }
  waitForApi(...args) { return this.nodes[0].waitForApi(...args); }

  // outpostctl beside a daemon that is ready.
  async ctl(...args) {
    const node = await until(async () => {
      for (const one of this.nodes) if (one.isStarted && await this.isReady(one)) return one;
      return undefined;
    }, { what: 'a daemon is ready' });
    return node.ctl(...args);
  }

  tail(lines = 40) {
    return this.nodes.map((node) => `${node.name}:\n${node.tail(lines)}`).join('\n');
  }

  async close() {
    this.#isClosing = true;
    for (const node of this.nodes) for (const link of [...node.links.database, ...node.links.github]) link.restore();
    const ended = await Promise.allSettled(this.nodes.map(async (node) => {
      node.isStarted = false;
      if (node.isStopped) this.signal(node, 'SIGCONT');
      await node.close();
    }));
    for (const node of this.nodes) for (const link of [...node.links.database, ...node.links.github]) await link.close?.();
    await this.balancer.stop();
    await this.pooler?.kill();
    await this.database.close();
    for (const network of Object.values(this.networks)) await network.close();
    if (!process.env.KEEP) await removeFolder(this.folder);
    const failed = ended.find(({ status }) => status === 'rejected');
    if (failed) throw failed.reason;
  }
}
