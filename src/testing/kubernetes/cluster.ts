/**
 * A fake Kubernetes cluster: the API over HTTPS with its schemas, roles, conflicts and watches, exec over WebSockets, and pods that run
 * on this machine. What it does not have: nodes, scheduling, images, quotas.
 */
import { writeFileSync } from 'node:fs';
import type http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { issueFor, root } from '../egress-proxy/hosts.ts';
import { Controllers } from './controllers.ts';
import { Kubelet } from './kubelet.ts';
import { type Asked, Rights } from './rights.ts';
import { type AnyObject, problemsOf } from './schema.ts';
import { type Change, matches, Store } from './store.ts';

const TOKEN = 'token-of-the-fake-cluster';
const NAMESPACED = [
  'statefulsets',
  'sandboxes',
  'pods',
  'persistentvolumeclaims',
  'leases',
  'networkpolicies',
  'events',
];
/** Members of a stateful set's spec that may change. */
const MUTABLE = [
  'replicas',
  'template',
  'updateStrategy',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
  'ordinals',
];

export interface FakeClusterOptions {
  folder: string;
  /** Objects that exist: roles, network policies, runtime classes. */
  objects: readonly AnyObject[];
  namespace: string;
  images: readonly string[];
  programs?: Readonly<Record<string, string>>;
  /** Whether it has the kind of the agent-sandbox project. */
  hasSandboxes: boolean;
  /** Whether its network applies the policies. */
  enforcesPolicies?: boolean;
  /** Address and labels of the gateway's pod. */
  gateway: { host: string; labels: Record<string, string> };
  protocols?: readonly string[];
}

type Fault = (asked: Asked) => { status: number; message: string } | undefined;

export class FakeCluster {
  readonly store = new Store();
  readonly rights: Rights;
  readonly kubeconfig: string;
  /** Answers instead of the API. */
  fault: Fault | undefined;
  /** The commands that were started, as an audit log of the API has them. */
  readonly commands: string[][] = [];
  readonly #options: FakeClusterOptions;
  readonly #controllers: Controllers;
  readonly #server: https.Server;
  readonly #sockets = new Set<Duplex>();
  readonly #execs = new Set<WebSocket>();
  readonly #webSockets: WebSocketServer;

  private constructor(options: FakeClusterOptions) {
    this.#options = options;
    this.kubeconfig = path.join(options.folder, 'kubeconfig');
    const roles = options.objects.filter(({ kind }) => kind === 'Role' || kind === 'ClusterRole');
    this.rights = new Rights(roles.flatMap((role) => role['rules']));
    const { folder, programs = {}, gateway } = options;
    const kubelet = new Kubelet({ folder, programs, host: gateway.host, portsOf: (pod) => this.#portsOf(pod) });
    this.#controllers = new Controllers(this.store, kubelet, options.images);
    const { certificate: cert, key } = issueFor(['localhost']);
    this.#server = https.createServer({ cert, key }, (request, response) => void this.#serve(request, response));
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    const { protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] } = options;
    const handleProtocols = (offered: Set<string>) => protocols.find((each) => offered.has(each)) ?? false;
    this.#webSockets = new WebSocketServer({ noServer: true, handleProtocols });
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  static async start(options: FakeClusterOptions): Promise<FakeCluster> {
    const cluster = new FakeCluster(options);
    for (const object of options.objects) {
      const problems = await problemsOf(object);
      if (problems.length > 0) throw new Error(`${object.kind} ${object.metadata.name}: ${problems.join('; ')}`);
      cluster.store.put(`${object.kind.toLowerCase().replace(/y$/, 'ie')}s`.replace('classs', 'classes'), object);
    }
    await cluster.listen(0);
    return cluster;
  }

  /** @param port 0: any; the kubeconfig is written for it */
  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    const ca = Buffer.from(root.certificate).toString('base64');
    const cluster = { server: `https://localhost:${this.port}`, 'certificate-authority-data': ca };
    const config = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'fake' },
      clusters: [{ name: 'fake', cluster }],
      users: [{ name: 'fake', user: { token: TOKEN } }],
      contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'fake' } }],
    };
    writeFileSync(this.kubeconfig, JSON.stringify(config), { mode: 0o600 });
  }

  /** The first that pods can have. */
  get image(): string {
    return this.#options.images[0]!;
  }

  /** Address of the gateway, as pods see it. */
  get host(): string {
    return this.#options.gateway.host;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  /** As if the API server were gone. */
  async away(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** No pod is created any more, for this reason; undefined: they are again. */
  refusePods(reason: string | undefined): void {
    this.#controllers.refusal = reason;
  }

  /** Ends a pod, in whose place comes another one. */
  evict(pod: string): void {
    this.#controllers.endPod(pod);
  }

  /** Breaks the connections of running commands. */
  cutCommands(): void {
    for (const socket of this.#execs) socket.terminate();
  }

  async close(): Promise<void> {
    await this.#controllers.close();
    if (this.#server.listening) await this.away();
  }

  #portsOf({ metadata }: AnyObject): number[] | null {
    if (this.#options.enforcesPolicies === false) return null;
    const { labels } = this.#options.gateway;
    const policies = this.store
      .list('networkpolicies')
      .filter(({ spec }) => selects(spec.podSelector, metadata.labels));
    const egress = policies.filter(({ spec }) => spec.policyTypes.includes('Egress'));
    if (egress.length === 0) return null;
    const rules = egress.flatMap(({ spec }) => spec.egress ?? []);
    const towards = rules.filter(({ to }) => to.some((peer: AnyObject) => selects(peer['podSelector'], labels)));
    return towards.flatMap(({ ports }) =>
      ports.flatMap(({ port, endPort = port }: { port: number; endPort?: number }) =>
        Array.from({ length: endPort - port + 1 }, (_, index) => port + index),
      ),
    );
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url!, 'https://localhost');
    const reply = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    try {
      if (request.headers.authorization !== `Bearer ${TOKEN}`) throw new Refused(401, 'Unauthorized');
      const body = await bodyOf(request);
      const general = this.#general(request, url, body);
      if (general !== undefined) return reply(request.method === 'POST' ? 201 : 200, general);
      const { group, plural, name, namespace } = addressOf(url.pathname);
      const isWatch = url.searchParams.get('watch') === 'true';
      const verb = verbOf(request.method!, name, isWatch);
      if (namespace !== undefined && namespace !== this.#options.namespace)
        throw new Refused(403, `no access to ${namespace}`);
      this.#authorize({ verb, group, resource: plural });
      if (isWatch) return this.#watch(plural, url, response);
      reply(verb === 'create' ? 201 : 200, await this.#operate({ verb, plural, name, body, url }));
    } catch (error) {
      const { status, message } = error instanceof Refused ? error : { status: 500, message: String(error) };
      reply(status, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code: status });
    }
  }

  #general(request: http.IncomingMessage, url: URL, body: AnyObject | undefined): object | undefined {
    if (url.pathname === '/version') return { major: '1', minor: '37', gitVersion: 'v1.37.0-fake' };
    if (/^\/apis\/[^/]+\/[^/]+$/.test(url.pathname)) {
      if (!url.pathname.includes('agents.x-k8s.io') || !this.#options.hasSandboxes) throw new Refused(404, 'not found');
      return { kind: 'APIResourceList', resources: [{ name: 'sandboxes', kind: 'Sandbox', namespaced: true }] };
    }
    if (!url.pathname.endsWith('/selfsubjectaccessreviews') || request.method !== 'POST') return undefined;
    const { verb, group, resource, subresource } = body!['spec'].resourceAttributes;
    const asked = { verb, group, resource: subresource === undefined ? resource : `${resource}/${subresource}` };
    return { ...body, status: { allowed: this.rights.allows(asked) && this.fault?.(asked)?.status !== 403 } };
  }

  #authorize(asked: Asked): void {
    const fault = this.fault?.(asked);
    if (fault !== undefined) throw new Refused(fault.status, fault.message);
    if (this.rights.use(asked)) return;
    throw new Refused(
      403,
      `User "gateway" cannot ${asked.verb} resource "${asked.resource}" in API group "${asked.group}"`,
    );
  }

  async #operate({ verb, plural, name = '', body, url }: Operation): Promise<object> {
    if (verb === 'list') {
      const fields = url.searchParams.get('fieldSelector')?.replace('involvedObject.name=', '');
      const items = this.store.list(plural).filter((each) => {
        return (
          matches(each.metadata.labels, url.searchParams.get('labelSelector')) &&
          (fields === undefined || each['involvedObject']?.name === fields)
        );
      });
      return { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: this.store.version }, items };
    }
    if (verb === 'create') {
      await this.#check(body!, plural);
      if (this.store.get(plural, body!.metadata.name) !== undefined) throw new Refused(409, 'AlreadyExists');
      return this.#written(plural, body!);
    }
    const known = this.store.get(plural, name);
    if (known === undefined) throw new Refused(404, `${plural} "${name}" not found`);
    if (verb === 'get') return known;
    if (verb === 'update') {
      await this.#check(body!, plural);
      const { resourceVersion } = body!.metadata;
      if (resourceVersion !== undefined && resourceVersion !== known.metadata.resourceVersion)
        throw new Refused(409, 'Conflict');
      assertMutable(known, body!);
      return this.#written(plural, { ...body!, ...(known['status'] === undefined ? {} : { status: known['status'] }) });
    }
    if (plural === 'persistentvolumeclaims') this.#controllers.removeClaim(name);
    else this.store.remove(plural, name);
    this.#controllers.collect(known);
    return { kind: 'Status', status: 'Success' };
  }

  async #check(body: AnyObject, plural: string): Promise<void> {
    if (plural === 'sandboxes' && !this.#options.hasSandboxes) throw new Refused(404, 'not found');
    const problems = await problemsOf(body);
    if (problems.length > 0) throw new Refused(422, `${body.kind} is invalid: ${problems.join('; ')}`);
  }

  #written(plural: string, object: AnyObject): AnyObject {
    const stored = this.store.put(plural, object);
    this.#controllers.reconcile();
    return stored;
  }

  #watch(plural: string, url: URL, response: http.ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const selector = url.searchParams.get('labelSelector');
    const from = Number(url.searchParams.get('resourceVersion') ?? 0);
    const tell = (type: Change, object: AnyObject) => {
      if (matches(object.metadata.labels, selector)) response.write(`${JSON.stringify({ type, object })}\n`);
    };
    response.once('close', this.store.watch(plural, from, tell));
  }

  #upgrade(request: http.IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = new URL(request.url!, 'https://localhost');
    const [, namespace, name = ''] = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/exec$/.exec(url.pathname) ?? [];
    try {
      if (request.headers.authorization !== `Bearer ${TOKEN}`) throw new Refused(401, 'Unauthorized');
      if (namespace !== this.#options.namespace) throw new Refused(403, 'no access');
      for (const verb of ['get', 'create']) this.#authorize({ verb, group: '', resource: 'pods/exec' });
      const running = this.#controllers.running(name);
      if (running === undefined) throw new Refused(404, `pods "${name}" not found`);
      this.#webSockets.handleUpgrade(request, socket, head, (client) => this.#exec(client, url, running.folder));
    } catch (error) {
      const { status } = error as Refused;
      socket.end(`HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    }
  }

  #exec(client: WebSocket, url: URL, folder: string): void {
    const words = url.searchParams.getAll('command');
    this.commands.push(words);
    this.#execs.add(client);
    const runtime = net.connect(path.join(folder, 'exec.sock'));
    runtime.on('error', () => client.terminate());
    runtime.write(`${JSON.stringify(words)}\n`);
    client.on('message', (data: Buffer) => {
      const stream = data[0]!;
      const content = data.subarray(1);
      const frame = Buffer.alloc(5);
      frame[0] = stream;
      frame.writeUInt32BE(content.length, 1);
      if (runtime.write(Buffer.concat([frame, content]))) return;
      client.pause();
      runtime.once('drain', () => client.resume());
    });
    client.on('close', () => {
      this.#execs.delete(client);
      runtime.destroy();
    });
    client.on('error', () => {});
    let rest = Buffer.alloc(0);
    runtime.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
        const content = rest.subarray(5, 5 + rest.readUInt32BE(1));
        runtime.pause();
        client.send(Buffer.concat([rest.subarray(0, 1), content]), () => runtime.resume());
        rest = rest.subarray(5 + content.length);
      }
    });
    runtime.on('close', () => client.close());
  }
}

class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

interface Operation {
  verb: string;
  plural: string;
  name: string | undefined;
  body: AnyObject | undefined;
  url: URL;
}

function addressOf(pathname: string) {
  const found =
    /^\/(?:api|apis\/(?<group>[^/]+))\/[^/]+\/(?:namespaces\/(?<namespace>[^/]+)\/)?(?<plural>[a-z]+)(?:\/(?<name>[^/]+))?$/.exec(
      pathname,
    )?.groups ?? {};
  const { group = '', namespace, plural = '', name } = found;
  if (namespace === undefined ? plural !== 'runtimeclasses' : !NAMESPACED.includes(plural))
    throw new Refused(404, 'not found');
  return { group, namespace, plural, name };
}

function verbOf(method: string, name: string | undefined, isWatch: boolean): string {
  if (isWatch) return 'watch';
  const verb = { GET: name === undefined ? 'list' : 'get', POST: 'create', PUT: 'update', DELETE: 'delete' }[method];
  if (verb === undefined) throw new Refused(405, 'method not allowed');
  return verb;
}

function assertMutable(known: AnyObject, next: AnyObject): void {
  const fixed =
    known.kind === 'StatefulSet'
      ? Object.keys(known['spec']).filter((each) => !MUTABLE.includes(each))
      : ['volumeClaimTemplates'];
  if (!['StatefulSet', 'Sandbox'].includes(known.kind)) return;
  const changed = fixed.filter((each) => JSON.stringify(known['spec'][each]) !== JSON.stringify(next['spec'][each]));
  if (changed.length > 0) throw new Refused(422, `spec: Forbidden: updates to ${changed.join(', ')}`);
}

function selects(
  selector: { matchLabels?: Record<string, string> } | undefined,
  labels: Record<string, string> = {},
): boolean {
  return Object.entries(selector?.matchLabels ?? {}).every(([name, value]) => labels[name] === value);
}

async function bodyOf(request: http.IncomingMessage): Promise<AnyObject | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (chunks.length === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString()) as AnyObject;
  } catch {
    throw new Refused(400, 'the body is not JSON');
  }
}
