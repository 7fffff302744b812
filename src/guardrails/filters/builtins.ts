/**
 * The filters that come with the gateway, by their slug (wire/guardrails.md). Each finds what a text says in its skeleton
 * (`reading.ts`). How well they do is measured on the samples of `samples/` and told in docs/guides/guardrails.md.
 */
import { addressesInLines, cardNumbers, internetAddresses, phones, socialSecurityNumbers } from './numbers.ts';
import type { Places } from './places.ts';
import { promptInjections } from './prompt-injection.ts';
import type { Span } from './reading.ts';
import { emails, secrets, secretsInLines } from './secrets.ts';

export interface Builtin {
  /** What `redact` writes. */
  label: string;
  /** @param places those of the text, where they are known already */
  find(text: string, places?: Places): Span[];
  /**
   * For texts that are the lines of one: of each match that is found in one of them by itself this finds a part, or more than
   * that. Where it is not told, `find` does.
   */
  findInLines?(text: string, places: Places): Span[];
}

export type BuiltinSlug =
  | 'email'
  | 'phone'
  | 'ssn'
  | 'credit-card'
  | 'ip-address'
  | 'secrets'
  | 'regex-prompt-injection';

export const BUILTINS: Readonly<Record<BuiltinSlug, Builtin>> = {
  email: { label: '[EMAIL]', find: emails },
  phone: { label: '[PHONE]', find: phones },
  ssn: { label: '[SSN]', find: socialSecurityNumbers },
  'credit-card': { label: '[CREDIT_CARD]', find: cardNumbers },
  'ip-address': { label: '[IP_ADDRESS]', find: internetAddresses, findInLines: addressesInLines },
  secrets: { label: '[SECRET]', find: secrets, findInLines: secretsInLines },
  'regex-prompt-injection': { label: '[PROMPT_INJECTION]', find: promptInjections },
};

/** Known on the wire, and refused: what they mean cannot be told from patterns. */
export const NEEDS_LANGUAGE_MODEL: ReadonlySet<string> = new Set(['person-name', 'address']);
