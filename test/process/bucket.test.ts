/** Uploaded files in an S3 bucket, with a gateway and commands in processes of their own. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { INFERENCE_KEY, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { runCommand } from '../../src/testing/process/command.ts';
import {
  type GatewayProcess,
  gatewayHome,
  plannedYaml,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import { S3_KEYS, type S3Server, startS3 } from '../../src/testing/upstream/s3-server.ts';

const yaml = plannedYaml('http://127.0.0.1:9');

function variables(s3: S3Server): Record<string, string> {
  return {
    GATEHOUSE_S3_BUCKET: s3.bucket,
    GATEHOUSE_S3_REGION: s3.region,
    GATEHOUSE_S3_ENDPOINT: s3.endpoint,
    GATEHOUSE_S3_PREFIX: 'gatehouse/',
    GATEHOUSE_S3_ACCESS_KEY_ID: S3_KEYS.id,
    GATEHOUSE_S3_SECRET_ACCESS_KEY: S3_KEYS.secret,
  };
}

async function upload(gateway: GatewayProcess, content: string | Buffer) {
  const form = new FormData();
  form.append('file', new Blob([content as string]), 'notes.txt');
  const headers = { authorization: `Bearer ${INFERENCE_KEY}` };
  const response = await fetch(`${gateway.api}/files`, { method: 'POST', headers, body: form });
  return { status: response.status, retry: response.headers.get('retry-after'), body: await response.json() };
}

async function findings(home: Awaited<ReturnType<typeof gatewayHome>>, env: Record<string, string>) {
  const { out } = await runCommand(home, ['doctor', '--json'], env);
  const all = (JSON.parse(out) as { findings: { area: string; level: string; message: string }[] }).findings;
  return all.filter(({ area }) => area === 'files').map(({ level, message }) => `${level} ${message}`);
}

test('files go to the bucket, and doctor and backup say where they are', async (t) => {
  const s3 = await startS3(t);
  const env = variables(s3);
  const home = await gatewayHome(t);
  const onDisk = await startGatewayProcess(t, { home, yaml });
  assert.equal((await upload(onDisk, 'from before the bucket')).status, 200);
  await onDisk.end('SIGTERM');

  const gateway = await startGatewayProcess(t, { home, yaml, env });
  const large = Buffer.alloc(12_000_000, 'text ');
  const { status, body } = await upload(gateway, large);
  assert.equal(status, 200, JSON.stringify(body));
  const [[key, object] = assert.fail()] = [...s3.objects];
  assert.match(key, /^gatehouse\/[0-9a-f-]{36}$/);
  assert.ok(large.equals(object.body));
  assert.deepEqual(await findings(home, env), [
    `note the content of 1 files from before the bucket is still in ${path.join(home.dataDir, 'blobs')}: keep it`,
    `ok s3://${s3.bucket}/gatehouse/ can be written, read and cleaned`,
  ]);
  assert.equal(s3.objects.size, 1, 'the doctor leaves nothing');
  const saved = await runCommand(home, ['backup', path.join(home.folder, 'saved')], env);
  assert.match(saved.out, /content of 1 files is not in it: copy .*blobs\n/);
  assert.match(saved.out, /content of 1 files is not in it: it is in the S3 bucket/);

  await s3.close();
  const refused = await upload(gateway, 'while the bucket is away');
  assert.equal(refused.status, 503);
  assert.equal(refused.retry, '1');
  assert.match(JSON.stringify(refused.body), /storage for files cannot be used/);
  const listed = await fetch(`${gateway.api}/files`, { headers: { authorization: `Bearer ${MANAGEMENT_KEY}` } });
  assert.equal(((await listed.json()) as { data: object[] }).data.length, 2, 'what was refused is not listed');
  assert.match((await findings(home, env))[1]!, /fault s3:.* cannot be used: ECONNREFUSED/);
  assert.deepEqual(await findings(home, {}), [
    'fault the content of 1 files is in an S3 bucket, and none is configured',
  ]);
  assert.deepEqual(s3.violations, []);
  assert.doesNotMatch(JSON.stringify(gateway.log), new RegExp(S3_KEYS.secret));
});
