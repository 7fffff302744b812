/**
 * A stored answer as the answer of another request (wire/common.md, "Response cache"): a new id and time, a usage of
 * nothing, no routing metadata. Everything else stays byte for byte.
 */

import { type Edit, patchMembers, scanMembers } from '../../base/json.ts';
import { isFields } from './fields.ts';

/** What makes an answer that of one request. */
export interface Renewal {
  /** Generation id, `gen-...`. */
  id: string;
  /** Unix seconds. */
  created: number;
  /** Under which answers may have told how they were routed. */
  metadataKey: string;
}

export interface RenewalRules {
  /** JSON for members that are present; given what stands there. */
  members: Readonly<Record<string, (json: string) => string>>;
  /** The member that holds the answer in events around one. */
  nested?: string;
  metadataKey: string;
}

/** @param json an answer or one event of it: the text of a JSON object */
export function renewed(json: string, rules: RenewalRules): string {
  const found = scanMembers(json);
  const edits: Edit[] = [];
  for (const { key, valueStart, valueEnd } of found) {
    const value = json.slice(valueStart, valueEnd);
    const write = Object.hasOwn(rules.members, key) ? rules.members[key] : undefined;
    if (key === rules.metadataKey) edits.push({ key, json: undefined });
    else if (write !== undefined) edits.push({ key, json: write(value) });
    else if (key === 'usage') edits.push({ key, json: usageOfNothing(value) });
    else if (key === rules.nested && value.startsWith('{')) edits.push({ key, json: renewed(value, rules) });
  }
  return edits.length === 0 ? json : patchMembers(json, found, edits);
}

/** The same record with every count and amount at zero. A model without a price has told no cost; this answer has one. */
function usageOfNothing(json: string): string {
  const usage: unknown = JSON.parse(json);
  if (isFields(usage) && usage['is_byok'] !== undefined) usage['cost'] ??= 0;
  return JSON.stringify(usage, (_key, value: unknown) => (typeof value === 'number' ? 0 : value));
}

/**
 * Text of an event stream of ours with each event's data renewed. Cuts nothing: the text ends where an event does.
 * Data of several lines are put into one, which is the same to every reader.
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
