// A hostile registry through the whole program: each of its commits is refused, and the reason is plain text in the API and on a
// terminal.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { GitServer } from './lib/git-server.mjs';
import { UNSEEN } from './lib/markdown.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

describe('a hostile registry', { skip: notBuilt }, () => {
  test('is refused, and the reason is plain text', async () => {
    const git = await GitServer.start({ repository: 'pytorch-fdn/registry' });
    const rig = await startRig();
    let outpost;
    try {
      const good = 'name: npu\ntitle: NPU\nlevel: L2\nrunners:\n  - {name: ci, github: {repository: Ascend/pytorch}}\n';
      git.commit({ 'npu.yml': good });
      outpost = await Outpost.start({ rig, env: { CURL_CA_BUNDLE: '', SSL_CERT_FILE: git.certificate }, config: { accelerators: { directory: null, git: { url: git.url, interval: '1d' } } } });
      const texts = ['\\e[2J\\e[41m', '\\u202Egnp', '\\x9b41m', '\\a\\b', '<script>', '@octocat', '\\u200b'];
      const commits = [
        ...texts.flatMap((text) => [`"${text}": 1\n${good}`, good.replace('L2', `"${text}"`), good.replace('NPU', `"${text}"`), good.replace('Ascend/pytorch', `"${text}"`), good.replace('ci,', `"${text}",`), `${good}trust: "${text}"\n`, `${good}links: {docs: "${text}"}\n`, `${good}oncall: ["${text}"]\n`,
          `${good}triggers: {schedule: ["${text}"]}\n`, `${good}triggers: {push: {branches: ["${text}"]}, "${text}": 1}\n`, `${good}deadlines: {start: "${text}"}\n`, `${good}visibility: "${text}"\n`, good.replace('github: {repository: Ascend/pytorch}', `webhook: {url: "https://x/", secret: "${text}"}`),
          good.replace('github: {repository: Ascend/pytorch}', `pull: {labels: ["${text}"], max_parallel: "${text}"}`), `${good}tests: {must_pass: ["${text}", 1]}\n`]),
        '\x1b[2J', '%TAG ! \x1b\n', 'a: &a [*a, *a]\n', `a0: &a0 [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i},*a${i},*a${i},*a${i},*a${i},*a${i},*a${i},*a${i},*a${i}]\n`).join('')}`, '['.repeat(100_000), `${good}${good}`, '!!python/object/apply:os.system ["touch pwned"]\n', '\0', Buffer.from([0xff, 0xfe, 0x00]),
      ].map((text) => [['100644', 'npu.yml', git.blob(text)]]);
      for (const name of ['a\x1b[2J.yml', 'a\u202eb.yml', '..', '.git', '-x.yml', 'a b.yml', '$(touch pwned).yml', `${'n'.repeat(300)}.yml`]) commits.push([['100644', name, git.blob(good)], ['100644', 'npu.yml', git.blob(good)]].sort(([, a], [, b]) => (a < b ? -1 : 1)));
      for (const entries of commits) {
        const tip = git.commitEntries(entries);
        const { length } = outpost.log;
        await rig.deliver('push', push({ repository: 'pytorch-fdn/registry', after: tip }));
        const shown = await until(async () => {
          const { registry } = await outpost.api('status');
          return (registry.refused === tip || registry.commit === tip || outpost.log.slice(length).some(({ fields }) => fields.ev === 'registry_error')) && registry;
        }, { timeout: 20_000, what: `the status of ${entries}` });
        assert.doesNotMatch(`${shown.refused_why} ${shown.fetch_error}`, UNSEEN, JSON.stringify(shown));
        const { stdout } = await outpost.ctl('status');
        assert.doesNotMatch(stdout, UNSEEN, JSON.stringify(stdout));
        assert.equal((await outpost.api('accelerators')).accelerators.length, 1);
      }
    } finally {
      await outpost?.close();
      await rig.close();
      await git.close();
    }
  });
});
