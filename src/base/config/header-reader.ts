/** Additional headers for a provider's calls, such as an organization, a project or a billing tag. */
import { Secret } from '../secret.ts';
import type { Field } from './field.ts';
import { textLike } from './readers.ts';

/** Headers of the call itself or of its credential, which `api_key` sets. */
const RESERVED =
  /^(accept-encoding|api-key|authorization|connection|content-.*|cookie|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|x-api-key|x-goog-api-key)$/;
const VALUE = textLike(/^[\x20-\x7e]{1,4096}$/, 'a text that a header can carry');
const MOST = 32;

/** Names in lower case. The values may be secrets. */
export function headers(field: Field): Readonly<Record<string, Secret>> | undefined {
  const members = field.membersOfAnyName();
  if (members === undefined) return undefined;
  if (members.size > MOST) return field.fail(`must have ${MOST} members at most`);
  const read: Record<string, Secret> = {};
  for (const [name, member] of members) {
    const lower = name.toLowerCase();
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/.test(lower)) member.fail('must be a valid header name');
    else if (RESERVED.test(lower)) member.fail('cannot be set: the gateway sets this header itself');
    else {
      const value = VALUE(member);
      if (value !== undefined) read[lower] = new Secret(value);
    }
  }
  return read;
}
