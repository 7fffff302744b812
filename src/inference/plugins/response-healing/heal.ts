/** Turns a model's text into the JSON that the request asked for, if the JSON can be found in it. Pure. */
import { jsonrepair } from 'jsonrepair';
import type { OutputFormat } from '../../../formats/conversation/conversation.ts';
import { isFields } from '../../../formats/conversation/fields.ts';
import { fitsSchema } from './schema-fit.ts';
import { candidatesIn } from './strip.ts';

/** The repair can take quadratic time, and it runs on the main thread: 16 KB take at most about 0.1 s. */
export const MAX_REPAIRED_LENGTH = 16 * 1024;

/**
 * `valid`: the text is JSON already. `stripped`: it was within other text. `repaired`: it was JSON with faults.
 * `unrepairable`: no JSON of the wanted structure was found, or too long a text to be repaired. Then the text is as it was.
 */
export interface Healed {
  text: string;
  outcome: 'valid' | 'stripped' | 'repaired' | 'unrepairable';
}

export function heal(text: string, output: OutputFormat): Healed {
  const parsed = parse(text);
  // JSON of another structure is what the model said, not a fault of its syntax; a string may hold the JSON.
  if (parsed !== undefined && typeof parsed !== 'string') return { text, outcome: 'valid' };
  const source = typeof parsed === 'string' ? parsed : text;
  const candidates = candidatesIn(source);
  for (const candidate of candidates) {
    if (fits(parse(candidate), output)) return { text: candidate, outcome: 'stripped' };
  }
  for (const candidate of candidates) {
    const repaired = repair(candidate);
    if (repaired !== undefined && fits(parse(repaired), output)) return { text: repaired, outcome: 'repaired' };
  }
  return { text, outcome: 'unrepairable' };
}

/** Two objects become an array, a cut text ends early: the schema decides whether the result is acceptable. */
function fits(value: unknown, output: OutputFormat): boolean {
  if (value === undefined) return false;
  if (output.type === 'schema' && output.schema !== undefined) return fitsSchema(value, output.schema);
  return isFields(value);
}

function repair(text: string): string | undefined {
  if (text.length > MAX_REPAIRED_LENGTH) return undefined;
  try {
    return jsonrepair(text);
  } catch {
    return undefined;
  }
}

/** Undefined if the text is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
