/**
 * The release rule. `SecretTexts` holds the secrets of one sandbox. `Release` is the view of one host: a placeholder becomes
 * its value only if the secret is bound to exactly this host; otherwise the request is refused. Values in what comes back
 * become placeholders again, whatever host it comes from.
 */
import { Refusal } from '../refusal.ts';
import { type BoundSecret, PLACEHOLDER_START } from '../secret.ts';
import { PatternSet } from './pattern-set.ts';
import { Replacer, replaceAll } from './replacer.ts';
import { type Syntax, scrubbedForms, writtenIn } from './value-forms.ts';

/** The forms of one value, made on first use. */
class Written {
  readonly #value: string;
  readonly #forms = new Map<Syntax, Buffer>();

  constructor(value: string) {
    this.#value = value;
  }

  as(syntax: Syntax): Buffer {
    let form = this.#forms.get(syntax);
    if (form === undefined) {
      form = Buffer.from(writtenIn(syntax, this.#value));
      this.#forms.set(syntax, form);
    }
    return form;
  }
}

export class SecretTexts {
  readonly secrets: readonly BoundSecret[];
  readonly placeholders: PatternSet;
  /** Every form of every value. */
  readonly values: PatternSet;
  /** For each pattern of `values`: the placeholder, and the same cut or filled to the length of the pattern. */
  readonly #scrubbed: readonly { placeholder: Buffer; sameLength: Buffer }[];
  readonly #written: readonly Written[];

  constructor(secrets: readonly BoundSecret[]) {
    this.secrets = secrets;
    this.placeholders = new PatternSet(secrets.map(({ placeholder }) => Buffer.from(placeholder)));
    const forms = new Map<string, string>();
    for (const { value, placeholder } of secrets) {
      for (const form of scrubbedForms(value)) if (!forms.has(form)) forms.set(form, placeholder);
    }
    const patterns = [...forms.keys()].map((form) => Buffer.from(form));
    this.values = new PatternSet(patterns);
    this.#scrubbed = [...forms.values()].map((placeholder, index) => ({
      placeholder: Buffer.from(placeholder),
      sameLength: Buffer.alloc(patterns[index]!.length, '*').fill(
        placeholder,
        0,
        Math.min(placeholder.length, patterns[index]!.length),
      ),
    }));
    this.#written = secrets.map(({ value }) => new Written(value));
  }

  isBound(host: string): boolean {
    return this.secrets.some(({ hosts }) => hosts.includes(host));
  }

  written(secret: number, syntax: Syntax): Buffer {
    return this.#written[secret]!.as(syntax);
  }

  /** Scrubs a stream. @param keepsLength for bodies whose format counts bytes */
  scrubber(keepsLength = false): Replacer {
    return new Replacer(this.values, (index) => this.#scrubbed[index]![keepsLength ? 'sameLength' : 'placeholder']);
  }

  /** Scrubs byte text, such as the value of a header. */
  scrub(text: string): string {
    const bytes = Buffer.from(text, 'latin1');
    if (this.values.find(bytes, 0, true).kind === 'none') return text;
    return replaceAll(bytes, this.values, (index) => this.#scrubbed[index]!.placeholder).toString('latin1');
  }

  /** Whether any of these headers contains a value. */
  shows(pairs: readonly (readonly [name: string, value: string, ...unknown[]])[]): boolean {
    let all = '';
    for (const [name, value] of pairs) all += `${name}\0${value}\0`;
    return this.values.find(Buffer.from(all, 'latin1'), 0, true).kind === 'match';
  }

  /** Whether byte text contains a placeholder. */
  mentions(text: string): boolean {
    if (!text.includes(PLACEHOLDER_START)) return false;
    return this.placeholders.find(Buffer.from(text, 'latin1'), 0, true).kind === 'match';
  }
}

const BASIC = /^(basic +)([a-z0-9+/_-]+=*) *$/i;
const SMALL_B = 'b'.charCodeAt(0);
const LARGE_B = 'B'.charCodeAt(0);

/** Whether it may be Basic credentials. */
function isBasic(value: string): boolean {
  const first = value.charCodeAt(0);
  return first === SMALL_B || first === LARGE_B;
}

/** Control characters that end a header or are refused in one. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const UNSENDABLE = /[\x00-\x08\x0a-\x1f\x7f]/;

export class Release {
  readonly host: string;
  readonly isVerified: boolean;
  readonly texts: SecretTexts;
  readonly #bound: readonly boolean[];

  /** @param isVerified false: there is no TLS, so nothing is released */
  constructor(texts: SecretTexts, host: string, isVerified: boolean) {
    this.host = host;
    this.isVerified = isVerified;
    this.texts = texts;
    this.#bound = texts.secrets.map(({ hosts }) => isVerified && hosts.includes(host));
  }

  /** The value of a header, in byte text. @throws Refusal */
  header(value: string): string {
    const basic = isBasic(value) ? BASIC.exec(value) : null;
    if (basic !== null) {
      const credentials = Buffer.from(basic[2]!, 'base64');
      const replaced = replaceAll(credentials, this.texts.placeholders, (index) => this.#value(index, 'raw'));
      return replaced.equals(credentials) ? value : basic[1]! + replaced.toString('base64');
    }
    return this.#text(value, (index) => {
      const written = this.#value(index, 'raw');
      if (!UNSENDABLE.test(written.toString('latin1'))) return written;
      const { name } = this.texts.secrets[index]!;
      const problem = 'contains a line break or another control character, so it cannot be sent in a header';
      throw new Refusal('secret_unsendable', `The secret ${name} ${problem}.`, name);
    });
  }

  /** A path with its query. @throws Refusal */
  path(path: string): string {
    return this.#text(path, (index) => this.#value(index, 'form'));
  }

  /** Text in which a placeholder has no meaning, such as the name of a header. @throws Refusal */
  forbid(text: string): void {
    this.#text(text, (index) => {
      this.#value(index, 'raw');
      const { name } = this.texts.secrets[index]!;
      throw new Refusal('secret_unsendable', `The secret ${name} cannot be sent in the name of a header.`, name);
    });
  }

  /**
   * A body. Its pieces throw a Refusal where the placeholder of another host's secret is.
   * @param syntax null: the body is not text, so placeholders of this host's secrets stay as they are
   */
  body(syntax: Syntax | null): Replacer {
    return new Replacer(this.texts.placeholders, (index) => {
      const value = this.#value(index, syntax ?? 'raw');
      return syntax === null ? this.texts.placeholders.patterns[index]! : value;
    });
  }

  #text(text: string, replace: (index: number) => Buffer): string {
    if (!this.texts.mentions(text)) return text;
    return replaceAll(Buffer.from(text, 'latin1'), this.texts.placeholders, replace).toString('latin1');
  }

  #value(index: number, syntax: Syntax): Buffer {
    if (this.#bound[index]) return this.texts.written(index, syntax);
    const { name } = this.texts.secrets[index]!;
    const where = this.texts.secrets[index]!.hosts.includes(this.host) ? `${this.host} without TLS` : this.host;
    throw new Refusal('secret_elsewhere', `The secret ${name} is not released to ${where}.`, name);
  }
}
