/**
 * Binds a form to the page that showed it: the checked request, signed together with a cookie of the browser that got
 * the page. A form of another site lacks the cookie, and an altered form does not match its signature.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Database } from '../storage/database.ts';
import type { ConsentQueryBody } from './schema.ts';
import { formSecret } from './store.ts';

/** Long enough to look up the management key. */
const LIFE_MS = 900_000;
const COOKIE = 'gatehouse_consent';
const NONCE = /^[A-Za-z0-9_-]{43}$/;

interface FormSeal {
  sealed: string;
  token: string;
  cookie: string;
}

export class FormSealer {
  readonly #database: () => Pick<Database, 'query'>;
  #secret: Promise<Buffer> | undefined;

  constructor(database: () => Pick<Database, 'query'>) {
    this.#database = database;
  }

  /** @param secure the page was served over TLS */
  async seal(request: ConsentQueryBody, now: number, secure: boolean, known?: string): Promise<FormSeal> {
    const nonce = known ?? randomBytes(32).toString('base64url');
    const sealed = JSON.stringify({ request, until: now + LIFE_MS });
    const cookie = `${COOKIE}=${nonce}; Path=/auth; HttpOnly; SameSite=Strict; Max-Age=${LIFE_MS / 1000}`;
    return { sealed, token: await this.#sign(nonce, sealed), cookie: secure ? `${cookie}; Secure` : cookie };
  }

  /** The request of a form; undefined if the form is not from one of our pages, or is too late. */
  async open(
    sealed: string,
    token: string,
    nonce: string | undefined,
    now: number,
  ): Promise<ConsentQueryBody | undefined> {
    if (nonce === undefined) return undefined;
    const [given, right] = [token, await this.#sign(nonce, sealed)].map((text) => Buffer.from(text, 'latin1'));
    if (given!.length !== right!.length || !timingSafeEqual(given!, right!)) return undefined;
    const { request, until } = JSON.parse(sealed) as { request: ConsentQueryBody; until: number };
    return now < until ? request : undefined;
  }

  async #sign(nonce: string, sealed: string): Promise<string> {
    this.#secret ??= formSecret(this.#database(), randomBytes(32));
    try {
      return createHmac('sha256', await this.#secret)
        .update(`${nonce}\n${sealed}`)
        .digest('base64url');
    } catch (error) {
      this.#secret = undefined;
      throw error;
    }
  }
}

export function nonceOf(cookies: string | undefined): string | undefined {
  for (const cookie of cookies?.split(';') ?? []) {
    const [name, value = ''] = cookie.trim().split('=', 2);
    if (name === COOKIE && NONCE.test(value)) return value;
  }
  return undefined;
}
