/** The whole conformance suite against this gateway, as its command runs it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { runCommand } from '../../src/testing/process/command.ts';
import { gatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';

test('the conformance suite finds nothing lost in this gateway', async (t) => {
  const home = await gatewayHome(t);
  const file = path.join(home.folder, 'gatehouse.yaml');
  assert.equal((await runCommand(home, ['conformance', '--config', '--output', file])).code, 0);
  const { url } = await startGatewayProcess(t, { home, yaml: readFileSync(file, 'utf8') });
  const { code, out, err } = await runCommand(home, ['conformance', '--base-url', url, '--key', INFERENCE_KEY]);
  assert.equal(code, 0, out + err);
  assert.match(out, /\d{3} kept, 0 lost/);
});
