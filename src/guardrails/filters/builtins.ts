/**
 * The built-in filters by slug. Each searches the skeleton of a text (`reading.ts`). `samples/` measures their
 * accuracy; docs/guides/guardrails.md reports it.
 */
import { postalAddresses } from './addresses.ts';
import { addressesInLines, cardNumbers, internetAddresses, phones, socialSecurityNumbers } from './numbers.ts';
import type { Offsets } from './offsets.ts';
import { personNames } from './person-names.ts';
import { promptInjections } from './prompt-injection.ts';
import type { Span } from './reading.ts';
import { emails, secrets, secretsInLines } from './secrets.ts';

export interface Builtin {
  /** Replacement that `redact` writes. */
  label: string;
  /** @param offsets those of the text, if already known */
  find(text: string, offsets?: Offsets): Span[];
  /**
   * For a text joined from several lines: finds at least a part of every match that `find` finds in a single line, and
   * possibly more. Absent if `find` does so itself.
   */
  findInLines?(text: string, offsets: Offsets): Span[];
}

export type BuiltinSlug =
  | 'email'
  | 'phone'
  | 'ssn'
  | 'credit-card'
  | 'ip-address'
  | 'secrets'
  | 'person-name'
  | 'address'
  | 'regex-prompt-injection';

export const BUILTINS: Readonly<Record<BuiltinSlug, Builtin>> = {
  email: { label: '[EMAIL]', find: emails },
  phone: { label: '[PHONE]', find: phones },
  ssn: { label: '[SSN]', find: socialSecurityNumbers },
  'credit-card': { label: '[CREDIT_CARD]', find: cardNumbers },
  'ip-address': { label: '[IP_ADDRESS]', find: internetAddresses, findInLines: addressesInLines },
  secrets: { label: '[SECRET]', find: secrets, findInLines: secretsInLines },
  'person-name': { label: '[PERSON_NAME]', find: personNames },
  address: { label: '[ADDRESS]', find: postalAddresses },
  'regex-prompt-injection': { label: '[PROMPT_INJECTION]', find: promptInjections },
};
