// A self-signed certificate with an elliptic-curve key, made when the test runs: {ca, cert, key}, all PEM.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export function selfSigned(address) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'outpost-certificate-'));
  const file = (name) => path.join(dir, name);
  try {
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', file('key'), '-out', file('cert'),
      '-days', '2', '-subj', '/CN=outpost', '-addext', `subjectAltName=IP:${address}`], { stdio: 'ignore' });
    const cert = fs.readFileSync(file('cert'), 'utf8');
    return { ca: cert, cert, key: fs.readFileSync(file('key'), 'utf8') };
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
}
