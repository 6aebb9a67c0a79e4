// A module hook: `import x from './x.json'` without the attribute that Node.js requires. @actions/workflow-parser does so.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

export async function load(url, context, next) {
  if (!/\/@actions\/[^?]*\.json$/.test(url)) return next(url, context);
  return { format: 'module', shortCircuit: true, source: `export default ${await readFile(fileURLToPath(url), 'utf8')};` };
}
