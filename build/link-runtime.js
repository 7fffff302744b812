/**
 * Links the Node.js of the package into `node_modules/.bin`, where npm finds it for scripts. npm 10, which comes with
 * Node.js 20 and 22, removes that link: it cleans up after the packages for other platforms, whose links have the same name.
 */
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';

const root = path.join(import.meta.dirname, '..');
const folder = path.join(root, 'node_modules', '.bin');
const link = path.join(folder, 'node');
const { optionalDependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
// Only the one for this platform is installed.
const runtime = Object.keys(optionalDependencies)
  .filter((name) => name.startsWith('node-'))
  .map((name) => path.join('..', name, 'bin', 'node'))
  .find((file) => existsSync(path.join(folder, file)));

if (runtime !== undefined && !existsSync(link)) {
  mkdirSync(folder, { recursive: true });
  symlinkSync(runtime, link);
}
