/** Every path that the three client libraries call is served, or docs/guides/compatibility.md says why not. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { operations } from '../../src/operations.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { type CalledPath, pathsOfOpenRouter, pathsOfResources } from './called-paths.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) }, { providers: { a: {} } });
/** For callers outside of a programme, its operations do not exist. */
const hidden = operations({ limits: { inferenceBodyBytes: 1024 } } as Parameters<typeof operations>[0])
  .filter(({ access }) => access.programme !== undefined)
  .map(({ method, path }) => ({ method, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }));

const LIBRARIES: Record<string, CalledPath[]> = {
  '@openrouter/sdk': pathsOfOpenRouter(),
  openai: pathsOfResources('openai'),
  '@anthropic-ai/sdk': pathsOfResources('@anthropic-ai/sdk').map(({ method, path }) => ({
    method,
    path: path.replace(/^\/v1/, ''),
  })),
};

/** The rows of the table: a library, and the pattern of a path with the reason. */
const rows = readFileSync('docs/guides/compatibility.md', 'utf8')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, library = '', paths = '']) => library.startsWith('`') && paths.startsWith('`/'))
  .flatMap(([, library, paths, reason]) =>
    paths!.split(', ').map((path) => ({
      library: library!.replaceAll('`', ''),
      path,
      pattern: new RegExp(`^${path.replaceAll('`', '').replaceAll('*', '.*')}$`),
      reason: reason!,
    })),
  );

/** Whether an operation answered, with whatever status. */
async function isServed({ method, path }: CalledPath): Promise<boolean> {
  if (hidden.some((each) => each.method === method && each.pattern.test(path))) return true;
  for (const key of [MANAGEMENT_KEY, INFERENCE_KEY]) {
    const response = await fetch((path.startsWith('/api/') ? gateway.url : gateway.api) + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(method !== 'GET' && { body: '{}' }),
    });
    const text = await response.text();
    if (response.status === 405 || /there is no resource at|does not exist here/.test(text)) return false;
    if (response.status !== 403) return true;
  }
  return true;
}

for (const [library, paths] of Object.entries(LIBRARIES)) {
  test(`${library}: every path is served or has its reason, and every reason is needed`, async () => {
    assert.ok(paths.length > 100, `${paths.length} paths found`);
    const missing: string[] = [];
    for (const called of paths) if (!(await isServed(called))) missing.push(called.path);
    const own = rows.filter((row) => row.library === library);
    assert.ok(own.every(({ reason }) => reason.length > 5));
    assert.deepEqual(
      missing.filter((path) => !own.some(({ pattern }) => pattern.test(path))),
      [],
      'without a reason',
    );
    const unneeded = own.filter(({ pattern }) => !missing.some((path) => pattern.test(path)));
    assert.deepEqual(
      unneeded.map(({ path }) => path),
      [],
      'served now, so their reasons go',
    );
  });
}
