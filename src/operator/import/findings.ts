/** What an import could not take over, or only differently: each with its path in the imported file, and its line. */
import type { Document, LineCounter } from 'yaml';
import { isNode } from 'yaml';

export type Path = readonly (string | number)[];

export interface Finding {
  /** Such as `model_list[0].litellm_params.tpm`. */
  path: string;
  /** In the imported file; absent if it has none. */
  line?: number;
  /** Never contains a value of the file: it may be a secret. */
  message: string;
}

export class Findings {
  /** What has no counterpart. */
  readonly missing: Finding[] = [];
  /** What was taken over and works differently. */
  readonly different: Finding[] = [];
  /** Literal secrets. */
  readonly secrets: Finding[] = [];
  readonly #document: Document | undefined;
  readonly #lines: LineCounter | undefined;

  constructor(document?: Document, lines?: LineCounter) {
    this.#document = document;
    this.#lines = lines;
  }

  lacks(path: Path, message: string): void {
    this.missing.push(this.#at(path, message));
  }

  differs(path: Path, message: string): void {
    this.different.push(this.#at(path, message));
  }

  holdsSecret(path: Path): void {
    this.secrets.push(this.#at(path, 'is a literal secret'));
  }

  /** In the order of the file's lines. */
  sorted(): this {
    for (const list of [this.missing, this.different]) {
      list.sort((a, b) => (a.line ?? Number.POSITIVE_INFINITY) - (b.line ?? Number.POSITIVE_INFINITY));
    }
    return this;
  }

  #at(path: Path, message: string): Finding {
    const node = path.length === 0 ? undefined : this.#document?.getIn(path, true);
    const start = isNode(node) ? node.range?.[0] : undefined;
    const line = start === undefined ? undefined : this.#lines?.linePos(start).line;
    return { path: written(path), ...(line !== undefined && { line }), message };
  }
}

function written(path: Path): string {
  return path
    .map((step, at) => (typeof step === 'number' ? `[${step}]` : at === 0 ? printable(step) : `.${printable(step)}`))
    .join('');
}

/** Names of the imported file are printed; control characters could manipulate the terminal. */
export function printable(name: string): string {
  const shown = name.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\ufffd');
  return shown.length > 100 ? `${shown.slice(0, 100)}…` : shown;
}

export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
