/**
 * An operation with a single public format (embeddings, rerank, images, speech and others) as a task: decoded once, sent through the
 * adapter of the endpoint's provider, and charged by the units that its format counts.
 */
import { GatewayError } from '../base/errors.ts';
import { nanoFromPrice } from '../base/money.ts';
import { ceilingOf, type Endpoint } from '../catalog/index.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import type { Closing, Stamp } from '../formats/conversation/format.ts';
import { addUsage } from '../formats/conversation/usage.ts';
import { type Adapter, type DirectFormatId, inputUsage } from '../formats/direct/index.ts';
import { type Hit, policyOf } from '../guardrails/index.ts';
import type { ApiType } from '../spend/index.ts';
import { type Metered, metered } from './accounting/meter.ts';
import { Transcript } from './answer/transcript.ts';
import type { RequestContext } from './context.ts';
import { MediaFetcher } from './media/fetch-media.ts';
import type { InferenceParts } from './parts.ts';
import type { DirectRequest } from './request.ts';
import type { Attempt, AttemptAbout, CostBound, Estimate, Preparing, Task, TokenBound } from './task.ts';
import { DirectAttempt } from './turns/direct-attempt.ts';

const API_TYPES: Record<DirectFormatId, ApiType> = {
  embedding: 'embeddings',
  rerank: 'rerank',
  image: 'image',
  completion: 'completions',
  speech: 'tts',
  transcription: 'stt',
  moderation: 'moderation',
  video: 'video',
};
/** The operations that report an upstream timeout as 524. */
const TIMEOUT_524: ReadonlySet<DirectFormatId> = new Set(['rerank', 'image', 'speech', 'transcription', 'video']);
type Adapters = { readonly [Id in DirectFormatId]?: unknown };
/** The output modality that a model needs for the operation. */
const OUTPUT: Record<DirectFormatId, string> = {
  embedding: 'embeddings',
  rerank: 'rerank',
  image: 'image',
  completion: 'text',
  speech: 'speech',
  transcription: 'transcription',
  moderation: 'moderation',
  video: 'video',
};

export class DirectTask implements Task {
  readonly apiType: ApiType;
  readonly renew: Task['renew'];
  readonly answersWhole: boolean;
  readonly streamsBytes: boolean;
  readonly timeoutStatus: number;
  readonly promptBytes: number;
  readonly #context: RequestContext<DirectRequest>;
  readonly #request: DirectRequest;
  readonly #parts: InferenceParts;
  readonly #job: string | undefined;
  #decoded: unknown | undefined;
  /** True once `#decoded` contains the media that the request references by URL. */
  #fetched = false;

  /** @param job the upstream's id of a job that attempts continue, instead of beginning one */
  constructor(context: RequestContext<DirectRequest>, parts: InferenceParts, job?: string) {
    const { request } = context;
    this.#context = context;
    this.apiType = API_TYPES[request.format.id];
    this.renew = request.format.renew;
    this.streamsBytes = request.format.streamsBytes === true;
    this.answersWhole = !this.streamsBytes;
    this.timeoutStatus = TIMEOUT_524.has(request.format.id) ? 524 : 504;
    this.promptBytes = request.format.longest?.(request.document) ?? request.document.bytes.length;
    this.#request = request;
    this.#parts = parts;
    this.#job = job;
  }

  servedBy(endpoint: Endpoint): boolean {
    if (this.#adapter(endpoint) === undefined) return false;
    const { outputModalities } = endpoint;
    return outputModalities === null || outputModalities.includes(OUTPUT[this.#request.format.id]);
  }

  bound(endpoint: Endpoint): CostBound {
    const { pricing, contextLength } = endpoint;
    if (pricing === null) {
      throw new GatewayError(
        'permission_denied',
        `${endpoint.modelId} has no price, so its cost cannot be bounded, and this key has a budget`,
      );
    }
    const max = this.#request.format.most(this.#decode(), { contextLength });
    const ceiling = ceilingOf(pricing);
    const price =
      BigInt(Math.ceil(max.promptTokens)) * ceiling.prompt +
      BigInt(Math.ceil(max.outputTokens ?? 0)) * ceiling.completion +
      BigInt(max.requests ?? 1) * ceiling.request +
      BigInt(max.inputImages ?? 0) * ceiling.image +
      BigInt(max.outputImages ?? 0) * ceiling.outputImage +
      BigInt(max.outputMegapixels ?? 0) * ceiling.outputMegapixel +
      BigInt(max.inputCharacters ?? 0) * ceiling.inputCharacter +
      BigInt(max.inputSeconds ?? 0) * ceiling.inputSecond +
      BigInt(max.outputSeconds ?? 0) * ceiling.outputSecond;
    return { nano: nanoFromPrice(price), within: () => undefined };
  }

  tokens({ contextLength }: Endpoint): TokenBound {
    const { promptTokens, outputTokens = 0 } = this.#request.format.most(this.#decode(), { contextLength });
    return { tokens: Math.ceil(promptTokens) + Math.ceil(outputTokens), within: () => undefined };
  }

  estimate(endpoint: Endpoint): Estimate {
    const usage = this.#likely();
    return { promptTokens: usage.input, promptNano: this.#metered(endpoint, usage, true).costNano, outputPrice: 0n };
  }

  prepare(_endpoint: Endpoint, { signal }: Preparing): Promise<void> | undefined {
    const { format, document } = this.#request;
    if (format.remote === undefined || this.#fetched) return undefined;
    const remote = format.remote(document);
    return remote.size === 0 ? undefined : this.#fetchMedia(remote, signal());
  }

  async #fetchMedia(remote: ReadonlyMap<string, string>, signal: AbortSignal): Promise<void> {
    const { egress, limits } = this.#parts;
    const fetcher = new MediaFetcher(egress, limits, (url) => remote.get(url) ?? '');
    const media = await fetcher.all(
      new Map([...remote.keys()].map((url) => [url, { kind: 'image', times: 1 }])),
      signal,
    );
    const sources = [...media].map(
      ([url, { mediaType, bytes }]) => [url, { mediaType, data: bytes.toString('base64') }] as const,
    );
    this.#decoded = this.#request.format.decode(this.#request.document, new Map(sources));
    this.#fetched = true;
  }

  attempt(endpoint: Endpoint, { stamp, owner, user }: AttemptAbout): Attempt {
    const { format, facts } = this.#request;
    const request = this.#decode();
    const adapter = this.#adapter(endpoint)!;
    const screen = this.#screen();
    const target = {
      model: endpoint.upstreamId,
      user,
      // Filters read the whole answer.
      stream: facts.stream && screen === undefined,
      stamp,
      contextLength: endpoint.contextLength,
      providerId: endpoint.provider.id,
      baseUrl: endpoint.provider.baseUrl,
    };
    const plan = this.#job === undefined ? adapter.start(request, target) : adapter.resume!(request, this.#job);
    return new DirectAttempt<unknown>({
      format: format.id,
      plan,
      decodeFailure: endpoint.provider.kind.decodeFailure ?? ((status, body) => adapter.decodeFailure(status, body)),
      encodeReply: (answer, closing) => format.encodeReply(answer, request, stamp, closing),
      ...(format.mediaType && { mediaType: (answer) => format.mediaType!(answer, request) }),
      ...(format.events && {
        events: {
          ...(format.events.whole && { whole: true as const }),
          end: (answer, closing) => format.events!.end(answer, request, stamp, closing),
          failure: (error) => format.events!.failure(error),
        },
      }),
      screen,
      transcribe: this.#transcribe(),
      upstreamId: this.#job,
      stream: facts.stream,
      owner,
      clock: this.#parts.clock,
      egress: this.#parts.egress,
      limits: this.#parts.limits,
      framing: endpoint.provider.kind.framing?.(format.id),
      totalMs: endpoint.provider.timeouts.total,
    });
  }

  #screen(): { answer(answer: unknown): unknown; readonly hits: readonly Hit[] } | undefined {
    const { format, caller } = this.#request;
    const { answerFilters } = policyOf(caller).compiled;
    if (format.screened === undefined || answerFilters === undefined) return undefined;
    const screening = answerFilters.screening(this.#parts.clock);
    return {
      get hits() {
        return screening.hits;
      },
      answer: (answer) => {
        const again = answerFilters.screening(this.#parts.clock);
        const [clean, recheck] = [screening, again].map((each) => (text: string) => each.whole(text));
        return screening.timed(() => format.screened!(answer, clean!, recheck!));
      },
    };
  }

  #transcribe(): ((answer: unknown) => Transcript) | undefined {
    const { textOf } = this.#request.format;
    const { logged } = this.#context;
    if (textOf === undefined || logged === undefined) return undefined;
    return (answer) => {
      const transcript = new Transcript(logged);
      transcript.text(textOf(answer));
      return transcript;
    };
  }

  /** The reported usage. For calls that reported none or did not end, the estimate is charged. */
  meter(endpoint: Endpoint, attempt: Attempt, complete: boolean): Metered {
    const { usage } = attempt;
    if (complete && usage !== undefined) return this.#metered(endpoint, usage, false);
    const { openShare: share, known, shownTokens } = attempt as DirectAttempt<unknown>;
    if (usage === undefined && shownTokens !== undefined) {
      const likely = this.#likely();
      return this.#metered(endpoint, { ...likely, output: Math.min(likely.output, shownTokens) }, true);
    }
    if (usage === undefined) return this.#supposed(endpoint, known);
    return this.#metered(endpoint, share === 0 ? usage : addUsage(usage, scaled(this.#likely(), share))!, true);
  }

  failureEvent(error: GatewayError, _stamp?: Stamp, _closing?: Closing): string {
    return this.#request.format.events?.failure(error) ?? '';
  }

  #adapter(endpoint: Endpoint): Adapter<unknown, unknown> | undefined {
    // A provider kind has its adapter for a format under the format's id.
    return (endpoint.provider.kind as Adapters)[this.#request.format.id] as Adapter<unknown, unknown> | undefined;
  }

  #decode(): unknown {
    this.#decoded ??= this.#request.format.decode(this.#request.document);
    return this.#decoded;
  }

  #metered(endpoint: Endpoint, usage: Usage, estimated: boolean): Metered {
    const charged = endpoint.pricing?.image === undefined ? 0 : this.#inputImages();
    const words =
      endpoint.pricing?.outputImages &&
      this.#request.format.priceWords?.(this.#decode(), this.#adapter(endpoint)!, endpoint.upstreamId);
    return metered(endpoint, usage, estimated, charged, words);
  }

  /** @param known counts that are exact; the cost is, too, if it follows from them alone */
  #supposed(endpoint: Endpoint, known: Partial<Usage> | undefined): Metered {
    const supposed = this.#metered(endpoint, { ...this.#likely(), ...known }, true);
    if (known === undefined) return supposed;
    const exact = this.#metered(endpoint, { ...inputUsage(0), ...known }, false);
    return { ...supposed, estimated: supposed.costNano !== exact.costNano };
  }

  #inputImages(): number {
    return this.#request.format.most(this.#decode(), { contextLength: null }).inputImages ?? 0;
  }

  #likely(): Usage {
    return this.#request.format.likely(this.#decode());
  }
}

function scaled(usage: Usage, share: number): Usage {
  if (share === 1) return usage;
  const part: Usage = { ...usage };
  for (const key of Object.keys(part) as (keyof Usage)[]) {
    const count = part[key];
    if (typeof count === 'number') Object.assign(part, { [key]: Math.ceil(count * share) });
  }
  return part;
}
