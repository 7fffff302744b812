/** Values of an imported file as texts of the yaml: references to the environment, literal texts, and secrets. */
import type { Findings, Path } from './findings.ts';

const REFERENCE = /^os\.environ\/(.*)$/s;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Members = { [name: string]: Json };

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A variable as the yaml inserts it. */
export function reference(variable: string): string {
  return `\${${variable}}`;
}

/** A text in which the yaml inserts nothing. */
export function literal(text: string): string {
  return text.replace(/\$(?=\{)/g, '$$$$');
}

/** Secrets that the imported file holds literally, by the variables that stand for them in the yaml. */
export class Secrets {
  readonly byVariable = new Map<string, string>();
  readonly #findings: Findings;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** `${NAME}`; the same secret has one name. */
  moved(value: string, name: string, path: Path): string {
    this.#findings.holdsSecret(path);
    let variable = name;
    for (let number = 2; this.byVariable.has(variable) && this.byVariable.get(variable) !== value; number++) {
      variable = `${name}_${number}`;
    }
    this.byVariable.set(variable, value);
    return reference(variable);
  }
}

/** The variable that a value refers to; undefined for a literal value. A name that no shell can set stays as it is. */
export function variableOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? REFERENCE.exec(value)?.[1] : undefined;
}

export class Values {
  readonly #findings: Findings;
  readonly #secrets: Secrets;

  constructor(findings: Findings, secrets: Secrets) {
    this.#findings = findings;
    this.#secrets = secrets;
  }

  /** A text of the yaml for a value that is not a secret. Undefined if that is impossible; then it is a finding. */
  text(value: Json | undefined, path: Path): string | undefined {
    if (value === undefined || value === null || value === '') return undefined;
    const variable = variableOf(value);
    if (variable !== undefined) return this.#reference(variable, path);
    if (typeof value === 'object') return this.#wrong(path, 'is not a text');
    return literal(String(value));
  }

  /** The same for the address of a service, which carries neither a credential nor a query in the yaml. */
  address(value: Json | undefined, path: Path): string | undefined {
    const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
    if (url === undefined || (url.username === '' && url.password === '' && url.search === '' && url.hash === '')) {
      return this.text(value, path);
    }
    if (url.username !== '' || url.password !== '') {
      this.#findings.lacks(path, 'has a user and a password, which the gateway cannot send; they are left out');
    }
    if (url.search !== '' || url.hash !== '')
      this.#findings.lacks(path, 'has a query or a fragment, which is left out');
    Object.assign(url, { username: '', password: '', search: '', hash: '' });
    return literal(url.href.replace(/\/+$/, ''));
  }

  /** The same for a secret. @param name the variable for a literal one */
  secret(value: Json | undefined, name: string, path: Path): string | undefined {
    if (value === undefined || value === null || value === '') return undefined;
    const variable = variableOf(value);
    if (variable !== undefined) return this.#reference(variable, path);
    if (isMembers(value)) return this.#secrets.moved(JSON.stringify(value), name, path);
    if (typeof value !== 'string') return this.#wrong(path, 'is not a text');
    if (/[\r\n\0]/.test(value) && !value.trimStart().startsWith('{')) {
      return this.#wrong(path, 'has a line break; put it into an environment variable');
    }
    return this.#secrets.moved(value, name, path);
  }

  #reference(variable: string, path: Path): string | undefined {
    if (VARIABLE.test(variable)) return reference(variable);
    return this.#wrong(
      path,
      'names an environment variable with other characters than letters, digits and underscores',
    );
  }

  #wrong(path: Path, message: string): undefined {
    this.#findings.lacks(path, message);
  }
}

/** A decimal text without an exponent; undefined if the value is not a price. */
export function priceText(value: Json | undefined): string | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number) || number < 0) return undefined;
  return new Intl.NumberFormat('en-US', { useGrouping: false, maximumFractionDigits: 18 }).format(number);
}

/** A duration of the yaml for a number of seconds, or a text such as `30s`; undefined for any other value. */
export function durationText(value: Json | undefined): string | undefined {
  const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof seconds !== 'number' || !(seconds > 0) || seconds > 2_000_000) return undefined;
  return seconds >= 0.001 ? `${Math.round(seconds * 1000) / 1000}s` : undefined;
}
