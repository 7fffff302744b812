/**
 * A field of the yaml file: its node, path and position. Readers take a field and return its value, or record a problem and
 * return undefined, so that one pass finds every mistake. A member without a value (`api_key:` alone) counts as absent.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, type LineCounter, type ParsedNode } from 'yaml';
import { nearest } from '../nearest.ts';
import type { Problem } from './problems.ts';

/** The file that is being read. */
export interface Source {
  /** As the operator named it. */
  name: string;
  document: Document.Parsed;
  lines: LineCounter;
  env: Readonly<Record<string, string | undefined>>;
  problems: Problem[];
}

export type Reader<T> = (field: Field) => T | undefined;

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

export class Field {
  readonly source: Source;
  readonly node: ParsedNode;
  readonly path: string;

  constructor(source: Source, node: ParsedNode, path: string) {
    this.source = source;
    const target = isAlias(node) ? node.resolve(source.document) : node;
    this.node = (target ?? node) as ParsedNode;
    this.path = path;
  }

  /** Records a problem here; returns undefined so that a reader can end with it. */
  fail(message: string, at: ParsedNode = this.node): undefined {
    const { line, col } = this.source.lines.linePos(at.range[0]);
    this.source.problems.push({ source: this.source.name, line, column: col, path: this.path, message });
  }

  /** The scalar's value with `${NAME}` expanded; `expanded`: there was a variable, so digits may be a number. */
  scalar(): { value: unknown; expanded: boolean } | undefined {
    if (!isScalar(this.node)) return { value: undefined, expanded: false };
    const value: unknown = this.node.value;
    if (typeof value !== 'string' || !value.includes('${')) return { value, expanded: false };
    const text = this.#expand(value);
    return text === undefined ? undefined : { value: text, expanded: true };
  }

  #expand(text: string): string | undefined {
    let failed = false;
    const expanded = text.replace(/\$\$\{|\$\{([^}]*)(\}?)/g, (match, name: string | undefined, close: string) => {
      if (match === '$${') return '${';
      if (name === undefined || close === '' || !VARIABLE.test(name)) {
        this.fail(`has a $\{...} without the name of an environment variable in it ($$\{ stands for a plain $\{)`);
        failed = true;
        return '';
      }
      const value = this.source.env[name];
      if (value === undefined || value === '') {
        this.fail(`needs the environment variable ${name}, which is not set`);
        failed = true;
        return '';
      }
      return value;
    });
    return failed ? undefined : expanded;
  }

  /** The items of a list; records a problem and returns undefined if it is not a list. */
  items(): Field[] | undefined {
    if (!isSeq(this.node)) return this.fail('must be a list');
    return this.node.items.map((item, index) => new Field(this.source, item as ParsedNode, `${this.path}[${index}]`));
  }

  get isList(): boolean {
    return isSeq(this.node);
  }

  /** The members of a mapping whose names the operator chooses, without those that have no value. */
  membersOfAnyName(): Map<string, Field> | undefined {
    return this.members(
      isMap(this.node) ? this.node.items.map(({ key }) => (isScalar(key) ? String(key.value) : '')) : [],
    );
  }

  /** The members of a mapping, without those that have no value. Unknown ones are problems, with a suggestion. */
  members(
    known: readonly string[],
    required: readonly string[] = [],
    movedTo: (name: string) => string | undefined = () => undefined,
  ): Map<string, Field> | undefined {
    if (!isMap(this.node)) return this.fail('must be a mapping');
    const members = new Map<string, Field>();
    for (const { key, value } of this.node.items) {
      const name = isScalar(key) ? String(key.value) : '';
      const path = this.path === '' ? name : `${this.path}.${name}`;
      if (!known.includes(name)) {
        const suggested = nearest(name, known);
        // A misplaced credential looks different: it contains digits or dashes.
        const shown = /^[A-Za-z_]{1,32}$/.test(name) ? name : 'of this name';
        const moved = suggested === undefined ? movedTo(name) : undefined;
        const others = moved === undefined ? `the members here are ${known.join(', ')}` : `set ${moved} instead`;
        const hint = suggested === undefined ? others : `did you mean ${suggested}?`;
        this.fail(`has no member ${shown}; ${hint}`, key as ParsedNode);
      } else if (value !== null && !(isScalar(value) && value.value === null)) {
        members.set(name, new Field(this.source, value as ParsedNode, path));
      }
    }
    for (const name of required) if (!members.has(name)) this.fail(`needs the member ${name}`);
    return members;
  }
}
