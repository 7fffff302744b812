/**
 * A provider: where to send, how to sign, which form it speaks, its quirks. `ProviderKind` is code (one small file each,
 * listed in `index.ts`); `Provider` is one configured instance of a kind, as `gatehouse.yaml` or the environment made it.
 */
import type { ModelSettings, OptionFacts } from '../base/config.ts';
import type { CompletionAdapter } from '../formats/completion/index.ts';
import type { FormatId, ReasoningOrigin } from '../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { Dialect, TokenCount } from '../formats/conversation/format.ts';
import type { EmbeddingAdapter } from '../formats/embedding/index.ts';
import type { ImageAdapter } from '../formats/image/index.ts';
import type { RerankAdapter } from '../formats/rerank/index.ts';
import type { SingleFormId } from '../formats/single/index.ts';
import type { Delivery } from './deliver.ts';
import type { Framing } from './framing.ts';
import type { Transport } from './send.ts';
import type { Signer } from './sign.ts';

export interface ProviderKind {
  /** `kind` in the yaml. */
  id: string;
  /** Display name, `provider` on the wire. */
  name: string;
  /** The form in which it is asked for clients of other forms. Absent: it serves no conversations. */
  speaks?: FormatId;
  /** Further forms that it serves below the same address: clients of one of them are relayed in it. */
  alsoSpeaks?: readonly FormatId[];
  /** Where the forms depend on the model: those of this one, the one for clients of other forms first. Wins over both. */
  speaksFor?(upstreamModel: string): readonly FormatId[];
  /** Absent for kinds that have no public address (a bare format); a function where it depends on the options. */
  baseUrl?: string | ((options: Readonly<Record<string, string>>) => string);
  /** Usual environment variable of the credential; `<NAME>_FILE` is read too. Set: the provider switches on by itself. */
  environment?: string;
  /** Further variables of it, for services whose own tools read several. */
  alsoEnvironment?: readonly string[];
  /** What an instance must know beside address and credential (a project, a region): members of its own in the yaml. */
  options?: Readonly<Record<string, OptionFacts>>;
  /** The credential is a JSON document, such as a key file, rather than a header's text. */
  credentialDocument?: boolean;
  /**
   * A customer's own credential, as it was stored: what calls carry of it, and what it says of the options, such as the
   * project that a key file belongs to. Absent: it is what calls carry.
   */
  ownCredential?(value: string): { credential: string; options: Readonly<Record<string, string>> };
  /** Author prefix of the models that it offers when it switches on by itself, e.g. `openai`. */
  author?: string;
  /** Bare model names that belong to it (`gpt-4o`), for clients that change nothing but the base URL. */
  bareModels?: RegExp;
  /** Path below the base URL, where it is not the one that the form has. Whatever of the model goes in is percent-encoded. */
  path?(delivery: Delivery): string | undefined;
  /** Headers that carry the credential and the form's own constants. Built from nothing: no client header gets here. */
  headers(credential: string | null): Record<string, string>;
  /** Made once for each configured provider: what signs its calls, for kinds that headers alone do not do for. */
  signer?(provider: Provider): Signer;
  /** How the streams of a form are cut into events, where that is not as server-sent events. */
  framing?(form: FormatId | SingleFormId): Framing | undefined;
  /** Reads an answer with an error status, where the service's errors are not those of the forms that it speaks. */
  decodeFailure?(status: number, body: string, headers?: Readonly<Record<string, string>>): UpstreamFailure;
  /** Request headers of the client that the provider may see, lower case (e.g. `anthropic-beta`). Default none. */
  forwards?: readonly string[];
  origin: ReasoningOrigin;
  /** Where the origin depends on the model. Wins over `origin`. */
  originFor?(upstreamModel: string): ReasoningOrigin;
  dialect: Dialect;
  /**
   * It has the operation that counts tokens: that of its form (`SpokenFormat.tokenCount`), or one of its own for the models
   * that this answers for, in the form in which they are counted.
   */
  countsTokens?: true | ((upstreamModel: string) => { form: FormatId; counting: TokenCount } | undefined);
  /** How it is asked for vectors; absent: it has none. */
  embedding?: EmbeddingAdapter;
  /** How it is asked to rank documents; absent: it does not. */
  rerank?: RerankAdapter;
  /** How it is asked to complete a text; absent: it holds conversations only. */
  completion?: CompletionAdapter;
  /** How it is asked for pictures. */
  image?: ImageAdapter;
  /** In-process providers (`simulated`) answer here instead of over the network. */
  transport?: Transport;
  /** Models that it brings along, for configurations that list none. */
  models?: readonly ModelSettings[];
  /** Switches on when no other provider is configured; otherwise its models are not listed and answer by name only. */
  standIn?: boolean;
  /** Variable that is `off` where it is not to stand in at all. */
  standInSwitch?: string;
}

/**
 * The forms in which one model of a provider may be asked, best first: the client's own where the provider serves it,
 * then the usual one, then the others. The configuration's word (`modelForms`) wins over the kind's.
 */
export function formsFor(
  kind: ProviderKind,
  upstreamModel: string,
  client: FormatId,
  modelForms?: readonly FormatId[],
): readonly FormatId[] {
  const forms = modelForms ?? kind.speaksFor?.(upstreamModel);
  const usual = kind.speaks === undefined ? [] : [kind.speaks];
  if (forms === undefined && kind.alsoSpeaks === undefined) return usual;
  const all = forms ?? [...usual, ...kind.alsoSpeaks!];
  return all.includes(client) ? [client, ...all.filter((form) => form !== client)] : all;
}

/** All in milliseconds. `firstByte`: dispatch to first body byte; `idle`: between body bytes; `total`: the whole call. */
export interface Timeouts {
  connect: number;
  firstByte: number;
  idle: number;
  total: number;
}

export interface Provider {
  /** As in `provider.only`, lower case. */
  id: string;
  name: string;
  kind: ProviderKind;
  baseUrl: string;
  /** By the names of the kind's `options`. */
  options: Readonly<Record<string, string>>;
  /** Several are spread over and cooled one by one. Empty: calls carry no credential. */
  credentials: readonly string[];
  /** Further headers of every call, as configured; names in lower case. */
  headers?: Readonly<Record<string, string>>;
  timeouts: Timeouts;
  maxConcurrency: number;
  /** Absent: the headers of the kind are all that a call needs. */
  signer?: Signer;
}
