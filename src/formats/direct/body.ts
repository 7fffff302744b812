/** Request members shared by all operations with a direct format: model, provider preferences, end user and tracing. */
import Type, { type TSchema } from 'typebox';
import { invalidField } from '../../base/errors.ts';
import { type JsonDocument, stringifyJson } from '../../base/json.ts';
import { textOrUndefined } from '../conversation/fields.ts';
import type { RequestFacts } from '../conversation/format.ts';
import { type LoggedContent, rawMember } from '../conversation/logged-content.ts';
import { checkPreferences, PreferencesSchema, readPreferences } from '../conversation/preferences.ts';

/** Members that only the gateway reads. `user` is sent hashed, if at all. */
export const GATEWAY_MEMBERS = ['provider', 'session_id', 'trace', 'user'] as const;

export const commonMembers: Record<string, TSchema> = {
  model: Type.String({ minLength: 1 }),
  provider: Type.Optional(Type.Unsafe({ ...PreferencesSchema, type: ['object', 'null'] })),
  session_id: Type.Optional(Type.String({ maxLength: 256 })),
  trace: Type.Optional(Type.Object({})),
  user: Type.Optional(Type.String({ maxLength: 256 })),
};

export function checkCommon(document: JsonDocument): void {
  checkPreferences(document.member('provider'));
  if (String(document.member('model')).trim() === '') throw invalidField('model', 'must not be empty');
}

export function askedOf(document: JsonDocument, media: RequestFacts['media'], stream = false): RequestFacts {
  const user = textOrUndefined(document.member('user'));
  const sessionId = textOrUndefined(document.member('session_id'));
  return {
    model: textOrUndefined(document.member('model')),
    fallbackModels: [],
    fallbackOnRefusal: false,
    provider: readPreferences(document.member('provider'), undefined),
    stream,
    choices: 1,
    media,
    ...(user !== undefined && { user }),
    ...(sessionId !== undefined && { sessionId }),
  };
}

/** The prompt for the content log: a member's text or JSON, followed by the JSON of another one. */
export function loggedPrompt(document: JsonDocument, key: string, attached?: string): LoggedContent {
  const value = document.member(key);
  const text = typeof value === 'string' ? value : stringifyJson(value ?? null);
  const more = attached === undefined ? undefined : rawMember(document, attached);
  return { prompt: more === undefined ? text : `${text}\n${more}` };
}
