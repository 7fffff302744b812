/** Reads the settings of server tools and plugins in requests; errors name the path of the member. */
import { invalidField } from '../base/errors.ts';
import type { Fields } from '../formats/conversation/fields.ts';

const MAX_DOMAINS = 100;

/** Reads members that may be absent or null. */
export class Members {
  readonly #fields: Fields;
  readonly #path: string;

  constructor(fields: Fields, path: string) {
    this.#fields = fields;
    this.#path = path;
  }

  count(name: string, most: number, least = 1): number | undefined {
    const value = this.#fields[name] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
    throw invalidField(`${this.#path}.${name}`, `must be a whole number from ${least} to ${most}`);
  }

  text(name: string, most: number): string | undefined {
    const value = this.#fields[name] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value === 'string' && value !== '' && value.length <= most) return value;
    throw invalidField(`${this.#path}.${name}`, `must be a text of 1 to ${most} characters`);
  }

  flag(name: string): boolean | undefined {
    const value = this.#fields[name] ?? undefined;
    if (value === undefined || typeof value === 'boolean') return value;
    throw invalidField(`${this.#path}.${name}`, 'must be true or false');
  }

  number(name: string, least: number, most: number): number | undefined {
    const value = this.#fields[name] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value === 'number' && value >= least && value <= most) return value;
    throw invalidField(`${this.#path}.${name}`, `must be a number from ${least} to ${most}`);
  }

  word(name: string, words: readonly string[]): string | undefined {
    const value = this.#fields[name] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value === 'string' && words.includes(value)) return value;
    throw invalidField(`${this.#path}.${name}`, `must be one of ${words.join(', ')}`);
  }

  /** Host names, in lower case; undefined for none. */
  domains(name: string): readonly string[] | undefined {
    const value = this.#fields[name] ?? undefined;
    if (value === undefined) return undefined;
    const path = `${this.#path}.${name}`;
    if (!Array.isArray(value) || value.length > MAX_DOMAINS) {
      throw invalidField(path, `must be a list of at most ${MAX_DOMAINS} domains`);
    }
    const domains = value.map((domain, index) => domainOf(domain, `${path}[${index}]`));
    return domains.length === 0 ? undefined : domains;
  }
}

const DOMAIN = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9-]{1,63}$/;

function domainOf(value: unknown, path: string): string {
  const domain = typeof value === 'string' ? value.toLowerCase().replace(/^\*\./, '') : '';
  if (domain.length > 253 || !DOMAIN.test(domain)) throw invalidField(path, 'must be a domain such as example.com');
  return domain;
}
