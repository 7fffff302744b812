/**
 * Collects the schemas of an OpenAPI document. A schema with a name (`$id`) is written once, under
 * `#/components/schemas`, and referenced everywhere else.
 */
import type { TSchema } from 'typebox';

type Node = Record<string, unknown>;

/** Members whose values are data, not schemas. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required', 'type']);
/** Members whose keys are names and whose values are schemas. */
const NAMED = new Set(['properties', 'patternProperties', '$defs']);
/** The pattern of a record whose keys may be any text. */
const ANY_TEXT = '^.*$';

export class Components {
  readonly #named = new Map<string, { node: unknown; text: string }>();

  /** Converts a schema for use in an operation. @throws Error when another schema has its name */
  use(schema: TSchema): unknown {
    return this.#converted(schema);
  }

  /** The name of a schema. @throws Error as `use` does, and for a schema without one */
  nameOf(schema: TSchema): string {
    const { $id: name } = schema as { $id?: string };
    if (name === undefined) throw new Error('the schema has no $id');
    this.use(schema);
    return name;
  }

  get schemas(): Record<string, unknown> {
    const sorted = [...this.#named].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(sorted.map(([name, { node }]) => [name, node]));
  }

  #converted(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#converted(item));
    if (typeof value !== 'object' || value === null) return value;
    const { $id: name, ...members } = value as Node;
    if (typeof name === 'string' && Array.isArray(members['type']) && members['type'].includes('null')) {
      const others = members['type'].filter((type) => type !== 'null');
      const type = others.length === 1 ? others[0] : others;
      return { anyOf: [this.#converted({ ...members, type, $id: name }), { type: 'null' }] };
    }
    const node = simplified(this.#membersOf(members));
    if (typeof name !== 'string') return node;
    const text = canonical(node);
    const known = this.#named.get(name);
    if (known !== undefined && known.text !== text) throw new Error(`two schemas are called ${name}`);
    if (known === undefined) this.#named.set(name, { node, text });
    return { $ref: `#/components/schemas/${name}` };
  }

  #membersOf(members: Node): Node {
    const converted: Node = {};
    for (const [key, value] of Object.entries(members)) {
      if (DATA.has(key)) converted[key] = value;
      else if (NAMED.has(key)) {
        const entries = Object.entries(value as Node).map(([name, schema]) => [name, this.#converted(schema)]);
        converted[key] = Object.fromEntries(entries);
      } else converted[key] = this.#converted(value);
    }
    return converted;
  }
}

/** The same text for schemas that differ only in the order of their members. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

/** Simplifies for client generators: a union of strings becomes an enum, a record is described by its values. */
function simplified(node: Node): Node {
  const { anyOf, patternProperties, ...rest } = node;
  if (Array.isArray(anyOf)) {
    const words = anyOf.map((branch: Node) => ({ word: branch['const'], plain: Object.keys(branch).length === 2 }));
    if (words.every(({ word, plain }) => plain && typeof word === 'string')) {
      return { ...rest, type: 'string', enum: words.map(({ word }) => word) };
    }
    return node;
  }
  const patterns = Object.entries((patternProperties as Node | undefined) ?? {});
  if (patterns.length === 1 && patterns[0]![0] === ANY_TEXT && !('additionalProperties' in rest)) {
    return { ...rest, additionalProperties: patterns[0]![1] };
  }
  return node;
}
