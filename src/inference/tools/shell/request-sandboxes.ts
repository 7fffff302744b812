/** The sandbox of each request whose model runs commands: made for the first of them, destroyed when the request ends. */
import type { SandboxesSettings } from '../../../base/config.ts';
import { GatewayError, invalidField } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Sandbox, Sandboxes } from '../../../sandboxes/index.ts';
import type { ToolsRunning } from '../../turns/gateway-tools.ts';

/** Sandboxes of one key at once, in one process. */
const MAX_PER_KEY = 4;

const OWNER = 'generation ';

/** Whether it is the owner of a request's sandbox, which lasts no longer than the process that serves the request. */
export function isOwnedByRequest(owner: string): boolean {
  return owner.startsWith(OWNER);
}

interface RequestSandboxesParts {
  sandboxes: Pick<Sandboxes, 'create' | 'destroy' | 'examine'>;
  settings: Pick<SandboxesSettings, 'commandMs' | 'outputBytes'>;
  log: Log;
}

interface Opened {
  keyId: string;
  sandbox: Promise<Sandbox>;
  /** Set once its request has ended. */
  ended?: Promise<void>;
}

export class RequestSandboxes {
  /** Of one command. */
  readonly limits: RequestSandboxesParts['settings'];
  readonly #parts: RequestSandboxesParts;
  /** By the ids of the requests. */
  readonly #opened = new Map<string, Opened>();
  #works = false;

  constructor(parts: RequestSandboxesParts) {
    this.#parts = parts;
    this.limits = parts.settings;
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
    const { isolation, problems } = await this.#parts.sandboxes.examine();
    this.#works = isolation !== null;
    if (!this.#works) throw noSandbox(path, problems);
  }

  /**
   * The sandbox of the request, without a network.
   * @throws GatewayError 429 if the key has too many, 503 if the gateway has
   */
  of({ request, onEnd }: Pick<ToolsRunning, 'request' | 'onEnd'>): Promise<Sandbox> {
    const found = this.#opened.get(request.id);
    if (found !== undefined) return found.sandbox;
    const { keyId } = request.caller;
    if ([...this.#opened.values()].filter((each) => each.keyId === keyId).length >= MAX_PER_KEY) {
      throw new GatewayError('rate_limit_exceeded', `this key already runs ${MAX_PER_KEY} sandboxes; try again later`, {
        status: 429,
      });
    }
    const opened: Opened = {
      keyId,
      sandbox: this.#parts.sandboxes.create({ id: request.id, owner: `${OWNER}${request.id}` }),
    };
    this.#opened.set(request.id, opened);
    opened.sandbox.then(
      () => onEnd(() => void this.#end(request.id)),
      () => void this.#end(request.id),
    );
    return opened.sandbox;
  }

  /** Destroys all, before the gateway stops. */
  async close(): Promise<void> {
    await Promise.all([...this.#opened.keys()].map((id) => this.#end(id)));
  }

  #end(id: string): Promise<void> {
    const opened = this.#opened.get(id);
    if (opened === undefined) return Promise.resolve();
    opened.ended ??= this.#destroy(id, opened.sandbox).then(() => void this.#opened.delete(id));
    return opened.ended;
  }

  async #destroy(id: string, created: Promise<Sandbox>): Promise<void> {
    // One that could not be started may have left a workspace.
    await created.catch(() => {});
    try {
      await this.#parts.sandboxes.destroy(id);
    } catch (error) {
      // The next start removes it.
      this.#parts.log.error('the sandbox of a request cannot be destroyed', { sandbox: id, error });
    }
  }
}

export function noSandbox(path: string, problems: readonly { message: string; remedy: string }[] = []): GatewayError {
  const reasons = problems.map(({ message, remedy }) => `${message} (${remedy})`).join('; ');
  const why = reasons === '' ? '' : `: ${reasons}`;
  return invalidField(path, `needs a sandbox, and this gateway has none (sandboxes.driver)${why}`);
}
