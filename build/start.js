/**
 * Runs the sources for `npm start`: as a bundle, or directly if it cannot be built (read-only folder, no development packages).
 */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { currentBundle } from './current-bundle.js';

const NEEDED_MAJOR = 26;

// `npm start` runs this with the Node.js of the package, if `link-runtime.js` could run.
if (Number(process.versions.node.split('.')[0]) < NEEDED_MAJOR) await import('../bin/gatehouse.js');
else await start();

async function start() {
  const bundle = currentBundle(announce);
  const sources = path.join(import.meta.dirname, '..', 'src');
  // Workers start this path again, so they run the same code.
  process.argv[1] = bundle === undefined ? path.join(sources, 'main.ts') : path.join(bundle, 'main.js');
  await import(pathToFileURL(process.argv[1]).href);
}

/** The start of a clone says something at once, although making the bundle takes a moment. */
function announce() {
  if ((process.argv[2] ?? 'serve') !== 'serve' || /^(?:warn|error)$/.test(process.env.GATEHOUSE_LOG_LEVEL ?? ''))
    return;
  const event = 'bundling the sources, once after each change';
  const line = process.stderr.isTTY
    ? `${new Date().toISOString().slice(11, 23)} info  ${event}`
    : JSON.stringify({ time: new Date().toISOString(), level: 'info', event });
  process.stderr.write(`${line}\n`);
}
