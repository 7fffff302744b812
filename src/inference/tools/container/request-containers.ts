/** The containers of requests: opened for the first call that needs one, released when the request ends. */
import { type GatewayError, invalidField } from '../../../base/errors.ts';
import { type Containers, type ContainerUse, checkDomains } from '../../../containers/index.ts';
import type { ToolsRunning } from '../../turns/gateway-tools.ts';
import { copiesOf } from './copies.ts';
import type { Environment } from './environment.ts';

type Asking = Pick<ToolsRunning, 'request' | 'parts' | 'onEnd' | 'signal'>;

export class RequestContainers {
  readonly #containers: Containers;
  /** By the ids of the requests, then by what distinguishes their containers. */
  readonly #opened = new Map<string, Map<string, Promise<ContainerUse>>>();
  /** Notes about containers for the model, by the ids of the requests. */
  readonly #notes = new Map<string, string>();
  #works = false;

  constructor(containers: Containers) {
    this.#containers = containers;
  }

  /** Of one command. */
  get limits(): Containers['limits'] {
    return this.#containers.limits;
  }

  /**
   * Undefined once it is known that code can run here.
   * @param path of the field that asks for it
   * @throws GatewayError 400 if it cannot
   */
  check(path: string): Promise<void> | undefined {
    return this.#works ? undefined : this.#examine(path);
  }

  async #examine(path: string): Promise<void> {
    const { isolation, problems } = await this.#containers.examine();
    this.#works = isolation !== null;
    if (!this.#works) throw noSandbox(path, problems);
  }

  /** @param path of the environment @throws GatewayError 409 if the container has another network */
  async checkNetwork(
    { name, domains }: Environment,
    caller: Parameters<Containers['find']>[0],
    path: string,
  ): Promise<void> {
    const found = name === undefined ? undefined : await this.#containers.find(caller, name);
    if (found !== undefined) checkDomains(found, domains, `${path}.network_policy`);
  }

  /**
   * The container of an environment, the same for all calls of the request, with the files that the environment names.
   * @throws GatewayError 409 if another request uses it, 429 if the key has too many, 503 if the gateway has
   */
  async of(environment: Environment, asking: Asking): Promise<ContainerUse> {
    const use = await this.#open(environment, asking);
    use.sleepAfterMs = Math.max(use.sleepAfterMs, environment.sleepAfterMs);
    if (environment.fileIds.length > 0) await use.copyIn(await copiesOf(environment.fileIds, asking));
    return use;
  }

  #open(environment: Environment, { request, signal, onEnd }: Asking): Promise<ContainerUse> {
    const uses = this.#opened.get(request.id) ?? new Map<string, Promise<ContainerUse>>();
    this.#opened.set(request.id, uses);
    const key = environment.name ?? `new ${JSON.stringify(environment.domains)}`;
    const known = uses.get(key);
    if (known !== undefined) return known;
    const opened = this.#containers.open(request.caller, environment, signal);
    uses.set(key, opened);
    const forget = () => {
      uses.delete(key);
      if (uses.size === 0) this.#opened.delete(request.id);
    };
    opened.then((use) => {
      this.#note(request.id, use);
      onEnd(() => {
        this.#notes.delete(request.id);
        void use.end().then(forget);
      });
    }, forget);
    return opened;
  }

  #note(requestId: string, { name, container: { unsavedAt } }: ContainerUse): void {
    if (unsavedAt === null) return;
    const note = `Note: what was changed in the container ${name} until ${unsavedAt.toISOString()} could not be stored. Its files are those from before.`;
    this.#notes.set(requestId, note);
  }

  /** The note for the model about the containers of a request; undefined after it was taken. */
  takeNote(requestId: string): string | undefined {
    const note = this.#notes.get(requestId);
    this.#notes.delete(requestId);
    return note;
  }
}

export function noSandbox(path: string, problems: readonly { message: string; remedy: string }[] = []): GatewayError {
  const reasons = problems.map(({ message, remedy }) => `${message} (${remedy})`).join('; ');
  const why = reasons === '' ? '' : `: ${reasons}`;
  return invalidField(path, `needs a sandbox, and this gateway has none (sandboxes.driver)${why}`);
}
