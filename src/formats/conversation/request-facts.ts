/** The facts that the gateway reads of a request besides its conversation. */
import type { ProviderPreferences } from './preferences.ts';

/**
 * The upper limit of the work that an upstream does with its own tools while it answers: each search has a price, pages
 * are part of the prompt, and another model makes the images.
 */
export interface UpstreamWork {
  searches: number;
  /** Of pages and other results. */
  tokens: number;
  images: number;
  /** The model that makes the images, if the request names it. */
  imageModel?: string;
}

/**
 * The facts of a request that the gateway itself needs, independent of its format. Texts are as the client sent them.
 */
export interface RequestFacts {
  model: string | undefined;
  /** Further models, in order, excluding `model`. */
  fallbackModels: string[];
  /** True for `fallbacks` of the messages format: a refusal also falls back to the next model. */
  fallbackOnRefusal: boolean;
  provider: ProviderPreferences;
  stream: boolean;
  /** `stream_options.include_usage` of the chat format; undefined when absent. */
  includeUsage?: boolean;
  /** A tool of the chat format has type `custom`. */
  customTools?: true;
  /** `debug.echo_upstream_body` of the chat format; applies to streams only. */
  echoUpstreamBody?: boolean;
  /** The output cap that the client gave. */
  maxOutputTokens?: number;
  /** Requested number of answers; 1 when absent. */
  choices: number;
  /** End-user id, as given. */
  user?: string;
  sessionId?: string;
  metadata?: Record<string, string>;
  /** Media in the request, inline or by URL: their token counts cannot be derived from their bytes. */
  media: { images: number; documents: number };
  /** Absent: text only. */
  needs?: Needs;
  /** As given; aliases are resolved during routing. */
  serviceTier?: string;
  /** `prompt_cache_key`: requests with the same key share a prefix. */
  cacheKey?: string;
  /** The request sets cache breakpoints. */
  marksCache?: boolean;
  /** Calls that the upstream may make on its own within the answer. Absent: none. */
  inner?: InnerCalls;
  /** The work that the upstream may do with tools of its own. Absent: none. */
  work?: UpstreamWork;
  /** The upstream should store the conversation. `previousId`: our id of the answer that the request continues. */
  thread?: { previousId?: string };
  /** Our id of an earlier answer whose prompt the upstream compares with this one (`diagnostics`). */
  comparedId?: string;
}

/** The models of a request, in order; empty if it names none. */
export function requestedModels({ model, fallbackModels }: Pick<RequestFacts, 'model' | 'fallbackModels'>): string[] {
  return model === undefined ? fallbackModels : [model, ...fallbackModels];
}

/**
 * Calls an upstream makes within one answer. Each uses tokens of its own that the answer's output cap does not cover.
 */
export interface InnerCalls {
  /** The upstream summarizes a conversation of this many tokens before it answers; absent: never. */
  compactsFrom?: number;
  /** Other models that the answering model may consult. */
  advisors: readonly { model: string; uses: number; maxOutputTokens?: number }[];
  /** Server tools add text to the conversation while the upstream answers. */
  serverTools: boolean;
}

/** The features that an endpoint must support for a request, in the catalog's terms. */
export interface Needs {
  /** Kinds of input besides text: `image`, `file`, `audio`, `video`. */
  inputs: readonly string[];
  /** Kinds of output besides text: `image`, `audio`. */
  outputs: readonly string[];
  /** Those of `supported_parameters` that change the content of the answer: no endpoint may ignore them. */
  features: readonly string[];
  /** Names of the declared tools; absent: none. */
  tools?: readonly string[];
  /** Wire names of the tools if all are server tools, which an endpoint may have itself. */
  serverTools?: readonly string[] | undefined;
  /** Names of `supported_parameters` for every parameter sent, each with its aliases; for `require_parameters`. */
  parameters: readonly (readonly string[])[];
}
