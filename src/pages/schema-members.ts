/** A JSON Schema as a list of its members, nested ones folded. */
import { type Markup, markup, prose } from './html.ts';

export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  required?: string[];
  items?: Schema;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  format?: string;
}

const COMPONENTS = '#/components/schemas/';
/** Deeper ones are left to the OpenAPI document. */
const MAX_DEPTH = 8;
const MOST_VALUES = 12;
const LONGEST_TYPE = 240;

/** In a few words: `string or null`, `array of object`, `"low" or "high"`. */
export function describeType(schema: Schema, depth = 0): string {
  const words = typeWords(schema, depth);
  return words.length > LONGEST_TYPE ? `${words.slice(0, LONGEST_TYPE)}...` : words;
}

function typeWords(schema: Schema, depth: number): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return oneOfWords(schema.enum.map((value) => JSON.stringify(value)));
  const branches = branchesOf(schema);
  if (branches.length > 0) {
    const words = [...new Set(branches.map((branch) => (depth > 2 ? 'any' : typeWords(branch, depth + 1))))];
    return schema.allOf === undefined ? oneOfWords(words) : words.join(' and ');
  }
  if (schema.items !== undefined) return `array of ${depth > 2 ? 'any' : typeWords(schema.items, depth + 1)}`;
  const type = Array.isArray(schema.type) ? schema.type.join(' or ') : schema.type;
  return `${type ?? (schema.properties ? 'object' : 'any')}${boundsOf(schema)}`;
}

function oneOfWords(words: readonly string[]): string {
  const more = words.length - MOST_VALUES;
  return words.slice(0, MOST_VALUES).join(' or ') + (more > 0 ? ` or ${more} more` : '');
}

function boundsOf({ minimum, maximum, maxLength, format }: Schema): string {
  const bounds = [
    format,
    minimum !== undefined && `>= ${minimum}`,
    maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER && `<= ${maximum}`,
    maxLength !== undefined && `at most ${maxLength} characters`,
  ].filter(Boolean);
  return bounds.length === 0 ? '' : ` (${bounds.join(', ')})`;
}

function branchesOf({ anyOf, oneOf, allOf }: Schema): Schema[] {
  return anyOf ?? oneOf ?? allOf ?? [];
}

/** Undefined when there is nothing below the type itself. */
export function schemaMembers(schema: Schema, depth = 0): Markup | undefined {
  if (depth > MAX_DEPTH) return undefined;
  if (schema.$ref !== undefined) return reference(schema.$ref);
  if (schema.items !== undefined) return schemaMembers(schema.items, depth);
  const branches = branchesOf(schema)
    .map((branch) => ({ words: describeType(branch), inner: schemaMembers(branch, depth + 1) }))
    .filter(({ inner }) => inner !== undefined);
  if (branches.length === 1) return branches[0]!.inner;
  if (branches.length > 1) {
    return markup`<ul class="members">${branches.map(({ words, inner }) => markup`<li><details><summary>${words}</summary>${inner}</details></li>`)}</ul>`;
  }
  const members = Object.entries(schema.properties ?? {}).map(([name, member]) =>
    memberRow(name, member, schema.required?.includes(name) === true, depth),
  );
  const [other] = Object.values(schema.patternProperties ?? {});
  const additional = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : other;
  if (additional !== undefined) members.push(memberRow('<name>', additional, false, depth));
  return members.length === 0 ? undefined : markup`<ul class="members">${members}</ul>`;
}

function memberRow(name: string, member: Schema, required: boolean, depth: number): Markup {
  const standard = member.default === undefined ? '' : `, default ${JSON.stringify(member.default)}`;
  const note = `${describeType(member)}${standard}${required ? ', required' : ''}`;
  const head = markup`<code>${name}</code> <span class="soft">${note}</span>${member.description === undefined ? undefined : markup` ${prose(member.description)}`}`;
  const inner = schemaMembers(member, depth + 1);
  return inner === undefined
    ? markup`<li>${head}</li>`
    : markup`<li><details><summary>${head}</summary>${inner}</details></li>`;
}

function reference(target: string): Markup | undefined {
  if (!target.startsWith(COMPONENTS)) return undefined;
  const name = nameOf(target);
  return markup`<p>See <a href="#schema-${name.replace(/[^\w.-]/g, '-')}">${name}</a>.</p>`;
}

function nameOf(target: string): string {
  return target.split('/').at(-1)!;
}
