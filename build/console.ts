/**
 * Builds the console into static files: scripts and styles whose names contain a hash of their content, the page that
 * loads them, and each of them compressed, so that the gateway only reads them.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';

const ROOT = path.join(import.meta.dirname, '..');
const ENTRY = 'console/main.tsx';

/** @returns what was bundled */
export async function buildConsole(folder: string): Promise<Metafile> {
  mkdirSync(folder, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: { console: ENTRY },
    outdir: folder,
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    legalComments: 'none',
    tsconfigRaw: {},
    define: { DESTINATION_TYPES: JSON.stringify(destinationTypes()) },
    metafile: true,
    logLevel: 'warning',
  });
  const page = readFileSync(path.join(ROOT, 'console', 'index.html'), 'utf8');
  writeFileSync(path.join(folder, 'index.html'), page.replace('<!-- built -->', tags(metafile)));
  for (const name of readdirSync(folder)) compress(path.join(folder, name));
  return metafile;
}

interface Described {
  components: { schemas: { DestinationConfig: { $defs: object } } };
}

/** The config of each type of destination. */
function destinationTypes(): object {
  const document = JSON.parse(readFileSync(path.join(ROOT, 'openapi.json'), 'utf8')) as Described;
  return document.components.schemas.DestinationConfig['$defs'];
}

/** The files that the first page needs, so that the browser asks for all of them at once. */
function tags({ outputs }: Metafile): string {
  const [entry, output] = Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === ENTRY) ?? [];
  if (entry === undefined || output === undefined) throw new Error('the console has no entry');
  const first = output.imports.filter(({ kind }) => kind === 'import-statement').map(({ path: each }) => each);
  return [
    ...(output.cssBundle === undefined ? [] : [`<link rel="stylesheet" href="${path.basename(output.cssBundle)}">`]),
    ...first.map((each) => `<link rel="modulepreload" href="${path.basename(each)}">`),
    `<script type="module" src="${path.basename(entry)}"></script>`,
  ].join('\n    ');
}

function compress(file: string): void {
  const content = readFileSync(file);
  writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
}
