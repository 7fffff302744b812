/** Rules that requests of several formats share and that a schema cannot express. All throw GatewayError 400. */
import { type GatewayError, invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf } from './fields.ts';

/** Names of output schemas. */
const SCHEMA_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Longer than most services accept: `short-names.ts` shortens such names on the way out. */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const LONGEST_METADATA_KEY = 64;

export function checkSchemaName(name: unknown, path: string): void {
  if (typeof name !== 'string' || !SCHEMA_NAME.test(name)) {
    throw invalidField(path, 'must be 1 to 64 characters of a-z, A-Z, 0-9, _ and -');
  }
}

export function checkToolName(name: unknown, path: string): void {
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
    throw invalidField(path, 'must be 1 to 128 characters of a-z, A-Z, 0-9, _ and -');
  }
}

/** For a choice that forces a tool in a request without tools. */
export function nothingToChoose(): GatewayError {
  return invalidField('tool_choice', 'forces a tool, but the request has no tools');
}

/** For a choice at `path` of a tool that the request lacks. */
export function noSuchTool(path: string): GatewayError {
  return invalidField(path, 'must name a tool of the request');
}

/** `model` and `models`. */
export function checkModels(request: Fields): void {
  if (isBlank(request['model'])) throw invalidField('model', 'must not be empty');
  if (!Array.isArray(request['models'])) return;
  request['models'].forEach((model: unknown, index) => {
    const path = `models[${index}]`;
    if (isBlank(model)) throw invalidField(path, 'must not be empty');
    if (typeof model === 'string' && model.includes('@preset/'))
      throw invalidField(path, 'must not name a preset: use model');
  });
}

function isBlank(model: unknown): boolean {
  return typeof model === 'string' && model.trim() === '';
}

export function checkMetadata(request: Fields): void {
  for (const key of Object.keys(fieldsOf(request['metadata']))) {
    if (key.length > LONGEST_METADATA_KEY) {
      throw invalidField('metadata', `has a key longer than ${LONGEST_METADATA_KEY} characters`);
    }
  }
}

/** The object `reasoning`. @param effort also given by another member in some formats */
export function checkReasoningObject(reasoning: Fields, effort = reasoning['effort'] ?? undefined): void {
  if (typeof reasoning['max_tokens'] === 'number' && effort !== undefined) {
    throw invalidField('reasoning.max_tokens', 'cannot be combined with an effort');
  }
  const { effort: own } = reasoning;
  if (reasoning['enabled'] === false && (own ?? undefined) !== undefined && own !== 'none') {
    throw invalidField('reasoning.enabled', 'cannot be false when an effort is given');
  }
}
