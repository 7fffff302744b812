/** Additional headers for a provider's calls, such as an organization, a project or a billing tag. */
import { Secret } from '../secret.ts';
import type { Field } from './field.ts';
import { textLike } from './readers.ts';

/** Headers of the call itself or of its credential, which `api_key` sets. */
const RESERVED =
  /^(accept-encoding|api-key|authorization|connection|content-.*|cookie|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|x-api-key|x-goog-api-key)$/;
const VALUE = /^[\x20-\x7e]{1,4096}$/;
const VALUE_MEANING = 'a text that a header can carry';
const readValue = textLike(VALUE, VALUE_MEANING);
const MOST = 32;

/** Names in lower case. The values may be secrets. */
export function headers(field: Field): Readonly<Record<string, Secret>> | undefined {
  const members = field.membersOfAnyName();
  if (members === undefined) return undefined;
  if (members.size > MOST) return field.fail(`must have ${MOST} members at most`);
  const read: Record<string, Secret> = {};
  for (const [name, member] of members) {
    const problem = nameProblem(name);
    if (problem !== undefined) member.fail(problem);
    else {
      const value = readValue(member);
      if (value !== undefined) read[name.toLowerCase()] = new Secret(value);
    }
  }
  return read;
}

function nameProblem(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (!/^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/.test(lower)) return 'must be a valid header name';
  return RESERVED.test(lower) ? 'cannot be set: the gateway sets this header itself' : undefined;
}

/** Why a header cannot be configured; undefined if it can. */
export function headerProblem(name: string, value: unknown): string | undefined {
  return (
    nameProblem(name) ?? (typeof value === 'string' && !VALUE.test(value) ? `must be ${VALUE_MEANING}` : undefined)
  );
}
