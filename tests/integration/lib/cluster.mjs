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
import { Outpost, freePort, until } from './outpost.mjs';
import { removeFolder } from './folder.mjs';

const RESTART_MS = 500;

export class Cluster extends EventEmitter {
  nodes = [];
  #isClosing = false;

  // options: as for Outpost.prepare(), and
  //   nodes      the number of daemons;  database: options of Database.start()
  //   hasLinks   each daemon reaches the database and GitHub through links that a test may cut: nodes[i].links.{database, github}
  static async prepare({ nodes = 3, database = {}, hasLinks = false, ...options }) {
    const self = new Cluster();
    self.setMaxListeners(0);
    self.folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-cluster-'));
    self.database = await Database.start(database);
    self.port = await freePort();
    self.url = `http://127.0.0.1:${self.port}`;
    for (let i = 0; i < nodes; i++) self.nodes.push(await self.#prepareNode(`node-${i + 1}`, options, hasLinks));
    self.balancer = await startBalancer({ folder: path.join(self.folder, 'nginx'), port: self.port, ports: self.nodes.map(({ port }) => port) });
    return self;
  }

  async #prepareNode(name, options, hasLinks) {
    const links = hasLinks ? {
      database: await Promise.all(this.database.servers.map(({ port }) => Link.open({ host: '127.0.0.1', port }))),
      github: [await Link.open({ host: '127.0.0.1', port: Number(new URL(options.rig.url).port) })],
    } : { database: [], github: [] };
    const port = await freePort();
    const node = await Outpost.prepare({
      ...options, port, listen: `127.0.0.1:${port}`, url: this.url, wait: false,
      config: {
        ...options.config, node: name, trusted_proxies: ['127.0.0.1'],
        store: this.database.url(hasLinks ? links.database.map((link) => link.port) : undefined),
        github: { ...options.config?.github, ...(hasLinks && { api_url: `http://127.0.0.1:${links.github[0].port}` }) },
      },
    });
    Object.assign(node, { name, links, ownUrl: `http://127.0.0.1:${port}` });
    return node;
  }

  // Starts one daemon, and starts it again whenever it ends by itself while the database is out of its reach.
  async start(node) {
    await node.spawn();
    node.isStarted = true;
    const { pid } = node;
    const isCurrent = () => !this.#isClosing && node.isStarted && node.pid === pid;
    node.exited.then(async ({ code, signal }) => {
      if (!isCurrent()) return;
      if (signal || !this.mayFail(node)) this.emit('exit', { code, signal, node });
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
    for (const node of this.nodes) for (const link of [...node.links.database, ...node.links.github]) await link.close();
    await this.balancer.stop();
    await this.database.close();
    if (!process.env.KEEP) await removeFolder(this.folder);
    const failed = ended.find(({ status }) => status === 'rejected');
    if (failed) throw failed.reason;
  }
}
