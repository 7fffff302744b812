/** Request facts that all served formats read alike. */
import { type Fields, textOrUndefined } from './fields.ts';
import type { Needs, RequestFacts } from './format.ts';
import { readPreferences } from './preferences.ts';

/** Media and cache marks in a request: the content whose token count its bytes do not give. */
export interface Contents {
  images: number;
  documents: number;
  /** Kinds of input, in the catalog's terms. */
  kinds: string[];
  marked: boolean;
  /** Collects the images, if the caller needs them. */
  found?: Set<unknown>;
}

export function noContents(): Contents {
  return { images: 0, documents: 0, kinds: [], marked: false };
}

export function addImage(contents: Contents, image: unknown): void {
  contents.images += 1;
  contents.found?.add(image);
  addKind(contents, 'image');
}

/** The images that a format's reader of media counts. */
export function imagesFound(count: (contents: Contents) => void): ReadonlySet<unknown> {
  const found = new Set<unknown>();
  count({ ...noContents(), found });
  return found;
}

export function addKind({ kinds }: Contents, kind: string): void {
  if (!kinds.includes(kind)) kinds.push(kind);
}

/** Members whose texts `factMembers` and most formats read. */
export const FACT_MEMBERS = ['model', 'models', 'provider', 'user', 'safety_identifier', 'session_id', 'metadata'];

/** Members that each format names or computes differently. `undefined` members are left out. */
interface OwnMembers {
  model: string | undefined;
  fallbackModels: string[];
  fallbackOnRefusal?: boolean;
  choices?: number;
  maxOutputTokens: unknown;
  user: string | undefined;
  serviceTier: string | undefined;
  contents: Contents;
  needs(inputs: readonly string[], everyParameter: boolean): Needs | undefined;
}

export function factMembers(request: Fields, own: OwnMembers): RequestFacts {
  const provider = readPreferences(request['provider'], request['route']);
  const { images, documents, kinds, marked } = own.contents;
  const result: RequestFacts = {
    model: own.model,
    fallbackModels: own.fallbackModels,
    fallbackOnRefusal: own.fallbackOnRefusal ?? false,
    provider,
    stream: request['stream'] === true,
    choices: own.choices ?? 1,
    media: { images, documents },
  };
  if (typeof own.maxOutputTokens === 'number') result.maxOutputTokens = own.maxOutputTokens;
  if (own.user !== undefined) result.user = own.user;
  const session = textOrUndefined(request['session_id']);
  if (session !== undefined && session !== '') result.sessionId = session;
  const needs = own.needs(kinds, provider.require_parameters === true);
  if (needs !== undefined) result.needs = needs;
  if (own.serviceTier !== undefined) result.serviceTier = own.serviceTier;
  if (marked || (request['cache_control'] ?? null) !== null) result.marksCache = true;
  return result;
}

/** `model` and `models` of chat and responses; without `model`, the first of `models` replaces it. */
export function modelsOf(model: string | undefined, models: unknown): Pick<OwnMembers, 'model' | 'fallbackModels'> {
  if (!Array.isArray(models)) return { model, fallbackModels: [] };
  const names = models.filter((name): name is string => typeof name === 'string');
  const first = model ?? names[0];
  return { model: first, fallbackModels: [...new Set(names)].filter((name) => name !== first) };
}
