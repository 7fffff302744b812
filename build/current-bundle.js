/** The bundle of the sources as they are (`bundle.ts`), which is rebuilt whenever a source or a dependency changed. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '..');
const BUNDLER = path.join(import.meta.dirname, 'bundle.ts');
const SOURCES = path.join(ROOT, 'src');
const CONSOLE = path.join(ROOT, 'console');
const BUNDLES = path.join(ROOT, 'node_modules', '.cache', 'gatehouse');
/** A gateway that runs still loads from the bundle it was started from, whatever was changed since. */
const KEPT_BUNDLES = 20;

/**
 * The folder of the bundle; undefined if it cannot be built.
 *
 * @param onMake called before one is made, which takes a moment
 */
export function currentBundle(onMake = () => {}) {
  const folder = path.join(BUNDLES, versionOfSources());
  return existsSync(folder) || make(folder, onMake) ? folder : undefined;
}

/** Another one as soon as a file was written, added or removed. */
function versionOfSources() {
  const files = [SOURCES, CONSOLE].flatMap((folder) =>
    readdirSync(folder, { recursive: true })
      .filter((name) => /(?<!\.test|\.gen)\.(?:tsx?|json|css|html|svg)$/.test(name))
      .map((name) => path.join(folder, name)),
  );
  const hash = createHash('sha256');
  for (const file of [
    ...files.sort(),
    BUNDLER,
    path.join(import.meta.dirname, 'console.ts'),
    path.join(ROOT, 'openapi.json'),
    path.join(ROOT, 'package.json'),
    path.join(ROOT, 'package-lock.json'),
  ]) {
    const { mtimeMs, size } = statSync(file);
    hash.update(`${file} ${mtimeMs} ${size}\n`);
  }
  return hash.digest('hex').slice(0, 32);
}

/** Whether there is a bundle now. It appears whole or not at all, whoever else makes it meanwhile or is killed over it. */
function make(folder, onMake) {
  if (!existsSync(path.join(ROOT, 'node_modules', 'esbuild'))) return false;
  onMake();
  const unfinished = `${folder}.${process.pid}`;
  const { status } = spawnSync(process.execPath, [BUNDLER, unfinished], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    if (status === 0) {
      // Below node_modules Node.js would look into each file for what it is.
      writeFileSync(path.join(unfinished, 'package.json'), '{ "type": "module" }\n');
      renameSync(unfinished, folder);
    }
    removeOld();
  } catch {
    // Another process was quicker, or nothing can be written here.
  }
  rmSync(unfinished, { recursive: true, force: true });
  return existsSync(folder);
}

function removeOld() {
  const made = readdirSync(BUNDLES).map((name) => path.join(BUNDLES, name));
  const age = new Map(made.map((each) => [each, statSync(each).mtimeMs]));
  made.sort((a, b) => age.get(b) - age.get(a));
  for (const old of made.slice(KEPT_BUNDLES)) rmSync(old, { recursive: true, force: true });
}
