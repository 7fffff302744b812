/** The Kubernetes driver where something is missing, refused, cut or dead. With stateful sets and version 4 of exec. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { createAuthority, createPlaceholder, type EgressProxy } from '../../../src/egress-proxy/index.ts';
import type { Sandbox, Sandboxes } from '../../../src/sandboxes/index.ts';
import { until } from '../../../src/testing/clock/clock.ts';
import { root, startTlsHost } from '../../../src/testing/egress-proxy/hosts.ts';
import { entryFor, openFolder } from '../../../src/testing/egress-proxy/supervised.ts';
import type { FakeCluster } from '../../../src/testing/kubernetes/cluster.ts';
import { clusterObjects, openKubernetes, skip, startCluster } from '../../../src/testing/kubernetes/sandboxes.ts';
import type { AnyObject } from '../../../src/testing/kubernetes/schema.ts';
import { shell } from '../../../src/testing/sandboxes/sandboxes.ts';

const HOLDER = path.join(import.meta.dirname, '..', '..', '..', 'src', 'testing', 'kubernetes', 'holder.ts');
const BOUND = 'api.bound.test';
const VALUE = 'REAL-secret-value-of-kubernetes';
const P = createPlaceholder();
const ends: (() => unknown)[] = [];
const place = { after: (end: () => unknown) => void ends.unshift(end) };

describe('kubernetes', { skip }, () => {
  let cluster: FakeCluster;
  let sandboxes: Sandboxes;
  let egressProxy: EgressProxy;
  let box: Sandbox;
  let bound: Awaited<ReturnType<typeof startTlsHost>>;
  before(async () => {
    bound = await startTlsHost(BOUND);
    const folder = openFolder(place);
    const runtimeClass = {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'gvisor' },
      handler: 'runsc',
    };
    cluster = await startCluster(place, folder, {
      ...{ objects: [...clusterObjects(), runtimeClass], protocols: ['v4.channel.k8s.io'] },
    });
    const entry = entryFor(folder, { [BOUND]: bound.port });
    ({ sandboxes, egressProxy } = openKubernetes(place, cluster, {
      folder: openFolder(place),
      entry,
      extraCa: root.certificate,
    }));
    const authority = await createAuthority(systemClock);
    const secrets = [{ name: 'token', value: VALUE, hosts: [BOUND], placeholder: P }];
    const settings = { secrets, domains: ['*'], ports: [443], authority };
    const network = { certificate: authority.certificate, load: async () => settings, onRefused: () => {} };
    box = await sandboxes.create({ id: 'box', owner: 'test', network, environment: { TOKEN: P } });
  });
  after(async () => {
    for (const end of ends) await end();
    await bound?.close();
  });

  test('it says what isolates sandboxes', async () => {
    const { isolation, problems } = await sandboxes.examine();
    assert.match(
      isolation ?? '',
      /^kubernetes v1\.37\.0-fake: .* \(stateful sets\), network policies, runtime class gvisor$/,
    );
    assert.deepEqual(problems, []);
  });

  test('a pod has no rights, no token, no names and limits', () => {
    const pod = cluster.store.get('pods', 'box-sandbox-0')!;
    const { containers, securityContext, ...spec } = pod['spec'];
    assert.deepEqual(
      [spec.automountServiceAccountToken, spec.enableServiceLinks, spec.dnsPolicy, spec.runtimeClassName],
      [false, false, 'None', 'gvisor'],
    );
    assert.deepEqual(
      [securityContext.runAsNonRoot, securityContext.seccompProfile],
      [true, { type: 'RuntimeDefault' }],
    );
    const [{ securityContext: own, resources }] = containers;
    assert.deepEqual([own.readOnlyRootFilesystem, own.capabilities], [true, { drop: ['ALL'] }]);
    assert.deepEqual(Object.keys(resources.limits), ['cpu', 'memory', 'ephemeral-storage']);
  });

  test('it reaches a host through the egress proxy, which alone knows the secret', async () => {
    const script = `node --input-type=module -e 'const r = await fetch(process.argv[1], { headers: { authorization: process.env.TOKEN } });
      console.log(r.status, r.headers.get("x-echo-authorization"))' "$1"`;
    const { out, errors } = await shell(box, script, `https://${BOUND}/`);
    assert.equal(out, `200 ${P}\n`, errors);
    assert.deepEqual(
      bound.seen.map(({ headers }) => headers['authorization']),
      [VALUE],
    );
    const direct = `node -e 'require("net").connect(${cluster.port}, "127.0.0.1").on("connect", () => console.log("ESCAPED")).on("error", (e) => console.log(e.code))'`;
    assert.equal((await shell(box, direct)).out, 'ECONNREFUSED\n');
  });

  test('what commands are and get is in no request to the API', async () => {
    await shell(box, 'true', 'argument-of-a-command');
    const seen = JSON.stringify(cluster.commands);
    assert.ok(!seen.includes('argument-of-a-command') && !seen.includes(P));
  });

  test('a slow reader and a slow command hold up nothing else, and lose nothing', async () => {
    const bytes = 3_000_000;
    const slow = await box.exec({
      argv: ['sh', '-c', `head -c ${bytes} /dev/zero; cat >/dev/null`],
      outputBytes: null,
    });
    slow.stdin.write(Buffer.alloc(bytes));
    assert.equal((await shell(box, 'echo meanwhile')).out, 'meanwhile\n');
    let read = 0;
    for await (const chunk of slow.stdout) {
      read += (chunk as Buffer).length;
      if (read === bytes) slow.stdin.end();
    }
    assert.deepEqual([read, await slow.ended], [bytes, { code: 0, reason: 'exit' }]);
  });

  test('a command whose connection is cut is lost and ends, and the next one runs', async () => {
    const mark = `98${process.pid}.1`;
    const cut = await box.exec({
      argv: ['sh', '-c', 'setsid sleep "$1" & echo started; exec sleep "$1"', 'sh', mark],
      timeoutMs: null,
    });
    cut.stdout.once('data', () => cluster.cutCommands());
    assert.deepEqual(await cut.ended, { code: null, reason: 'lost' });
    assert.equal((await shell(box, 'echo fine')).out, 'fine\n');
    await until(() => processesWith(mark).length === 0, 'no process of the command is left');
  });

  test('a pod that took the place of the checked one runs nothing', async () => {
    const one = await sandboxes.create({ id: 'evicted', owner: 'test' });
    const running = await one.exec({ argv: ['sleep', '1000'], timeoutMs: null });
    const replaced = cluster.store.get('pods', 'evicted-sandbox-0')!.metadata.uid;
    cluster.evict('evicted-sandbox-0');
    assert.equal((await running.ended).reason, 'lost');
    const isReady = ({ metadata, status }: AnyObject) => metadata.uid !== replaced && status.conditions?.length > 0;
    await until(
      () => cluster.store.list('pods').some((pod) => pod.metadata.name === 'evicted-sandbox-0' && isReady(pod)),
      'another pod is ready',
    );
    const { reason, errors } = await shell(one, 'echo ran');
    assert.deepEqual([reason, /^the pod of the sandbox was replaced\n/.test(errors)], ['lost', true]);
    await one.stop();
    const again = await sandboxes.create({ id: 'evicted', owner: 'test' });
    assert.equal((await shell(again, 'echo ran')).out, 'ran\n');
    await again.destroy();
  });

  test('what a command leaves ends with it, and what escapes does not hold it up', async () => {
    const mark = `98${process.pid}.2`;
    const left = '(setsid sleep "$1" &); (env -i sleep "$1" &); echo done';
    assert.equal((await shell(box, left, mark)).out, 'done\n');
    await until(() => processesWith(mark).length === 0, 'no process of the command is left');
    const escaped = await shell(box, '(setsid env -i sleep 5 &); sleep 0.1; echo done');
    assert.deepEqual([escaped.out, escaped.code], ['done\n', 0]);
  });

  test('a change that meets another one is made again', async () => {
    let conflicts = 2;
    cluster.fault = ({ verb, resource }) => {
      if (verb !== 'update' || resource !== 'statefulsets' || conflicts === 0) return undefined;
      conflicts -= 1;
      return { status: 409, message: 'Conflict' };
    };
    const one = await sandboxes.create({ id: 'one', owner: 'test' });
    await one.stop();
    cluster.fault = undefined;
    assert.equal(conflicts, 0);
    await sandboxes.destroy('one');
    assert.deepEqual(
      cluster.store.list('persistentvolumeclaims').map(({ metadata }) => metadata.name),
      ['files-box-sandbox-0'],
    );
  });

  test('a right that is missing is named, by the doctor and in the error', async () => {
    cluster.fault = ({ resource }) =>
      resource === 'pods/exec' ? { status: 403, message: 'cannot create pods/exec' } : undefined;
    const { isolation, problems } = await openOther().examine();
    assert.deepEqual([isolation, problems.length], [null, 1]);
    assert.match(
      problems[0]!.message,
      /may not create pods\/exec, get pods\/exec in the namespace gatehouse-sandboxes/,
    );
    cluster.fault = ({ verb, resource }) =>
      verb === 'create' && resource === 'statefulsets' ? { status: 403, message: 'quota' } : undefined;
    await assert.rejects(sandboxes.create({ id: 'two', owner: 'test' }), {
      status: 503,
      message: /with 403: quota\. Apply the roles/,
    });
    cluster.fault = undefined;
    assert.equal(cluster.store.list('leases').length, 1);
  });

  test('without the policy that forbids everything, nothing runs', async () => {
    const policy = cluster.store.get('networkpolicies', 'deny-all')!;
    cluster.store.remove('networkpolicies', 'deny-all');
    const other = openOther();
    await assert.rejects(other.create({ id: 'two', owner: 'test' }), {
      status: 503,
      message: /no network policy forbids all traffic/,
    });
    cluster.store.put('networkpolicies', policy);
    const two = await other.create({ id: 'two', owner: 'test' });
    await two.destroy();
  });

  test('an image that cannot be had, or lacks a program, is named', async () => {
    const unknown = openOther({ kubernetes: { image: 'unknown:1' } });
    await assert.rejects(unknown.create({ id: 'three', owner: 'test' }), {
      status: 503,
      message: /ErrImagePull: cannot pull unknown:1/,
    });
    const programs = [{ name: 'tool', path: '/nowhere' }];
    await assert.rejects(sandboxes.create({ id: 'three', owner: 'test', programs }), {
      status: 503,
      message: /the image has no \/opt\/tool/,
    });
    await sandboxes.destroy('three');
  });

  test('a pod that Kubernetes does not create is an error with its reason', async () => {
    const timer: Clock['timer'] = (delayMs, run) => systemClock.timer(delayMs === 180_000 ? 200 : delayMs, run);
    const impatient = openOther({ clock: { ...systemClock, timer } });
    cluster.refusePods('exceeded quota: sandboxes');
    const refused = { status: 503, message: /not ready within 180 s: FailedCreate: exceeded quota: sandboxes/ };
    await assert.rejects(impatient.create({ id: 'three', owner: 'test' }), refused);
    cluster.refusePods(undefined);
    await impatient.destroy('three');
  });

  test('a pod that policies do not confine is refused, and leaves nothing', async () => {
    const folder = openFolder(place);
    const open = await startCluster(place, folder, { enforcesPolicies: false });
    const { sandboxes: loose } = openKubernetes(place, open, { folder, egressProxy });
    await assert.rejects(loose.create({ id: 'box', owner: 'test' }), {
      status: 503,
      message: /can be reached, but network policies must prevent that/,
    });
    for (const plural of ['pods', 'leases', 'statefulsets', 'persistentvolumeclaims']) {
      assert.deepEqual(open.store.list(plural), [], plural);
    }
  });

  test('an API server that is away is an error that can be retried, and is found again', async () => {
    const { port } = cluster;
    await cluster.away();
    const other = openOther();
    const away = { status: 503, message: /API server cannot be reached: ECONNREFUSED/ };
    await assert.rejects(other.create({ id: 'four', owner: 'test' }), away);
    await assert.rejects(sandboxes.create({ id: 'four', owner: 'test' }), away);
    await assert.rejects(box.exec({ argv: ['true'] }), { status: 503 });
    await cluster.listen(port);
    assert.equal((await shell(box, 'echo back')).out, 'back\n');
    await (await other.create({ id: 'four', owner: 'test' })).destroy();
  });

  test('a gateway that was killed is succeeded once its lease has expired, and claims stay', async (t) => {
    const mark = `98${process.pid}.3`;
    const holder = spawn(process.execPath, [HOLDER, cluster.kubeconfig, openFolder(t), mark], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise((resolve) => holder.stdout.once('data', resolve));
    const exited = new Promise((resolve) => holder.once('exit', resolve));
    holder.kill('SIGKILL');
    await exited;
    await until(() => processesWith(mark).length === 0, 'no process of the command is left');
    await sandboxes.sweep(() => true);
    await assert.rejects(sandboxes.create({ id: 'killed', owner: 'test' }), { status: 409 });
    const later = openOther({ clock: { ...systemClock, now: () => systemClock.now() + 60_000 } });
    // As a gateway leaves it that is killed while it removes a sandbox.
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', spec: {} };
    const labels = { 'app.kubernetes.io/managed-by': 'gatehouse', 'gatehouse/sandbox': 'removed-sandbox' };
    cluster.store.put('persistentvolumeclaims', { ...claim, metadata: { name: 'left', labels } });
    await later.sweep((owner) => owner === 'nobody');
    assert.equal(cluster.store.get('persistentvolumeclaims', 'left'), undefined);
    assert.ok(!cluster.store.list('pods').some(({ metadata }) => metadata.name === 'killed-sandbox-0'));
    const again = await later.create({ id: 'killed', owner: 'test' });
    assert.equal(String(await again.readFile('kept', 100)), mark);
    await again.stop();
    await later.sweep((owner) => owner === 'test');
    assert.ok(!cluster.store.list('statefulsets').some(({ metadata }) => metadata.name === 'killed-sandbox'));
  });

  test('every right of the roles is used, for either kind of object', () => {
    const unused = cluster.rights.all.filter(
      (right) => !cluster.rights.used.has(right) && !right.includes('agents.x-k8s.io'),
    );
    assert.deepEqual(unused, []);
  });

  function openOther(options: Partial<Parameters<typeof openKubernetes>[2]> = {}): Sandboxes {
    return openKubernetes(place, cluster, { folder: openFolder(place), egressProxy, ...options }).sandboxes;
  }
});

function processesWith(text: string): string[] {
  return readdirSync('/proc').filter(
    (pid) => /^\d+$/.test(pid) && commandLine(pid).includes(text) && !commandLine(pid).includes('holder.ts'),
  );
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}
