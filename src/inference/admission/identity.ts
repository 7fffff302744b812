/**
 * The end user as providers see it: a keyed hash. A provider can tell abusive users apart without learning who they
 * are, and guesses cannot be tested without the installation's secret.
 */
import { createHmac } from 'node:crypto';
import type { Caller } from '../../access/index.ts';

/** The most organization hashes kept in memory. */
const REMEMBERED = 1000;

export class Identities {
  readonly #secret: Buffer;
  readonly #accounts = new Map<string, string>();

  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  /** 64 hexadecimal digits of the user within the organization, or of the organization when no user is named. */
  hash(caller: Caller, user: string | undefined): string {
    if (user !== undefined) return this.#hmac(`${caller.organizationId}\n${user}`);
    const known = this.#accounts.get(caller.organizationId);
    if (known !== undefined) return known;
    const hash = this.#hmac(caller.organizationId);
    if (this.#accounts.size < REMEMBERED) this.#accounts.set(caller.organizationId, hash);
    return hash;
  }

  #hmac(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('hex');
  }
}
