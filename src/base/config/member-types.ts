/**
 * Lists every member of the yaml file, for `docs/reference/configuration.md`. It runs the readers on a field that rejects every
 * value; their error messages name the accepted type.
 */
import type { ParsedNode } from 'yaml';
import { Field, type Reader, type Source } from './field.ts';

export interface MemberType {
  /** `providers[].models[].id`; `<name>` is chosen by the operator. */
  path: string;
  /** What the reader accepts, as its error message puts it. */
  type: string;
  required: boolean;
}

/** @param kind the kind of provider whose own members are listed below `providers[]` */
export function memberTypes(read: Reader<unknown>, kind: string): MemberType[] {
  const types = new Map<string, MemberType>();
  read(new RefusingField('', { kind, types, required: false }));
  types.delete('');
  return [...types.values()];
}

interface Listing {
  kind: string;
  types: Map<string, MemberType>;
  required: boolean;
}

/** Only the reader for arbitrary strings accepts it. */
const REFUSED = '\0';

class RefusingField extends Field {
  readonly #listing: Listing;

  constructor(path: string, listing: Listing) {
    const node = { get: (name: string) => (name === 'kind' ? listing.kind : undefined) };
    super({ name: '', problems: [] as unknown } as Source, node as unknown as ParsedNode, path);
    this.#listing = listing;
    if (!listing.types.has(path)) listing.types.set(path, { path, type: 'text', required: listing.required });
  }

  override fail(message: string): undefined {
    if (message.startsWith('must be ')) this.#is(message.slice('must be '.length));
  }

  override scalar() {
    return { value: REFUSED, expanded: false };
  }

  override items(): Field[] {
    const [item] = [this.#below('[]', false)];
    this.#is('list');
    return [item];
  }

  override get isList(): boolean {
    return false;
  }

  override membersOfAnyName(): Map<string, Field> {
    this.#is('mapping');
    return new Map([['name', this.#below('.<name>', false)]]);
  }

  override members(known: readonly string[], required: readonly string[] = []): Map<string, Field> {
    this.#is('mapping');
    return new Map(known.map((name) => [name, this.#below(`.${name}`, required.includes(name))]));
  }

  #below(step: string, required: boolean): Field {
    const path = this.path + step;
    return new RefusingField(path.startsWith('.') ? path.slice(1) : path, { ...this.#listing, required });
  }

  #is(type: string): void {
    const listed = this.#listing.types.get(this.path)!;
    if (listed.type === 'text') listed.type = type;
  }
}
