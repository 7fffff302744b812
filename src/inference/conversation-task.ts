/**
 * A conversation as a task: bounded by its output cap, sent in the best of an endpoint's formats, relayed or
 * translated.
 */

import type { Pricing } from '../base/config.ts';
import type { GatewayError } from '../base/errors.ts';
import { type Endpoint, isNamed } from '../catalog/index.ts';
import type { FormatId } from '../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type {
  Closing,
  EncodeTarget,
  Needs,
  RequestFacts,
  SpokenFormat,
  Stamp,
  UpstreamWork,
} from '../formats/conversation/format.ts';
import { Uncarried } from '../formats/conversation/losses.ts';
import { excessMediaBytes } from '../formats/conversation/media-size.ts';
import { nativeToolFor } from '../formats/conversation/native-tool.ts';
import { spokenFormat } from '../formats/index.ts';
import { sumOfWork, vendorWork } from '../formats/server-tools/index.ts';
import { policyOf } from '../guardrails/index.ts';
import { formatsFor } from '../providers/index.ts';
import { type Metered, meter, promptEstimate } from './accounting/meter.ts';
import {
  affordableTokens,
  boundNano,
  boundOf,
  continuesThread,
  type PromptSize,
  tokenBound,
  tokenLimitsOf,
} from './admission/cost-bounds.ts';
import { screenOf } from './admission/guardrails.ts';
import { ClientAnswer } from './answer/client-answer.ts';
import type { JoinedAnswer } from './answer/joined-answer.ts';
import { Transcript } from './answer/transcript.ts';
import type { EarlyRunning } from './before-turns.ts';
import type { RequestContext } from './context.ts';
import { RequestMedia } from './media/request-media.ts';
import type { InferenceParts } from './parts.ts';
import { judgeOf, revisionOf } from './plugins/index.ts';
import type { TurnJudge } from './plugins/plugin.ts';
import type { ConversationRequest } from './request.ts';
import { asServed, isOutputFeature, tierFor } from './routing/index.ts';
import type { Attempt, AttemptAbout, CostBound, Estimate, Preparing, Task, TokenBound } from './task.ts';
import { type Encoding, encodingOf } from './tokens/family.ts';
import { requestText } from './tokens/request-text.ts';
import { ConversationAttempt } from './turns/attempt.ts';
import type { ToolsRunning, WantedTools } from './turns/gateway-tools.ts';
import type { Passage } from './turns/passage.ts';
import { promptCachingFor } from './turns/prompt-caching.ts';
import { Translation } from './turns/translate.ts';
import { gatewayToolsFor, type LoopRunning, NO_TOOLS, TurnLoop } from './turns/turn-loop.ts';

/** Models whose only output is one of these cannot serve a conversation. */
const OTHER_OUTPUT: ReadonlySet<string> = new Set([
  'embeddings',
  'rerank',
  'speech',
  'transcription',
  'moderation',
  'video',
]);

const NO_WORK: UpstreamWork = { searches: 0, tokens: 0, images: 0 };

export class ConversationTask implements Task {
  readonly apiType = 'completions';
  readonly renew: Task['renew'];
  readonly echo: Stamp['echo'];
  readonly #context: RequestContext<ConversationRequest>;
  readonly #request: ConversationRequest;
  readonly #parts: InferenceParts;
  readonly #translation: Translation;
  readonly promptBytes: number;
  #vendorWork: UpstreamWork | undefined;
  /** The tools that the gateway runs for this request. */
  readonly #tools: WantedTools | undefined;
  /** What judges the answer's turns. */
  readonly #judge: TurnJudge | undefined;
  /** For a request whose answer may take several turns. */
  #loop: TurnLoop | undefined;
  readonly #media: RequestMedia;
  /** The prompt's token count, and the encoding that it was counted with. */
  #counted: { encoding: Encoding; tokens: number } | undefined;
  /** Bytes of media that do not count as text, computed when an estimate first needs them. */
  #excess: number | undefined;

  constructor(context: RequestContext<ConversationRequest>, parts: InferenceParts) {
    const { request } = context;
    this.#context = context;
    this.#request = request;
    this.#parts = parts;
    const { tools } = request.facts.needs ?? {};
    const remembers = request.format.losesReasoning === true && tools !== undefined;
    const memory = remembers ? parts.thinking?.of(request.caller.keyId) : undefined;
    this.#translation = new Translation(request.format, request.document, memory);
    this.#media = new RequestMedia(context, () => this.#translation.conversation, parts);
    this.#judge = judgeOf(context, parts);
    this.#tools = gatewayToolsFor(request, parts) ?? (this.#judge && NO_TOOLS);
    this.promptBytes = request.document.bytes.length;
    const { format, document } = request;
    // Tools that change something run for every request: their answers are not repeated from the cache.
    this.renew = this.#tools?.lasting === true ? undefined : format.renew;
    this.echo = format.echo && (() => format.echo!(document));
  }

  servedBy({ outputModalities, provider }: Endpoint): boolean {
    if (provider.kind.speaks === undefined) return false;
    return outputModalities === null || !outputModalities.every((modality) => OTHER_OUTPUT.has(modality));
  }

  async countPrompt({ upstreamId }: Endpoint): Promise<number | undefined> {
    const { document, facts, format } = this.#request;
    const encoding = encodingOf(upstreamId);
    // Token counts of documents and audio cannot be derived from text.
    if (encoding === undefined || facts.media.documents > 0 || continuesThread(facts)) return undefined;
    if (this.#counted?.encoding === encoding) return this.#counted.tokens;
    const tokens = await this.#parts.tokens?.count(
      encoding,
      requestText(document.value, format.images(document.value)),
    );
    // A failed count is not remembered: the next one may succeed.
    if (tokens !== undefined) this.#counted = { encoding, tokens };
    return tokens;
  }

  bound(endpoint: Endpoint, promptTokens?: number): CostBound {
    const size = this.#promptSize(promptTokens);
    const work = this.#workOf(endpoint);
    const facts = work === NO_WORK ? this.#turnFacts : { ...this.#turnFacts, work };
    const bound = boundOf(endpoint, facts, size, (model) => this.#pricingOf(endpoint, model));
    return {
      nano: boundNano(bound, bound.maxOutputTokens),
      within(leftNano) {
        const tokens = affordableTokens(bound, leftNano);
        return tokens === undefined ? undefined : { capOutputTokens: tokens, nano: boundNano(bound, tokens) };
      },
    };
  }

  /** What the upstream may do with its own tools, named by the request or used instead of the gateway's. */
  #workOf({ provider }: Endpoint): UpstreamWork {
    const { document, format } = this.#request;
    this.#vendorWork ??= vendorWork(document.structure, format.id) ?? NO_WORK;
    const native = provider.kind.nativeTools === undefined ? undefined : this.#tools?.nativeWork;
    return native === undefined ? this.#vendorWork : sumOfWork([this.#vendorWork, native]);
  }

  tokens(endpoint: Endpoint, cap?: number, promptTokens?: number): TokenBound {
    const facts = this.#turnFacts;
    return tokenBound(tokenLimitsOf(endpoint, facts, this.#promptSize(promptTokens)), facts.choices, cap);
  }

  /** The prompt of the next turn. @param counted tokens of the client's request */
  #promptSize(counted: number | undefined): PromptSize {
    const bytes = this.#turnBytes;
    return counted === undefined ? { bytes } : { tokens: counted + bytes - this.promptBytes };
  }

  get #turnBytes(): number {
    const { promptBytes } = this;
    if (this.#tools === undefined) return promptBytes;
    return promptBytes + (this.#loop?.addedBytes ?? this.#tools.definitionBytes);
  }

  /** The size of the next turn's prompt for estimates. */
  get #usualBytes(): number {
    const { document, facts } = this.#request;
    if (facts.media.images + facts.media.documents === 0) return this.#turnBytes;
    this.#excess ??= excessMediaBytes(document.structure);
    return Math.max(this.#turnBytes - this.#excess, 0);
  }

  /** What the request asks of the next turn: its output limit is for all turns together. */
  get #turnFacts(): RequestFacts {
    const { facts } = this.#request;
    const left = this.#loop?.leftTokens;
    return left === undefined ? facts : { ...facts, maxOutputTokens: left };
  }

  next(attempt: Attempt, running: LoopRunning): Promise<boolean> {
    return this.#loop!.next(attempt as ConversationAttempt<JoinedAnswer>, running);
  }

  estimate(endpoint: Endpoint): Estimate {
    return { ...promptEstimate(endpoint, this.#usualBytes), outputPrice: endpoint.pricing?.completion ?? 0n };
  }

  prepare(endpoint: Endpoint, about: Preparing): Promise<void> | undefined {
    const media = this.#media.prepare(endpoint, about);
    const loading = this.#tools?.load?.({ request: this.#request, parts: this.#parts });
    return loading === undefined ? media : Promise.all([loading, media]).then(() => undefined);
  }

  get discover(): Task['discover'] {
    return this.#early(this.#tools?.discover);
  }

  get continueCalls(): Task['continueCalls'] {
    return this.#early(this.#tools?.continueCalls);
  }

  #early<T>(run?: (running: ToolsRunning) => Promise<T>): ((running: EarlyRunning) => Promise<T>) | undefined {
    return run && ((running) => run({ ...running, conversation: () => this.#translation.conversation }));
  }

  recover(attempt: Attempt, failure: UpstreamFailure): Promise<void> | undefined {
    return this.#media.recover((attempt as ConversationAttempt).copies, failure);
  }

  attempt(endpoint: Endpoint, { stamp, owner, user, capOutputTokens }: AttemptAbout): Attempt {
    const { format, facts } = this.#request;
    // A model that also writes text is asked for text.
    const makes = endpoint.outputModalities ?? [];
    if (format.lacksImages === true && makes.includes('image') && !makes.includes('text')) {
      throw new Uncarried('image', `the ${format.id} format cannot carry the images that this model generates`);
    }
    this.#beginLoop();
    const screen = screenOf(this.#request, this.#parts);
    const revision = revisionOf(this.#context, () => this.#translation.conversation);
    const unread = screen === undefined && revision === undefined;
    const { spoken, passage } = this.#passage(endpoint, user, capOutputTokens, unread);
    const { dropped } = passage.losses;
    if (dropped.length > 0) {
      const { provider, modelId: model } = endpoint;
      this.#parts.log.debug('settings left out', {
        generation: this.#request.id,
        provider: provider.id,
        model,
        dropped,
      });
    }
    const loop = this.#loop;
    const begin = () =>
      new ClientAnswer({
        served: format,
        stamp,
        stream: facts.stream,
        relay: passage.relayed ? (stamped) => passage.writer(stamped) : undefined,
        revision,
        screen,
        transcript: this.#context.logged && new Transcript(this.#context.logged),
      });
    return new ConversationAttempt({
      spoken,
      passage,
      copies: this.#media.prepared?.copies,
      model: endpoint.upstreamId,
      seed: loop === undefined ? stamp.id : loop.seed(stamp.id),
      stream: facts.stream,
      tools: facts.needs?.tools,
      answer: loop === undefined ? begin() : loop.answerOf(begin, () => this.#translation.presentation()),
      owner,
      limits: this.#parts.limits,
      framing: endpoint.provider.kind.framing?.(spoken.id),
      decodeFailure: endpoint.provider.kind.decodeFailure ?? spoken.decodeFailure,
    });
  }

  pathOf(feature: string): string | undefined {
    return this.#media.pathOf(feature);
  }

  /** @throws Uncarried when the request cannot have tools that the gateway runs */
  #beginLoop(): void {
    if (this.#tools === undefined || this.#loop !== undefined) return;
    const { format, facts } = this.#request;
    const tools = this.#tools.begin(this.#translation.conversation, format);
    const judge = this.#judge;
    this.#loop = new TurnLoop({ tools, judge, request: facts, definitionBytes: this.#tools.definitionBytes });
  }

  meter(endpoint: Endpoint, attempt: Attempt, complete: boolean): Metered {
    const served = asServed(endpoint, attempt.serviceTier);
    return meter(served, attempt.usage, this.#usualBytes, () => attempt.outputBytes, {
      uncountedBytes: complete ? 0 : attempt.uncountedBytes,
      images: this.#request.facts.media.images,
      pricingOf: (model) => this.#pricingOf(served, model),
    });
  }

  /** The pricing of a model that the endpoint's upstream calls within an answer. */
  #pricingOf(endpoint: Endpoint, model: string): Pricing | undefined {
    if (isNamed(endpoint, model)) return endpoint.pricing ?? undefined;
    return this.#parts.catalog().pricingOfCalled?.(endpoint.provider, model);
  }

  failureEvent(error: GatewayError, stamp: Stamp, closing: Closing): string {
    return this.#request.format.encoder(stamp).failure(error, closing);
  }

  /**
   * Encodes in the first of the endpoint's formats that can carry the request. @throws Uncarried of the first one if
   * none can
   */
  #passage(
    endpoint: Endpoint,
    user: string,
    capOutputTokens: number | undefined,
    unscreened: boolean,
  ): { spoken: SpokenFormat; passage: Passage } {
    const { kind } = endpoint.provider;
    const target: EncodeTarget = {
      model: endpoint.upstreamId,
      stream: this.#request.facts.stream,
      maxOutputTokens: endpoint.maxCompletionTokens,
      capOutputTokens: min(capOutputTokens, this.#loop?.leftTokens),
      serviceTier: tierFor(endpoint, this.#request.facts.serviceTier),
      promptCaching: promptCachingFor(this.#request, endpoint, this.#parts.promptCaching()),
      origin: kind.originFor?.(endpoint.upstreamId) ?? kind.origin,
      user,
      previousId: this.#context.previousId,
      comparedId: this.#context.comparedId,
      betas: betasOf(this.#request.about.headers['anthropic-beta']),
      nativeTools: kind.nativeTools,
      ownToolsOnly: this.#ownToolsOnly,
      dialect: kind.dialect,
    };
    const { sink, listeners, debug, logged } = this.#context;
    const isRead = listeners?.some(({ wrote }) => wrote !== undefined) === true;
    const unread = unscreened && sink.takesBytes === true && !isRead && !debug && !logged;
    let refused: Uncarried | undefined;
    const ids = this.#nativeFirst(
      formatsFor(kind, endpoint.upstreamId, this.#request.format.id, endpoint.speaks),
      endpoint,
    );
    for (const byTool of needsOutputTool(endpoint, this.#request.facts.needs) ? [true] : [false, true]) {
      // A tool replaces `response_format` only if no format of the endpoint can carry that.
      if (byTool && refused !== undefined && refused.feature !== 'response_format') break;
      for (const id of ids) {
        const spoken = spokenFormat(id);
        try {
          const asBytes = unread && kind.framing?.(spoken.id) === undefined;
          const options = {
            media: this.#media.prepared?.media,
            outputByTool: byTool,
            turn: this.#loop?.turn,
            unread: asBytes,
          };
          return { spoken, passage: this.#translation.passage(spoken, target, options) };
        } catch (error) {
          if (!(error instanceof Uncarried)) throw error;
          refused ??= error;
        }
      }
    }
    throw refused ?? new Uncarried('model', `${endpoint.provider.name} does not serve conversations`);
  }

  /** Filters do not see what the tools of upstreams find. */
  get #ownToolsOnly(): boolean {
    const { filters, answerFilters } = policyOf(this.#request.caller).compiled;
    return filters !== undefined || answerFilters !== undefined;
  }

  /** Formats in which the endpoint has one of the request's server tools itself come first. */
  #nativeFirst(ids: readonly FormatId[], { provider, upstreamId: model }: Endpoint): readonly FormatId[] {
    const { nativeTools: rows } = provider.kind;
    if (rows === undefined || ids.length === 1 || this.#loop === undefined) return ids;
    const wishes = (this.#loop.turn.conversation.tools ?? []).flatMap((tool) =>
      tool.type === 'function' && tool.native !== undefined ? [tool.native] : [],
    );
    if (this.#ownToolsOnly && wishes.every(({ required }) => required === undefined)) return ids;
    const about = { model, besideFunctions: false, forced: false };
    const has = (format: FormatId) => wishes.some((wish) => nativeToolFor(wish, rows, { ...about, format }));
    return ids.toSorted((one, other) => Number(has(other)) - Number(has(one)));
  }
}

/** True if the catalog says that the model takes tools but no `response_format`. */
function needsOutputTool({ supportedParameters: known, partial }: Endpoint, needs: Needs | undefined): boolean {
  if (known === null || needs === undefined || partial?.parameters) return false;
  return needs.features.some((name) => isOutputFeature(name) && !known.includes(name));
}

function min(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

/** The names in a comma-separated header. */
function betasOf(header: string | string[] | undefined): string[] | undefined {
  if (typeof header !== 'string') return undefined;
  const betas = header.split(',').flatMap((name) => name.trim() || []);
  return betas.length === 0 ? undefined : betas;
}
