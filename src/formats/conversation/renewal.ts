/**
 * Rewrites a stored answer for another request (docs/guides/caching.md): a new id and time, zero usage, no routing
 * metadata. Everything else stays byte for byte.
 */

import { scanMembers } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import { isFields } from './fields.ts';

/** The values that belong to one request. */
export interface Renewal {
  /** Generation id, `gen-...`. */
  id: string;
  /** Unix seconds. */
  created: number;
  /** The member that may hold routing metadata. */
  metadataKey: string;
}

interface RenewalRules {
  /** The new JSON of members that are present, given their old JSON. */
  members: Readonly<Record<string, (json: string) => string>>;
  /** The member with counts and amounts; default `usage`. */
  usage?: string;
  /** The member that holds the answer in events that wrap it. */
  nested?: string;
  metadataKey: string;
}

/** @param json the text of a JSON object: an answer or one event of it */
export function renewed(json: string, rules: RenewalRules): string {
  const found = scanMembers(json);
  const edits: Edit[] = [];
  for (const { key, valueStart, valueEnd } of found) {
    const value = json.slice(valueStart, valueEnd);
    const write = Object.hasOwn(rules.members, key) ? rules.members[key] : undefined;
    if (key === rules.metadataKey) edits.push({ key, json: undefined });
    else if (write !== undefined) edits.push({ key, json: write(value) });
    else if (key === (rules.usage ?? 'usage')) edits.push({ key, json: usageOfNothing(value) });
    else if (key === rules.nested && value.startsWith('{')) edits.push({ key, json: renewed(value, rules) });
  }
  return edits.length === 0 ? json : patchMembers(json, found, edits);
}

/**
 * The record with all counts and amounts at zero. Models without a price report no cost; a cached answer always does.
 */
function usageOfNothing(json: string): string {
  const usage: unknown = JSON.parse(json);
  if (isFields(usage) && usage['is_byok'] !== undefined) usage['cost'] ??= 0;
  return JSON.stringify(usage, (_key, value: unknown) => (typeof value === 'number' ? 0 : value));
}

/**
 * Renews the data of each event in a stream written by the gateway. The text must end at an event boundary. Multi-line
 * data becomes one line, which every parser reads the same.
 */
export function renewedEvents(text: string, renew: (json: string) => string): string {
  let result = '';
  for (const event of text.split('\n\n')) {
    if (event === '') continue;
    const names: string[] = [];
    const data: string[] = [];
    for (const line of event.split('\n')) {
      if (line.startsWith('data: ')) data.push(line.slice('data: '.length));
      else names.push(line);
    }
    const json = data.join(' ');
    const lines = [...names, ...(data.length === 0 ? [] : [`data: ${json.startsWith('{') ? renew(json) : json}`])];
    result += `${lines.join('\n')}\n\n`;
  }
  return result;
}
