/** The manifests of deploy/kubernetes, by the schemas of Kubernetes and by what the gateway does. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { loadConfig } from '../../../src/base/config.ts';
import { remoteDoor } from '../../../src/sandboxes/index.ts';
import { violations } from '../../../src/testing/kubernetes/admission.ts';
import { manifests } from '../../../src/testing/kubernetes/sandboxes.ts';
import { type AnyObject, problemsOf } from '../../../src/testing/kubernetes/schema.ts';

const FOLDER = path.join(import.meta.dirname, '..', '..', '..', 'deploy', 'kubernetes');
const objects = manifests();
const found = (kind: string, name: string): AnyObject => {
  const object = objects.find(({ kind: its, metadata }) => its === kind && metadata.name === name);
  assert.ok(object, `there is no ${kind} ${name}`);
  return object;
};

test('every object fits the schema of its kind', async () => {
  assert.ok(objects.length >= 14);
  for (const object of objects)
    assert.deepEqual(await problemsOf(object), [], `${object.kind} ${object.metadata.name}`);
});

test('what the schemas do not have is found', async () => {
  const wrong = async (kind: string, name: string, change: (object: AnyObject) => void) => {
    const object = structuredClone(found(kind, name));
    change(object);
    return (await problemsOf(object)).join('; ');
  };
  const pod = (object: AnyObject) => object['spec'].template.spec;
  const typo = (object: AnyObject) => Object.assign(pod(object).securityContext, { runAsNoneRoot: true });
  assert.match(await wrong('StatefulSet', 'gatehouse', typo), /securityContext\/runAsNoneRoot: unknown field/);
  const text = (object: AnyObject) => Object.assign(object['spec'], { replicas: 'one' });
  assert.match(await wrong('StatefulSet', 'gatehouse', text), /\/spec\/replicas/);
  const missing = (object: AnyObject) => delete object['roleRef'];
  assert.match(await wrong('RoleBinding', 'gatehouse-sandboxes', missing), /roleRef/);
  const policy = (object: AnyObject) => Object.assign(object['spec'], { egres: [] });
  assert.match(await wrong('NetworkPolicy', 'deny-all', policy), /\/spec\/egres: unknown field/);
});

test('kustomize has every file', () => {
  const { resources } = parse(readFileSync(path.join(FOLDER, 'kustomization.yaml'), 'utf8')) as { resources: string[] };
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml');
  assert.deepEqual(resources.toSorted(), files.toSorted());
});

test('the configuration is valid, and the policies open its ports and no others', () => {
  const text = found('ConfigMap', 'gatehouse')['data']['gatehouse.yaml'] as string;
  const env = { GATEHOUSE_CONFIG: 'gatehouse.yaml' };
  const { sandboxes } = loadConfig({ env, cwd: '/', cores: 1, readFile: () => text, kinds: [] });
  assert.equal(sandboxes.driver, 'kubernetes');
  assert.equal(sandboxes.kubernetes?.namespace, found('NetworkPolicy', 'deny-all').metadata.namespace);
  const { from, to } = remoteDoor(sandboxes)!.ports;
  const [egress] = found('NetworkPolicy', 'allow-egress-proxy')['spec'].egress;
  const [ingress] = found('NetworkPolicy', 'gateway')['spec'].ingress;
  for (const { ports } of [egress, ingress]) assert.deepEqual(ports, [{ protocol: 'TCP', port: from, endPort: to }]);
});

test('a namespace of the level restricted accepts the pod of the gateway', () => {
  const { spec } = found('StatefulSet', 'gatehouse')['spec'].template;
  assert.deepEqual(violations(spec), []);
  const root = structuredClone(spec);
  root.securityContext.runAsNonRoot = false;
  assert.deepEqual(violations(root), ['gatehouse: runAsNonRoot != true']);
  for (const name of ['gatehouse', 'gatehouse-sandboxes']) {
    assert.equal(found('Namespace', name).metadata.labels?.['pod-security.kubernetes.io/enforce'], 'restricted');
  }
});
