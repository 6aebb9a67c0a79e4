// RSA keys of tests. To make one takes a fifth of a second of the processor, and each test file needs two or three. So all files
// share some: they are made once and stay in build/rig/. No two calls in one process return the same key.
import { createPrivateKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const KEPT = 12;
const file = fileURLToPath(new URL('../../build/rig/rsa-keys.json', import.meta.url));

const make = () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs1', format: 'pem' });

let keys; // those that this process has not used

function readKept() {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    const made = Array.from({ length: KEPT }, make);
    const own = `${file}.${randomUUID()}`; // another process may write it at the same time
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(own, JSON.stringify(made), { mode: 0o600 });
    fs.renameSync(own, file);
    return made;
  }
}

// A private key of 2048 bits as PEM, in PKCS #1 as GitHub gives it to an App.
export function rsaKey() {
  keys ??= readKept();
  return keys.pop() ?? make();
}

// A key as an object of node:crypto.
export const rsaKeyObject = () => createPrivateKey(rsaKey());
