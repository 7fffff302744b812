/** Tool call arguments for formats that hold them as an object instead of text. */
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { ToolCallPart } from './conversation.ts';
import { isFields } from './fields.ts';

/** The member that holds arguments that are not a JSON object, where the format needs an object. */
const INVALID_JSON = 'INVALID_JSON';

/**
 * The input object of a call. Numbers keep their digits (earendil-works/pi#8943). Text that is not a JSON object
 * (truncated or malformed output) is put under `INVALID_JSON`, as Anthropic's documentation advises; the text of a
 * custom tool under `input`.
 */
export function inputOf(call: ToolCallPart): unknown {
  if (call.custom) return { input: call.arguments };
  if (call.arguments.trim() === '') return {};
  return parseInput(call.arguments);
}

/**
 * The input as text, for services that parse it (vLLM, Ollama, Mistral and Cohere reject a history with a malformed
 * call). Text that is a JSON object is returned unchanged.
 */
export function inputText(call: ToolCallPart): string {
  if (call.arguments === '' && !call.custom) return '{}';
  return !call.custom && isObjectText(call.arguments) ? call.arguments : stringifyJson(inputOf(call));
}

/** Parses the text of an input; if it is not an object, wraps it under `INVALID_JSON`. */
export function parseInput(text: string): unknown {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return { [INVALID_JSON]: text };
  }
  return isFields(value) ? value : { [INVALID_JSON]: text };
}

/** The JSON text of a call's input; unwraps text that `inputOf` or `parseInput` wrapped. */
export function argumentsOf(input: unknown): string {
  if (input === undefined || input === null || input === '') return '{}';
  // Some compatible services send the arguments as text.
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
