// One address that attacks a daemon on loopback, in a separate process so that it does not delay measurements.
//
//   node tests/bench/attacker.mjs NAME '{"port": N, "seconds": N, "path": "/…"}'
//
// It keeps a bounded number of connections open, opens a bounded number of new ones per second, and ends by itself after its time.
// It sends {"begun": true} to its parent when each connection has been opened once.
import net from 'node:net';

const ADDRESS = '127.0.0.66';
const OPENED_A_SECOND = 1000; // in the first round
const REOPENED_A_SECOND = 200; // connections that the server closed: four times the rate that filled the table
const TURN_MS = 20;
const MIB = 2 ** 20;

// For each attack the number of connections and the action of a new connection. `path` is the page to read.
export const ATTACKS = {
  idle: { title: 'silent connections', connections: 4096, act: (socket) => socket.resume() },
  heads: { title: 'half a request head', connections: 4150, act: (socket) => socket.resume().write('POST /github/webhook HTTP/1.1\r\nHost: x\r\nX-Slow: ') },
  bodies: { title: 'slow bodies, no signature', connections: 905, act: (socket, i) => slowBody(socket, i, '') },
  forged: { title: 'slow bodies, wrong signature', connections: 905, act: (socket, i) => slowBody(socket, i, FORGED) },
  followers: { title: 'followers of a log', connections: 3000, act: (socket, i, { log }) => socket.resume().write(request(`${log}?follow=1`)) },
  readers: { title: 'readers that do not read', connections: 1000, act: (socket, i, { page }) => askWithoutReading(socket, page) },
  streams: { title: 'streams of events', connections: 3000, act: (socket) => socket.resume().write(request('/api/v1/events?watch=dashboard')) },
};

const FORGED = `X-GitHub-Event: pull_request\r\nX-GitHub-Delivery: 00000000-0000-4000-8000-000000000000\r\nX-Hub-Signature-256: sha256=${'0'.repeat(64)}\r\n`;
const request = (path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

// Five bodies of 25 MiB that stop at 17 MiB and then trickle. The other connections send a single byte.
function slowBody(socket, i, headers) {
  const isLarge = i < 5;
  socket.resume();
  socket.write(`POST /github/webhook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}Content-Length: ${25 * MIB}\r\n\r\n`);
  socket.write(isLarge ? Buffer.alloc(17 * MIB, ' ') : ' ');
  const trickle = setInterval(() => socket.write(isLarge ? Buffer.alloc(2048, ' ') : ' '), 5000);
  socket.once('close', () => clearInterval(trickle));
}

// Reads only enough to see a refusal. Reconnects after a while, because it would not notice that the server dropped the connection.
function askWithoutReading(socket, page) {
  const again = setTimeout(() => socket.destroy(), 20_000);
  socket.once('close', () => clearTimeout(again));
  socket.once('data', (data) => (data.toString('latin1', 0, 12) === 'HTTP/1.1 200' ? socket.pause() : socket.destroy()));
  socket.write(request(page));
}

function attack({ connections, act }, { port, seconds, ...target }) {
  const free = Array.from({ length: connections }, (_, i) => i);
  let opened = 0;
  const open = (i) => {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress: ADDRESS });
    socket.on('error', () => {}).on('connect', () => act(socket, i, target)).on('close', () => free.push(i));
    if (++opened === connections) process.send?.({ begun: true });
  };
  setInterval(() => {
    const rate = opened < connections ? OPENED_A_SECOND : REOPENED_A_SECOND;
    for (let n = 0; n < rate * TURN_MS / 1000 && free.length > 0; n++) open(free.shift());
  }, TURN_MS);
  setTimeout(() => process.exit(), seconds * 1000);
  process.on('disconnect', () => process.exit());
}

if (process.argv[1] === import.meta.filename) attack(ATTACKS[process.argv[2]], JSON.parse(process.argv[3]));
