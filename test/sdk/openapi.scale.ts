/**
 * Schemathesis against a running gateway: requests that it makes up from openapi.json, valid and broken ones and sequences
 * of them, and every answer held against the document. It needs Python and its package registry, and skips without them.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { describeService } from '../../src/service-document.ts';
import { emptyFolder } from '../../src/testing/database/database.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { runCommand } from '../../src/testing/process/command.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';

const run = promisify(execFile);

const SCHEMATHESIS = 'schemathesis==4.32.5';
const EXAMPLES = process.env['GATEHOUSE_SCHEMATHESIS_EXAMPLES'] ?? '60';
/** Seconds for each kind of caller. */
const MOST_SECONDS = process.env['GATEHOUSE_SCHEMATHESIS_SECONDS'] ?? '180';

/** Checks that cannot hold here, with the reason. */
const UNCHECKED = {
  positive_data_acceptance:
    'requests name what must exist (models, workspaces, members, keys), and some members go together only; no schema says so',
};

/** Answered with 501, as RFC 7644 (3.11, 3.7) has it, which a check takes for a fault of the server. */
const NOT_SUPPORTED = '^/scim/v2/(Me|Bulk)$';

interface Document {
  servers: { url: string }[];
  paths: Record<string, Record<string, { description?: string }>>;
}

/** The operations for one kind of caller, all below one root: Schemathesis reads the servers of the document only. */
function documentFor(...kinds: string[]): string {
  const document = JSON.parse(describeService()) as Document;
  const [{ url: prefix } = { url: '' }] = document.servers;
  const paths: Document['paths'] = {};
  for (const [name, { servers, ...operations }] of Object.entries(document.paths)) {
    const chosen = Object.entries(operations).filter(([, { description = '' }]) => kinds.includes(description));
    if (chosen.length > 0) paths[(servers === undefined ? prefix : '') + name] = Object.fromEntries(chosen);
  }
  return JSON.stringify({ ...document, servers: [{ url: '/' }], paths });
}

/** Path of the program; undefined where it cannot be had, of which the test says why. */
async function schemathesis(t: TestContext): Promise<string | undefined> {
  const folder = emptyFolder(t);
  try {
    await run('python3', ['-m', 'venv', folder]);
  } catch {
    t.skip('python3 with venv is not here');
    return undefined;
  }
  const bin = path.join(folder, 'bin');
  try {
    await run(path.join(bin, 'pip'), ['install', '--quiet', SCHEMATHESIS]);
  } catch (error) {
    t.skip(`${SCHEMATHESIS} cannot be installed: ${String(error).slice(0, 300)}`);
    return undefined;
  }
  return path.join(bin, 'schemathesis');
}

test('schemathesis finds no answer that the document does not allow, for any kind of caller', async (t) => {
  const program = await schemathesis(t);
  if (program === undefined) return;
  const gateway = await startGatewayProcess(t, { yaml: {}, env: { GATEHOUSE_LOG_REQUESTS: 'off' } });
  const made = await runCommand(gateway.home, ['scim', 'token', 'create', '--print']);
  const scimToken = /sk-\S+/.exec(made.out)?.[0] ?? '';
  const callers: [kinds: string[], token: string][] = [
    [['Requires a management key.', 'Requires any valid key.', 'Requires no key.'], MANAGEMENT_KEY],
    [['Requires an inference key.', 'Requires any valid key.'], INFERENCE_KEY],
    [['Requires a SCIM token.'], scimToken],
  ];
  for (const [kinds, token] of callers) {
    const folder = emptyFolder(t);
    const file = path.join(folder, 'openapi.json');
    writeFileSync(file, documentFor(...kinds));
    const args = ['run', file, '--url', gateway.url, '-H', `Authorization: Bearer ${token}`];
    const limits = [
      '--max-examples',
      EXAMPLES,
      '--max-time',
      MOST_SECONDS,
      '--workers',
      '1',
      '--request-timeout',
      '30',
    ];
    const checks = ['--checks', 'all', '--exclude-checks', Object.keys(UNCHECKED).join(',')];
    const skipped = ['--exclude-path-regex', NOT_SUPPORTED];
    const how = [
      ...skipped,
      '--continue-on-failure',
      '--suppress-health-check',
      'all',
      '--no-color',
      '--warnings',
      'off',
    ];
    const ended: { code: number; stdout: string } = await run(program, [...args, ...limits, ...checks, ...how], {
      cwd: folder,
      maxBuffer: 64 << 20,
    }).then(
      ({ stdout }) => ({ code: 0, stdout }),
      (error: { code: number; stdout: string }) => error,
    );
    t.diagnostic(ended.stdout.slice(ended.stdout.lastIndexOf('Test cases:')));
    assert.equal(ended.code, 0, ended.stdout.slice(-20_000));
  }
  assert.ok(!gateway.ended, 'the gateway runs on');
  const failures = gateway.log.filter(({ event }) => event === 'request failed');
  assert.deepEqual(failures, [], 'nothing failed inside of the gateway');
});

const GENERATOR = ['openapi-typescript@7.13.0', 'typescript@5.9.3'];

/** What a client's author writes against the generated types. */
const CLIENT = `
import type { components, operations, paths } from './api';
type Schemas = components['schemas'];
export const name: Schemas['Guardrail']['name'] = 'strict';
export const limit: Schemas['Key']['limit'] = null;
export const finish: Schemas['ChatCompletion']['choices'][number]['finish_reason'] = 'stop';
export const request: Schemas['ChatRequest'] = {
  messages: [{ role: 'user', content: 'hi' }],
  deferred_tools: { protocol: 'v1', profile: 'portable', validation: 'runtime', search: { type: 'bm25' } },
};
type Got = operations['getGuardrail']['responses'][200]['content']['application/json']['data'];
export const guardrail: (got: Got) => Schemas['Guardrail'] = (got) => got;
type Limited = paths['/chat/completions']['post']['responses'][429]['content']['application/json'];
export const code: (limited: Limited) => number = ({ error }) => error.code;
// @ts-expect-error a name is text
export const wrong: Schemas['Guardrail']['name'] = 5;
// @ts-expect-error a conversation has messages
export const empty: Schemas['ChatRequest'] = {};
`;

test('a generator of clients makes types of the document that compile and hold', async (t) => {
  const folder = emptyFolder(t);
  const inside = { cwd: folder };
  writeFileSync(path.join(folder, 'package.json'), '{"private":true}');
  try {
    await run('npm', ['install', '--no-audit', '--no-fund', ...GENERATOR], inside);
  } catch (error) {
    t.skip(`${GENERATOR.join(', ')} cannot be installed: ${String(error).slice(0, 300)}`);
    return;
  }
  writeFileSync(path.join(folder, 'openapi.json'), describeService());
  writeFileSync(path.join(folder, 'client.ts'), CLIENT);
  const bin = path.join(folder, 'node_modules', '.bin');
  await run(path.join(bin, 'openapi-typescript'), ['openapi.json', '-o', 'api.ts'], inside);
  const compiled = await run(path.join(bin, 'tsc'), ['--strict', '--noEmit', 'client.ts'], inside).catch(
    (error) => error,
  );
  assert.equal((compiled as { stdout: string }).stdout, '');
});
