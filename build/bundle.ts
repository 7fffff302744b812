/**
 * Builds the gateway as one bundle: `node build/bundle.ts FOLDER`. `main.js` starts it. The folder also has the modules that are
 * loaded on demand, the entries of worker threads, the files of the console, and the licences of the bundled packages.
 *
 * Loading some 1,600 modules one by one takes more than a second of every start, and makes their exports slower to access.
 * Packages that are imported on demand stay outside: few installations need them, some are native, some are not installed.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build, type Metafile, type Plugin } from 'esbuild';
import { bundleAgent } from './agent.ts';
import { buildConsole } from './console.ts';

const ROOT = path.join(import.meta.dirname, '..');
/** The folder of a package, of what esbuild names as an input. */
const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;

const onDemand: Plugin = {
  name: 'packages imported on demand stay outside',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^[^./]/ }, ({ kind, path: name }) =>
      kind === 'dynamic-import' ? { path: name, external: true } : undefined,
    ),
};

/**
 * `import` of these asks for every export at once, and some of node:http are the whole of Node's fetch: 60 ms and 5 MB of a start.
 * What `require` gives is asked for by name.
 */
const requiredModules: Plugin = {
  name: 'Node modules whose exports are loaded on demand',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^node:https?$/ }, ({ kind, path: name }) =>
      kind === 'import-statement' ? { path: name, namespace: 'required' } : undefined,
    );
    onLoad({ filter: /./, namespace: 'required' }, ({ path: name }) => ({
      contents: `module.exports = require('${name}')`,
    }));
  },
};

async function bundle(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: {
      main: 'src/main.ts',
      // A thread or process starts at a file of its own, which is searched for next to the file that starts it.
      'count-worker': 'src/inference/tokens/count-worker.ts',
      'docx-worker': 'src/inference/documents/docx-worker.ts',
      'pdf-worker': 'src/inference/documents/pdf-worker.ts',
      'page-worker': 'src/inference/documents/page-worker.ts',
      embedder: 'src/providers/local/embedder.ts',
      'egress-proxy': 'src/egress-proxy/egress-proxy.ts',
      'sandbox-init': 'src/egress-proxy/sandbox-init.ts',
      'sandbox-pod': 'src/sandboxes/kubernetes/pod.ts',
    },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    external: ['pg-native'],
    plugins: [onDemand, requiredModules],
    // Packages of CommonJS ask for Node's modules by `require`.
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
    metafile: true,
    logLevel: 'warning',
  });
  const agent = await bundleAgent(path.join(folder, 'agent'));
  const ofConsole = await buildConsole(path.join(folder, 'console'));
  const inputs = { ...metafile.inputs, ...agent.inputs, ...ofConsole.inputs };
  writeFileSync(path.join(folder, 'LICENSES.txt'), licences(inputs));
}

function licences(inputs: Metafile['inputs']): string {
  const packages = new Set(Object.keys(inputs).flatMap((input) => PACKAGE.exec(input) ?? []));
  return [...packages]
    .sort()
    .map(licence)
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/** From a file of its own, or from the readme. */
function licence(folder: string): string {
  const read = (name: string) => readFileSync(path.resolve(ROOT, folder, name), 'utf8');
  const names = readdirSync(path.resolve(ROOT, folder));
  const manifest = JSON.parse(read('package.json')) as Record<string, string>;
  const texts = names.filter((name) => /^licen[cs]e/i.test(name)).map(read);
  if (texts.length === 0) {
    const readme = names.find((name) => /^readme/i.test(name));
    texts.push(...(readme === undefined ? [] : (/^#+ licen[cs]e$.*/ims.exec(read(readme)) ?? [])));
  }
  if (texts.length === 0) throw new Error(`${manifest['name']} has no licence to pass on`);
  return `${manifest['name']} ${manifest['version']} (${manifest['license']})\n\n${texts.join('\n\n').trim()}\n`;
}

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: node build/bundle.ts FOLDER');
await bundle(path.resolve(folder));
