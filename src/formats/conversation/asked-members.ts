/** What the served forms have in common of what the gateway itself reads of a request. */
import { type Fields, textOrUndefined } from './fields.ts';
import type { Asked, Needs } from './format.ts';
import { readPreferences } from './preferences.ts';

/** Everything in a request that is read at a rate of its own, and whether something is marked to be cached. */
export interface Contents {
  images: number;
  documents: number;
  /** Kinds of input, as the catalog calls them. */
  kinds: string[];
  marked: boolean;
}

export function noContents(): Contents {
  return { images: 0, documents: 0, kinds: [], marked: false };
}

export function addKind({ kinds }: Contents, kind: string): void {
  if (!kinds.includes(kind)) kinds.push(kind);
}

/** What each form has under names or rules of its own. `undefined` members are left out. */
export interface OwnMembers {
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

export function askedMembers(request: Fields, own: OwnMembers): Asked {
  const provider = readPreferences(request['provider'], request['route']);
  const { images, documents, kinds, marked } = own.contents;
  const result: Asked = {
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

/** `model` and `models` as chat and responses have them: the first of the list stands for a model that is not named. */
export function modelsOf(model: string | undefined, models: unknown): Pick<OwnMembers, 'model' | 'fallbackModels'> {
  if (!Array.isArray(models)) return { model, fallbackModels: [] };
  const names = models.filter((name): name is string => typeof name === 'string');
  const first = model ?? names[0];
  return { model: first, fallbackModels: [...new Set(names)].filter((name) => name !== first) };
}
