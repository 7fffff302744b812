/**
 * The inference pipeline in the test's process, without sockets and without a database: `serve` with a transport that
 * plays bytes and a spend that keeps the row. For what has to be tried thousands of times.
 */

import { type Caller, NO_GUARDRAILS, NO_TERMS } from '../../access/index.ts';
import type { TextEncoding } from '../../base/byte-text.ts';
import { DEFAULT_ACCOUNT, DEFAULT_EGRESS, DEFAULT_LIMITS } from '../../base/config/section-readers.ts';
import { endOfTurn } from '../../base/end-of-turn.ts';
import { readDocument } from '../../base/json.ts';
import { silentLog } from '../../base/log.ts';
import { parsePrice } from '../../base/money.ts';
import { type Catalog, type Endpoint, NO_FIGURES } from '../../catalog/index.ts';
import { createEgress } from '../../egress/index.ts';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import { chat, gemini, messages, responses } from '../../formats/index.ts';
import { Concurrency } from '../../inference/admission/concurrency.ts';
import {
  type AcceptedRequest,
  Credentials,
  Health,
  type InferenceParts,
  RequestsInFlight,
  Sessions,
  type Sink,
  serve,
  Threads,
} from '../../inference/index.ts';
import { KINDS, type ProviderKind, type Transport, type UpstreamReceiver } from '../../providers/index.ts';
import type { Generation, OpenGeneration, Reservation, Spend } from '../../spend/index.ts';
import type { ClientFormat } from '../clients/served-answer.ts';
import { TestClock } from '../clock/clock.ts';

export interface Played {
  status?: number;
  headers?: Record<string, string>;
  pieces: readonly Buffer[];
  /** `break`: the connection breaks instead of closing in order. */
  ending?: 'close' | 'break';
}

export interface PipelineAnswer {
  /** 200 for a stream that was opened. */
  status: number;
  headers: Record<string, string>;
  /** The body; of a stream everything that was written. */
  text: string;
  streamed: boolean;
  /** The client's connection was ended in order. */
  ended: boolean;
  row: Generation;
  /** The body that went to the upstream. */
  sent: string;
}

export interface PipelineRequest {
  served: ClientFormat;
  /** Id of a kind of provider, or a format that one speaks. */
  kind: string;
  spoken: FormatId;
  stream: boolean;
  /** Further members of the request. */
  more?: Record<string, unknown>;
  /** JSON text of the conversation's messages (items of the input), instead of one greeting. */
  messages?: string;
  /** The provider's name. */
  provider?: string;
  /** The client's side takes text only, no byte text. */
  textOnly?: boolean;
}

/** Nano-dollars of a token: the figures that tests reckon with. */
export const PRICES_NANO = { prompt: 3000n, completion: 15_000n, cacheRead: 300n, cacheWrite: 3750n };

const MODEL = 'test/model';
export const PROVIDER_NAME = 'Recorded';

/** Plays one answer of an upstream through the pipeline to one client. */
export async function playThrough(asked: PipelineRequest, played: Played): Promise<PipelineAnswer> {
  const kind = kindOf(asked.kind, asked.spoken);
  const rows: Generation[] = [];
  const bodies: string[] = [];
  const transport = transportOf(played, bodies);
  const parts = partsFor({ ...kind, transport }, spendInto(rows), asked.provider);
  const sink = new MemorySink(asked.textOnly !== true);
  await serve(requestOf(asked), sink, parts);
  const [row, ...others] = rows;
  if (row === undefined || others.length > 0) throw new Error(`${rows.length} rows were entered for one request`);
  const { status, headers, text, streamed, ended } = sink;
  return { status, headers, text, streamed, ended, row, sent: bodies.join('') };
}

/** A chat pipeline whose upstream and whose spend are the test's, and what a client asks of it. */
export function chatPipeline(transport: Transport, spend: Spend) {
  const kind = kindOf('chat', 'chat');
  return {
    parts: partsFor({ ...kind, transport }, spend),
    request: (id: string, stream: boolean): AcceptedRequest => ({
      ...requestOf({ served: 'chat', kind: 'chat', spoken: 'chat', stream }),
      id,
    }),
  };
}

/** The provider's own kind where there is one that speaks the format, so that its quirks are known; else the bare format. */
function kindOf(id: string, spoken: FormatId): ProviderKind {
  const own = KINDS.find((kind) => kind.id === id && kind.speaks === spoken);
  return own ?? KINDS.find((kind) => kind.id === spoken)!;
}

function transportOf({ status = 200, headers = {}, pieces, ending = 'close' }: Played, bodies: string[]): Transport {
  return {
    send(request, receiver) {
      let aborted = false;
      bodies.push(request.body.toString());
      queueMicrotask(() => play(receiver, () => aborted));
      return {
        pause() {},
        resume() {},
        abort() {
          aborted = true;
        },
      };
    },
    async close() {},
  };

  function play(receiver: UpstreamReceiver, isAborted: () => boolean): void {
    receiver.head(status, headers);
    for (const piece of pieces) {
      if (isAborted()) return;
      receiver.data(piece);
    }
    if (isAborted()) return;
    if (ending === 'close') receiver.end();
    else receiver.failed({ kind: 'cut', status: null, message: 'the connection broke' }, true);
  }
}

/** What a client reads of a text that was sent in an encoding. */
function textIn(text: string, encoding: TextEncoding): string {
  return Buffer.from(text, encoding).toString('utf8');
}

/** A client that reads everything, until it leaves. */
export class MemorySink implements Sink {
  readonly takesBytes: boolean;
  status = 0;
  headers: Record<string, string> = {};
  text = '';
  streamed = false;
  ended = false;
  closed = false;
  #left: () => void = () => {};

  constructor(takesBytes = true) {
    this.takesBytes = takesBytes;
  }

  leave(): void {
    this.closed = true;
    this.#left();
  }

  reply(status: number, headers: Record<string, string>, body: string, encoding: TextEncoding = 'utf8'): void {
    if (this.closed) return;
    if (this.status !== 0) throw new Error('a second answer');
    Object.assign(this, { status, headers, text: textIn(body, encoding), ended: true });
  }

  open(headers: Record<string, string>): void {
    if (this.status !== 0) throw new Error('a second answer');
    Object.assign(this, { status: 200, headers, streamed: true });
  }

  write(text: string, encoding: TextEncoding = 'utf8'): boolean {
    if (!this.streamed || this.ended) throw new Error('text outside of the stream');
    this.text += textIn(text, encoding);
    return true;
  }

  end(): void {
    if (this.ended) throw new Error('a second end');
    this.ended = true;
  }

  onDrain(): void {}

  onClose(run: () => void): void {
    this.#left = run;
  }
}

function partsFor(kind: ProviderKind, spend: Spend, provider = PROVIDER_NAME): InferenceParts {
  const clock = new TestClock();
  const health = new Health(clock);
  const endpoint = endpointOf(kind, provider);
  const catalog = {
    find: () => ({ id: MODEL, name: MODEL, endpoints: [endpoint] }),
    pricingOfCalled: () => endpoint.pricing ?? undefined,
  } as unknown as Catalog;
  return {
    catalog: () => catalog,
    spend,
    statistics: { record() {}, of: () => NO_FIGURES, async exchange() {}, async close() {} },
    health,
    concurrency: new Concurrency(),
    inFlight: new RequestsInFlight(silentLog),
    endOfTurn: endOfTurn(),
    credentials: new Credentials(health),
    sessions: new Sessions(clock),
    threads: new Threads(spend),
    promptCaching: () => 'translated',
    accountPolicy: () => DEFAULT_ACCOUNT,
    hedgeAfterMs: () => null,
    random: () => 0.5,
    transport: kind.transport!,
    egress: createEgress({ clock, settings: () => DEFAULT_EGRESS }),
    clock,
    log: silentLog,
    limits: DEFAULT_LIMITS,
    hosts: () => ({ global: [], europe: [], us: [] }),
    accountBalanceNano: () => null,
    hashUser: () => 'hash',
    keepAliveComment: ': waiting\n\n',
    metadataKey: 'svc_metadata',
  };
}

function endpointOf(kind: ProviderKind, name: string): Endpoint {
  const price = (nano: bigint) => parsePrice((Number(nano) / 1e9).toFixed(9));
  const provider = {
    id: 'recorded',
    name,
    kind,
    baseUrl: 'http://upstream.test',
    options: {},
    credentials: ['key'],
    timeouts: { connect: 1000, firstByte: 1000, idle: 1000, stall: 1000, total: 1000 },
    maxConcurrency: 10,
  };
  const signer = kind.signer?.(provider);
  return {
    id: `recorded:${MODEL}`,
    provider: signer === undefined ? provider : { ...provider, signer },
    modelId: MODEL,
    upstreamId: 'upstream-model',
    contextLength: null,
    maxCompletionTokens: 1000,
    pricing: {
      prompt: price(PRICES_NANO.prompt),
      completion: price(PRICES_NANO.completion),
      inputCacheRead: price(PRICES_NANO.cacheRead),
      inputCacheWrite: price(PRICES_NANO.cacheWrite),
    },
    inputModalities: null,
    outputModalities: null,
    supportedParameters: null,
    dataPolicy: { zdr: false, trains: true, publishes: true, retainsForSafety: true },
    region: null,
    quantization: null,
  };
}

/** No budgets, no journal: rows are kept as they are settled. */
function spendInto(rows: Generation[]): Spend {
  const reservation = {
    refused: undefined,
    held: { creditNano: 0n, byokNano: 0n },
    extend: () => true,
    release() {},
  } as unknown as Reservation;
  const generation = {
    attempt() {},
    seen() {},
    reported() {},
    settle(row: Generation, written: () => void) {
      rows.push(row);
      written();
    },
  } as unknown as OpenGeneration;
  return { reserve: () => reservation, begin: () => Promise.resolve(generation) } as unknown as Spend;
}

const CALLER: Caller = {
  keyId: 'key',
  keyHash: 'hash',
  kind: 'inference',
  name: 'test',
  label: 'sk-...',
  userId: null,
  organizationId: 'org_test',
  workspaceId: 'workspace',
  limitNano: null,
  limitReset: null,
  includeByokInLimit: true,
  rateLimits: null,
  externalUser: null,
  internId: null,
  expiresAt: null,
  workspace: NO_TERMS,
  guardrails: NO_GUARDRAILS,
};

const WORDS = {
  chat: { max_tokens: 4000, list: 'messages', hi: '"content":"hi"' },
  messages: { max_tokens: 4000, list: 'messages', hi: '"content":"hi"' },
  responses: { max_output_tokens: 4000, list: 'input', hi: '"content":"hi"' },
  gemini: {
    generationConfig: { maxOutputTokens: 4000, thinkingConfig: { includeThoughts: true } },
    ...{ list: 'contents', hi: '"parts":[{"text":"hi"}]' },
  },
} as const;

function requestOf({ served, stream, more, messages: given }: PipelineRequest): AcceptedRequest {
  const format = { chat, messages, responses, gemini }[served];
  const { list, hi, ...settings } = WORDS[served];
  const around = JSON.stringify({ model: MODEL, ...settings, stream, ...more }).slice(0, -1);
  const body = `${around},"${list}":${given ?? `[{"role":"user",${hi}}]`}}`;
  const document = readDocument(Buffer.from(body));
  return {
    id: 'gen-recorded',
    format,
    document,
    facts: format.facts(document.value),
    caller: CALLER,
    startedAt: Date.UTC(2026, 0, 1),
    plugins: undefined,
    about: {
      requestId: null,
      region: 'global',
      userAgent: null,
      origin: '',
      title: null,
      sessionId: null,
      metadata: false,
      headers: {},
    },
  };
}
