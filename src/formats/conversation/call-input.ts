/** Arguments of calls where a form holds them as an object instead of as text. */
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { ToolCallPart } from './conversation.ts';
import { isFields } from './fields.ts';

/** The member in which arguments that are no JSON object travel where the form needs an object. */
export const INVALID_JSON = 'INVALID_JSON';

/**
 * The input object of a call. Numbers keep their digits (bug 34). Text that is no JSON object (a cut answer, a model's
 * slip) stands under `INVALID_JSON`, as Anthropic's own documentation advises; a custom tool's text under `input`.
 */
export function inputOf(call: ToolCallPart): unknown {
  if (call.custom) return { input: call.arguments };
  if (call.arguments.trim() === '') return {};
  return parseInput(call.arguments);
}

/**
 * The same as a text, for services that parse it (vLLM, Ollama, Mistral and Cohere refuse a history with a broken call).
 * What is a JSON object stays as it is, to the byte.
 */
export function inputText(call: ToolCallPart): string {
  if (call.arguments === '' && !call.custom) return '{}';
  return !call.custom && isObjectText(call.arguments) ? call.arguments : stringifyJson(inputOf(call));
}

/** The object that the text of an input is, or the text under `INVALID_JSON`. */
export function parseInput(text: string): unknown {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return { [INVALID_JSON]: text };
  }
  return isFields(value) ? value : { [INVALID_JSON]: text };
}

/** The JSON text of a call's input; what the gateway wrapped because it was no object comes out as it was. */
export function argumentsOf(input: unknown): string {
  if (input === undefined || input === null || input === '') return '{}';
  // Some relatives of the vendors send the text itself.
  if (typeof input === 'string') return input;
  if (isFields(input)) {
    const wrapped = input[INVALID_JSON];
    if (typeof wrapped === 'string' && Object.keys(input).length === 1 && !isObjectText(wrapped)) return wrapped;
  }
  return stringifyJson(input);
}

export function isObjectText(text: string): boolean {
  try {
    return isFields(parseJson(text));
  } catch {
    return false;
  }
}
