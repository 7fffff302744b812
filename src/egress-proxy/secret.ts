/** Secrets of a sandbox, their placeholders and the hosts that they are bound to. */
import { randomBytes } from 'node:crypto';

/** One secret that a sandbox may use. */
export interface BoundSecret {
  /** As in the vault; shown in refusals and in the audit log. */
  name: string;
  value: string;
  /** Exact host names in canonical form: A-labels, lower case, no trailing dot. */
  hosts: readonly string[];
  /** What the sandbox sees instead of the value (`createPlaceholder`). */
  placeholder: string;
}

/**
 * Letters and digits only, so that no encoding of URLs, JSON or forms changes a placeholder. All have the same length, so
 * none is part of another.
 */
const PLACEHOLDER = /^ghsecret[0-9a-f]{40}$/;
export const PLACEHOLDER_START = 'ghsecret';

/** A new random placeholder: 160 bits. */
export function createPlaceholder(): string {
  return `${PLACEHOLDER_START}${randomBytes(20).toString('hex')}`;
}

/** @throws Error without any value, if the secrets cannot be used together */
export function checkSecrets(secrets: readonly BoundSecret[]): void {
  const placeholders = new Set<string>();
  for (const { name, value, placeholder } of secrets) {
    if (!PLACEHOLDER.test(placeholder)) throw new Error(`the placeholder of the secret ${name} is malformed`);
    if (placeholders.has(placeholder)) throw new Error(`the placeholder of the secret ${name} is used twice`);
    if (value === '') throw new Error(`the secret ${name} is empty`);
    placeholders.add(placeholder);
  }
}
