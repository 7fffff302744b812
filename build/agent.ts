/** Bundles the agent that ships with the gateway, `src/agent`, as one file: it runs in a sandbox, which has nothing else of the gateway. */
import path from 'node:path';
import { build, type Metafile } from 'esbuild';

/** Writes `main.js` into the folder. */
export async function bundleAgent(folder: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: path.join(import.meta.dirname, '..'),
    entryPoints: { main: 'src/agent/main.ts' },
    outdir: folder,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    metafile: true,
    logLevel: 'warning',
  });
  return metafile;
}
