/** What `deploy/` has for several processes of the gateway on one database: by the schemas, and by what the gateway reads. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { VARIABLES } from '../../src/base/config/environment.ts';
import { loadConfig } from '../../src/base/config.ts';
import { KINDS } from '../../src/providers/index.ts';
import { violations } from '../../src/testing/kubernetes/admission.ts';
import { type AnyObject, problemsOf } from '../../src/testing/kubernetes/schema.ts';
import { ROOT } from '../rules/source-files.ts';

const DEPLOY = path.join(ROOT, 'deploy');
const text = (name: string) => readFileSync(path.join(DEPLOY, name), 'utf8');
const lacks = (program: string, ...args: string[]) =>
  spawnSync(program, args).error !== undefined && `needs ${program}`;

/** @param secret further variables */
function configOf(yaml: string, secret: Record<string, string> = {}) {
  const kek = Buffer.alloc(32).toString('base64');
  const env = { ...secret, GATEHOUSE_CONFIG: 'gatehouse.yaml', GATEHOUSE_KEK: kek };
  return loadConfig({ env, cwd: '/', cores: 1, readFile: () => yaml, kinds: KINDS });
}

test('kustomize makes objects of the patches that fit their schemas, and pods that outlive their drain', {
  skip: lacks('kubectl', 'version', '--client'),
}, async () => {
  const { stdout, stderr } = spawnSync('kubectl', ['kustomize', path.join(DEPLOY, 'kubernetes-replicated')], {
    encoding: 'utf8',
  });
  const objects = parseAllDocuments(stdout).map((document) => document.toJS() as AnyObject);
  assert.ok(objects.length >= 15, stderr);
  for (const object of objects) assert.deepEqual(await problemsOf(object), [], object.kind);
  const one = (kind: string) => objects.find((object) => object.kind === kind && object.metadata.name === 'gatehouse')!;
  const { replicas, template } = one('StatefulSet')['spec'];
  assert.equal(replicas, 3);
  assert.deepEqual(violations(template.spec), []);
  assert.deepEqual(one('PodDisruptionBudget')['spec'].selector, one('StatefulSet')['spec'].selector);
  const [container] = template.spec.containers;
  assert.equal(container.envFrom[0].secretRef.optional, false);
  // The variables of deploy/kubernetes are still there.
  const names = container.env.map(({ name }: { name: string }) => name);
  for (const name of ['DATABASE_URL', 'GATEHOUSE_KEK', 'GATEHOUSE_PEER_HOST', 'GATEHOUSE_DATA_DIR']) {
    assert.ok(names.includes(name), name);
  }
  // The secret has what the head of kustomization.yaml says.
  const named = text('kubernetes-replicated/kustomization.yaml').matchAll(/--from-literal=(S3_\w+)=/g);
  const secret = Object.fromEntries([...named].map(([, name]) => [name, 'value']));
  const { limits, blobs, sandboxes } = configOf(one('ConfigMap')['data']['gatehouse.yaml'], secret);
  assert.ok(template.spec.terminationGracePeriodSeconds * 1000 > limits.drainDelayMs + limits.drainMs);
  assert.ok(container.readinessProbe.periodSeconds * 3000 <= limits.drainDelayMs, 'the endpoints forget it in time');
  assert.equal(blobs.s3?.keys?.accessKeyId, 'value');
  assert.equal(sandboxes.driver, 'kubernetes');
});

interface Service {
  environment?: Record<string, string>;
  stop_grace_period?: string;
  ports?: string[];
  volumes?: string[];
}

test('the compose file has two gateways with a journal each, on one database, key and bucket', () => {
  const { services } = parse(text('compose/compose.yaml'), { merge: true }) as { services: Record<string, Service> };
  const [first, second] = [services['gateway-1']!, services['gateway-2']!];
  assert.deepEqual(first.environment, second.environment);
  assert.notDeepEqual(first.volumes, second.volumes);
  assert.equal(first.ports, undefined);
  assert.match(services['balancer']?.ports?.[0] ?? '', /^127\.0\.0\.1:/);
  const known = [...VARIABLES.map(({ name }) => name), ...KINDS.flatMap(({ environment = [] }) => environment)];
  for (const name of Object.keys(first.environment ?? {})) assert.ok(known.includes(name), name);
  for (const name of ['DATABASE_URL', 'GATEHOUSE_KEK', 'GATEHOUSE_S3_BUCKET']) {
    assert.match(first.environment?.[name] ?? '', /\$\{\w+:\?/, `${name} must be set`);
  }
  const { limits, trustedProxies } = configOf(text('compose/settings.yaml'));
  assert.ok(Number.parseInt(first.stop_grace_period ?? '', 10) * 1000 > limits.drainDelayMs + limits.drainMs);
  const [, inter, fall] = /check inter (\d+)s fall (\d+)/.exec(text('compose/haproxy.cfg')) ?? [];
  assert.ok(Number(inter) * Number(fall) * 1000 < limits.drainDelayMs, 'the balancer forgets it in time');
  assert.ok(trustedProxies.length > 0);
  for (const name of ['For', 'Proto', 'Host', 'Prefix']) {
    assert.match(
      text('compose/haproxy.cfg'),
      new RegExp(`^  http-request (set|del)-header X-Forwarded-${name}\\b`, 'm'),
      `no client says ${name}`,
    );
  }
});

test('HAProxy accepts its configuration', { skip: lacks('haproxy', '-v') }, () => {
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', path.join(DEPLOY, 'compose/haproxy.cfg')], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
});

/** What `debian:bookworm-slim` has, and what the Dockerfile installs. */
const LIBRARIES =
  /^(?:lib(?:c|m|dl|pthread|gcc_s|stdc\+\+|atomic)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+|linux-vdso\.so\.1)$/;

test('the Node.js of the package needs no library that the images lack', { skip: lacks('ldd', '--version') }, () => {
  const { status, stdout } = spawnSync('ldd', [process.execPath], { encoding: 'utf8' });
  assert.equal(status, 0);
  const names = stdout.split('\n').flatMap((line) => line.trim().split(' ')[0] || []);
  assert.deepEqual(
    names.map((name) => path.basename(name)).filter((name) => !LIBRARIES.test(name)),
    [],
  );
});
