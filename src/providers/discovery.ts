/**
 * Local model servers become providers while they respond. They are found by probing their usual ports on the loopback
 * address, at the start and periodically, outside of requests. A server is identified by its reply, not by its port, so
 * other software on that port is ignored.
 *
 * Local models are free and send no data anywhere: price zero, with a matching data policy. Models that a local server
 * only forwards to a cloud service (Ollama's cloud) have no price and the unknown policy.
 */
import type { Clock, Timer } from '../base/clock.ts';
import { type ModelSettings, type ProviderSettings, UNKNOWN_DATA_POLICY } from '../base/config.ts';
import { parseJson } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import { parsePrice } from '../base/money.ts';
import { KINDS } from './all-kinds.ts';
import type { LocalModel } from './local-models.ts';
import type { ProviderKind } from './provider.ts';
import { portOf } from './send/port.ts';
import type { Transport } from './send/transport.ts';

/** A server that may run on this machine; its kind has `discovery`. */
export interface LocalServer {
  kind: string;
  port: number;
}

const DISCOVERED = new Map(KINDS.filter(({ discovery }) => discovery).map((kind) => [kind.id, kind]));
/** Every kind at its usual port. */
const LOCAL_SERVERS: readonly LocalServer[] = [...DISCOVERED.values()].flatMap(({ id, baseUrl }) => {
  const port = typeof baseUrl === 'string' ? localPort(baseUrl) : undefined;
  return port === undefined ? [] : [{ kind: id, port }];
});

interface DiscoveryOptions {
  transport: Transport;
  clock: Clock;
  log: Log;
  servers?: readonly LocalServer[];
  /** Providers of the current configuration; their servers are not discovered again. */
  configured(): readonly ProviderSettings[];
  /** The gateway's own port. */
  ownPort(): number;
  /** Called with all found servers whenever they change. */
  changed(found: readonly ProviderSettings[]): void;
}

const INTERVAL_MS = 30_000;
/** Tolerates one missed probe, because a server may be busy. */
const MOST_MISSES = 2;
const MOST_MODELS = 500;
const LARGEST_ANSWER = 4 * 1024 * 1024;
const PROBE_TIMEOUTS = { connect: 500, firstByte: 2_000, idle: 2_000, stall: 3_000, total: 3_000 };
/** Loading a model into memory may take minutes. */
const CALL_TIMEOUTS = { connect: 5_000, firstByte: 600_000, idle: 120_000, stall: 600_000, total: 3_600_000 };
const MODEL_SLUG = /^[A-Za-z0-9~._:@+/-]{1,200}$/;

export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #found = new Map<LocalServer, ProviderSettings>();
  readonly #misses = new Map<LocalServer, number>();
  #timer: Timer | undefined;
  #told = '[]';
  #closed = false;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  /** Probes now and then periodically; resolves after the first probe. Never rejects. */
  async start(): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#look();
    } catch (cause) {
      this.#options.log.error('probing for local model servers failed', { cause });
    }
    if (!this.#closed) this.#timer = this.#options.clock.timer(INTERVAL_MS, () => void this.start());
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { servers = LOCAL_SERVERS, ownPort, configured, changed } = this.#options;
    const known = configured();
    const taken = new Set(known.map(({ baseUrl }) => localPort(baseUrl)));
    await Promise.all(
      servers.map(async (server) => {
        const { port } = server;
        const kind = DISCOVERED.get(server.kind);
        if (kind?.discovery === undefined) throw new Error(`no servers of the kind ${server.kind} can be discovered`);
        const { path, models: modelsIn } = kind.discovery;
        const skipped = port === ownPort() || taken.has(port);
        const answer = skipped ? 'gone' : await this.#ask(`http://127.0.0.1:${port}${path}`);
        const models = answer === 'gone' || answer === 'silent' ? undefined : modelsIn(answer);
        if (models !== undefined) {
          this.#misses.delete(server);
          this.#found.set(server, settingsOf(server, kind, models, known));
        } else if (this.#found.has(server)) {
          const misses = (this.#misses.get(server) ?? 0) + 1;
          this.#misses.set(server, misses);
          if (answer !== 'silent' || misses >= MOST_MISSES) this.#found.delete(server);
        }
      }),
    );
    if (this.#closed) return;
    const all = servers.flatMap((server) => this.#found.get(server) ?? []).filter(({ models }) => models.length > 0);
    const told = JSON.stringify(all.map(({ id, baseUrl, models }) => [id, baseUrl, models.map(factsOf)]));
    if (told === this.#told) return;
    this.#told = told;
    const names = all.map(({ name, baseUrl, models }) => `${name} at ${baseUrl} (${models.length} models)`);
    this.#options.log.info('local model servers changed', { found: names.join(', ') || 'none' });
    changed(all);
  }

  /** The JSON reply of a URL; `gone` if there is no suitable reply, `silent` on a timeout. */
  #ask(url: string): Promise<unknown | 'gone' | 'silent'> {
    return new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let size = 0;
      let status = 0;
      const call = this.#options.transport.send(
        { url, method: 'GET', headers: {}, body: '', timeouts: PROBE_TIMEOUTS },
        {
          head: (told) => {
            status = told;
          },
          data: (chunk) => {
            size += chunk.length;
            chunks.push(chunk);
            if (size <= LARGEST_ANSWER) return;
            call.abort();
            resolve('gone');
          },
          end: () => resolve(status === 200 ? parsed(Buffer.concat(chunks).toString()) : 'gone'),
          failed: ({ kind }) => resolve(kind === 'timeout' ? 'silent' : 'gone'),
        },
      );
    });
  }
}

function factsOf({ id, upstreamId, contextLength, pricing }: ModelSettings) {
  return [id, upstreamId, contextLength, pricing === null];
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return 'gone';
  }
}

/** The port of a URL on this machine; undefined for any other. */
function localPort(baseUrl: string | undefined): number | undefined {
  const url = baseUrl === undefined ? null : URL.parse(baseUrl);
  if (url === null || !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0)$/.test(url.hostname)) return undefined;
  return portOf(url);
}

function settingsOf(
  { port }: LocalServer,
  kind: ProviderKind,
  models: readonly LocalModel[],
  configured: readonly ProviderSettings[],
): ProviderSettings {
  const taken = configured.some(({ id }) => id === kind.id);
  return {
    id: taken ? `${kind.id}-local` : kind.id,
    name: taken ? `${kind.name} (local)` : kind.name,
    kind: kind.id,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    credentials: [],
    timeouts: CALL_TIMEOUTS,
    maxConcurrency: 500,
    options: {},
    speaks: null,
    strictTemplate: false,
    models: models.slice(0, MOST_MODELS).flatMap((model) => modelOf(kind, model)),
    openEnded: false,
  };
}

const ZERO = parsePrice('0')!;
const LOCAL_DATA_POLICY = Object.freeze({ zdr: true, trains: false, publishes: false, retainsForSafety: false });

function modelOf(kind: ProviderKind, { name, contextLength, images, remote }: LocalModel): ModelSettings[] {
  // vLLM names a model by its path if it has no other name.
  const slug = name.replace(/^\/+/, '');
  if (!MODEL_SLUG.test(slug)) return [];
  return [
    {
      id: `${kind.author}/${slug}`,
      upstreamId: name,
      name: null,
      contextLength: contextLength ?? null,
      maxCompletionTokens: null,
      pricing: remote ? null : { prompt: ZERO, completion: ZERO },
      inputModalities: images === undefined ? null : images ? ['text', 'image'] : ['text'],
      outputModalities: null,
      supportedParameters: null,
      dataPolicy: remote ? UNKNOWN_DATA_POLICY : LOCAL_DATA_POLICY,
      region: null,
      quantization: null,
    },
  ];
}
