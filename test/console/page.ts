/** The console for gateways that run from their sources. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buildConsole } from '../../build/console.ts';

/** Builds it as the package has it; returns the folder, which is removed when the test ends. */
export async function builtConsole(test: { after(close: () => void): void }): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-console-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  await buildConsole(folder);
  return folder;
}
