/**
 * A secret string: no log line, error or dump shows it, whatever prints the object that holds it. Code that needs the
 * text calls `reveal()`.
 */
import { inspect } from 'node:util';

const MASK = '[secret]';

export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}
