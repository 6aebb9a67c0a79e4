// The way of one daemon's TCP connections to one server, which a test cuts and restores. It needs no rights, unlike a network
// namespace (network.mjs). The kernel answers for a silent way, so a client notices only that no answer comes.
import { once } from 'node:events';
import net from 'node:net';

export class Link {
  #pairs = new Set(); // of sockets
  #isSilent = false;
  #isCut = false;
  #server;

  // target: {host, port}
  static async open(target) {
    const link = new Link();
    link.target = target;
    link.#server = net.createServer({ allowHalfOpen: true }, (client) => link.#connect(client));
    link.#server.listen(0, '127.0.0.1');
    await once(link.#server, 'listening');
    link.port = link.#server.address().port;
    return link;
  }

  #connect(client) {
    if (this.#isCut) return client.resetAndDestroy();
    const server = net.connect({ ...this.target, allowHalfOpen: true });
    const pair = { client, server };
    this.#pairs.add(pair);
    for (const [from, to] of [[client, server], [server, client]]) {
      from.setNoDelay(true);
      from.on('data', (data) => { if (!to.write(data)) from.pause(); });
      to.on('drain', () => { if (!this.#isSilent) from.resume(); });
      from.on('end', () => to.end());
      from.on('error', () => {});
      from.on('close', () => {
        from.hasClosed = true;
        if (!this.#isSilent) this.#end(pair);
      });
    }
    if (this.#isSilent) this.#pause(pair);
  }

  #end(pair) {
    this.#pairs.delete(pair);
    for (const socket of [pair.client, pair.server]) socket.hasClosed ? socket.destroy() : socket.destroySoon();
  }

  #pause({ client, server }) {
    client.pause();
    server.pause();
  }

  // Breaks all connections, and refuses new ones until restore().
  cut() {
    this.#isCut = true;
    this.#forget();
  }

  // Forwards nothing until restore(): neither side hears from the other.
  silence() {
    this.#isSilent = true;
    for (const pair of this.#pairs) this.#pause(pair);
  }

  // isForgotten: the silent connections break, as if a firewall had forgotten them; otherwise all that was sent arrives late.
  restore({ isForgotten = false } = {}) {
    this.#isCut = this.#isSilent = false;
    if (isForgotten) return this.#forget();
    for (const pair of [...this.#pairs]) {
      pair.client.resume();
      pair.server.resume();
      if (pair.client.hasClosed || pair.server.hasClosed) this.#end(pair);
    }
  }

  #forget() {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
    this.#pairs.clear();
  }

  async close() {
    this.#forget();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
