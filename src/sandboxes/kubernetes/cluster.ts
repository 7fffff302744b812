/**
 * The API of a Kubernetes cluster, through the client of the Kubernetes project, which is loaded here: it takes a second and 85 MB.
 * Requests are ours, because its typed ones drop members that it does not know.
 */
import { readFileSync } from 'node:fs';
import type { HttpMethod, KubeConfig } from '@kubernetes/client-node';
import { type Clock, Pause } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { apiVersionOf, type KubernetesObject, type Resource } from './resources.ts';

/** A WebSocket of the client, as far as it is used. */
export type ApiSocket = Awaited<ReturnType<InstanceType<Client['Exec']>['handler']['connect']>>;
type Client = typeof import('@kubernetes/client-node');

const REQUEST_MS = 15_000;
/** A watch that fails at once is not repeated at once. */
const WATCH_PAUSE_MS = 500;
const GUIDE = 'docs/guides/kubernetes.md';

interface Selection {
  labels?: string;
  fields?: string;
}

export class Cluster {
  readonly namespace: string;
  readonly #client: Client;
  readonly #config: KubeConfig;
  readonly #clock: Clock;

  private constructor(namespace: string, client: Client, config: KubeConfig, clock: Clock) {
    this.namespace = namespace;
    this.#client = client;
    this.#config = config;
    this.#clock = clock;
  }

  /**
   * Loads the client; sends nothing.
   * @param kubeconfig path of a file; null: the account that the pod of the gateway has
   * @throws Error with the reason if there is no client, file or account
   */
  static async open(namespace: string, kubeconfig: string | null, clock: Clock): Promise<Cluster> {
    const client = await import('@kubernetes/client-node');
    const config = new client.KubeConfig();
    if (kubeconfig !== null) config.loadFromString(readFileSync(kubeconfig, 'utf8'));
    else config.loadFromCluster();
    const server = config.getCurrentCluster()?.server ?? '';
    if (!URL.canParse(server) || server.includes('undefined')) {
      throw new Error(kubeconfig === null ? 'the gateway does not run in a pod' : `${kubeconfig} names no cluster`);
    }
    return new Cluster(namespace, client, config, clock);
  }

  /** For example `v1.37.0`. */
  async version(): Promise<string> {
    const { body } = await this.#send('GET', '/version');
    return (body as unknown as { gitVersion?: string }).gitVersion ?? 'of an unknown version';
  }

  /** Whether the cluster has this kind. */
  async serves({ group, version, plural }: Resource): Promise<boolean> {
    const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const { status, body } = await this.#send('GET', path, undefined, [404]);
    const { resources = [] } = body as unknown as { resources?: { name: string }[] };
    return status !== 404 && resources.some(({ name }) => name === plural);
  }

  /** Whether the gateway has this right in the namespace of the sandboxes. */
  async allows(verb: string, { group, plural }: Resource, subresource?: string): Promise<boolean> {
    const resourceAttributes = { namespace: this.namespace, verb, group, resource: plural, subresource };
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', metadata: {} };
    const { body } = await this.#send('POST', path, { ...review, spec: { resourceAttributes } });
    return (body as unknown as { status?: { allowed?: boolean } }).status?.allowed === true;
  }

  async find<T extends KubernetesObject>(resource: Resource, name: string): Promise<T | undefined> {
    const { status, body } = await this.#send('GET', this.#path(resource, name), undefined, [404]);
    return status === 404 ? undefined : (body as T);
  }

  async list<T extends KubernetesObject>(resource: Resource, selection: Selection = {}): Promise<T[]> {
    return (await this.#list<T>(this.#path(resource), selection)).items;
  }

  /** Of a kind that belongs to no namespace. @throws GatewayError */
  async listAll<T extends KubernetesObject>({ group, version, plural }: Resource): Promise<T[]> {
    return (await this.#list<T>(`/apis/${group}/${version}/${plural}`, {})).items;
  }

  /** @returns undefined if there is one with this name */
  async create<T extends KubernetesObject>(resource: Resource, object: T): Promise<T | undefined> {
    const { status, body } = await this.#send('POST', this.#path(resource), typed(resource, object), [409]);
    return status === 409 ? undefined : (body as T);
  }

  /** @returns undefined if it was changed or removed since it was read */
  async replace<T extends KubernetesObject>(resource: Resource, object: T): Promise<T | undefined> {
    const path = this.#path(resource, object.metadata.name);
    const { status, body } = await this.#send('PUT', path, typed(resource, object), [404, 409]);
    return status === 404 || status === 409 ? undefined : (body as T);
  }

  /** Does nothing if it does not exist. Pods get no grace period: no process of a sandbox has anything to finish. */
  async remove(resource: Resource, name: string): Promise<void> {
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' };
    await this.#send('DELETE', this.#path(resource, name), options, [404]);
  }

  /**
   * Follows the selected objects until `decide` finds an answer in their states, or throws.
   * @returns undefined after `timeoutMs`
   */
  async follow<T extends KubernetesObject, R>(
    resource: Resource,
    selection: Selection,
    timeoutMs: number,
    decide: (objects: readonly T[]) => R | undefined,
  ): Promise<R | undefined> {
    const late = new AbortController();
    const timer = this.#clock.timer(timeoutMs, () => late.abort());
    try {
      while (!late.signal.aborted) {
        const { items, version } = await this.#list<T>(this.#path(resource), selection);
        const found =
          decide(items) ?? (await this.#watch(resource, selection, { items, version, late: late.signal, decide }));
        if (found !== undefined) return found;
      }
      return undefined;
    } finally {
      timer.cancel();
    }
  }

  /** Starts a program in the container of a pod. @param received of a stream: 1 and 2 are its outputs, 3 is its end */
  async exec(
    pod: string,
    container: string,
    argv: readonly string[],
    received: (stream: number, content: Buffer) => void,
  ): Promise<ApiSocket> {
    const query = new URLSearchParams({ container, stdin: 'true', stdout: 'true', stderr: 'true', tty: 'false' });
    for (const word of argv) query.append('command', word);
    const path = `/api/v1/namespaces/${this.namespace}/pods/${pod}/exec?${query}`;
    const connecting = new this.#client.Exec(this.#config).handler.connect(path, null, (stream, content) => {
      received(stream, content);
      return true;
    });
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = this.#clock.timer(REQUEST_MS, () => {
      reject(new Error(`no answer within ${REQUEST_MS / 1000} s`));
      void connecting.then(
        (socket) => socket.terminate(),
        () => {},
      );
    });
    try {
      return await Promise.race([connecting, late]);
    } catch (error) {
      throw execRefused(error as { message?: string; code?: string }, pod);
    } finally {
      timer.cancel();
    }
  }

  /** Resolves when a decision is made, the watch ends or it is late. */
  async #watch<T extends KubernetesObject, R>(
    resource: Resource,
    { labels, fields }: Selection,
    { items, version, late, decide }: Watched<T, R>,
  ): Promise<R | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<R | undefined>();
    const known = new Map(items.map((each) => [each.metadata.name, each]));
    const pause = new Pause(this.#clock);
    const ended = async () => {
      await pause.wait(WATCH_PAUSE_MS);
      resolve(undefined);
    };
    const changed = (type: string, object: T) => {
      if (type === 'DELETED') known.delete(object.metadata.name);
      else if (type === 'ADDED' || type === 'MODIFIED') known.set(object.metadata.name, object);
      // Such as that the version is too old.
      else if (type === 'ERROR') return void ended();
      try {
        const found = decide([...known.values()]);
        if (found !== undefined) resolve(found);
      } catch (error) {
        reject(error);
      }
    };
    const query = { labelSelector: labels, fieldSelector: fields, resourceVersion: version };
    const watch = new this.#client.Watch(this.#config);
    const controller = await watch.watch(this.#path(resource), query, changed, () => void ended());
    const stop = () => resolve(undefined);
    late.addEventListener('abort', stop);
    if (late.aborted) stop();
    try {
      return await promise;
    } finally {
      late.removeEventListener('abort', stop);
      pause.end();
      controller.abort();
    }
  }

  async #list<T extends KubernetesObject>(path: string, { labels, fields }: Selection) {
    const query = new URLSearchParams();
    if (labels !== undefined) query.set('labelSelector', labels);
    if (fields !== undefined) query.set('fieldSelector', fields);
    const { body } = await this.#send('GET', query.size === 0 ? path : `${path}?${query}`);
    const { items = [], metadata } = body as unknown as { items?: T[]; metadata?: { resourceVersion?: string } };
    return { items, version: metadata?.resourceVersion };
  }

  #path({ group, version, plural }: Resource, name?: string): string {
    const api = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const path = `${api}/namespaces/${this.namespace}/${plural}`;
    return name === undefined ? path : `${path}/${name}`;
  }

  /** @param expected statuses of failures that the caller handles @throws GatewayError 503 */
  async #send(method: HttpMethod, path: string, object?: object, expected: readonly number[] = []): Promise<Reply> {
    const { RequestContext, IsomorphicFetchHttpLibrary } = this.#client;
    const server = this.#config.getCurrentCluster()!.server;
    const request = new RequestContext(`${server}${path}`, method);
    const late = new AbortController();
    const timer = this.#clock.timer(REQUEST_MS, () => late.abort());
    request.setSignal(late.signal);
    request.setHeaderParam('Accept', 'application/json');
    if (object !== undefined) {
      request.setHeaderParam('Content-Type', 'application/json');
      request.setBody(JSON.stringify(object));
    }
    try {
      await this.#config.applySecurityAuthentication(request);
      const response = await new IsomorphicFetchHttpLibrary().send(request).toPromise();
      const body = parsed(await response.body.text());
      const { httpStatusCode: status } = response;
      if (status < 300 || expected.includes(status)) return { status, body };
      throw refused(status, `${method} ${path.split('?', 1)[0]}`, (body as { message?: string }).message);
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      throw unreachable(late.signal.aborted ? `no answer within ${REQUEST_MS / 1000} s` : reasonOf(error), error);
    } finally {
      timer.cancel();
    }
  }
}

interface Reply {
  status: number;
  body: KubernetesObject;
}

interface Watched<T, R> {
  items: readonly T[];
  version: string | undefined;
  late: AbortSignal;
  decide(objects: readonly T[]): R | undefined;
}

function typed(resource: Resource, object: KubernetesObject): KubernetesObject {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
}

function parsed(text: string): KubernetesObject {
  try {
    return JSON.parse(text) as KubernetesObject;
  } catch {
    return { metadata: { name: '' } };
  }
}

const LONGEST_MESSAGE = 500;

function refused(status: number, what: string, message = ''): GatewayError {
  const said = message.slice(0, LONGEST_MESSAGE);
  const advice = status === 401 || status === 403 ? ` Apply the roles of ${GUIDE}.` : '';
  const text = `The Kubernetes API refused ${what} with ${status}${said === '' ? '' : `: ${said}`}.${advice}`;
  const retryable = status === 429 || status >= 500;
  return new GatewayError('server', text, { status: 503, metadata: { retryable, reason: 'kubernetes_refused' } });
}

/** Whether another attempt may succeed. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof GatewayError && error.details.metadata?.['reason'] === 'kubernetes_unreachable';
}

function unreachable(why: string, cause: unknown): GatewayError {
  return new GatewayError('server', `The Kubernetes API server cannot be reached: ${why}.`, {
    ...{ status: 503, metadata: { retryable: true, reason: 'kubernetes_unreachable' }, cause },
  });
}

function execRefused(error: { message?: string; code?: string }, pod: string): GatewayError {
  const [, status] = /Unexpected server response: (\d{3})/.exec(error.message ?? '') ?? [];
  if (status === undefined) return unreachable(error.message ?? error.code ?? 'the connection failed', error);
  if (status === '404') return new GatewayError('server', `The pod ${pod} of the sandbox is gone.`, { status: 503 });
  return refused(Number(status), `to start a command in the pod ${pod}`);
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  const { code } = (cause ?? error) as NodeJS.ErrnoException;
  return code ?? (cause as Error | undefined)?.message ?? message;
}
