/** Members of Google's JSON, which clients may write in camelCase or in snake_case. */
import { invalidField } from '../../base/errors.ts';
import { type Fields, isFields } from '../conversation/fields.ts';

/** The value of a member under either of its names; undefined if it is null. */
export function member(fields: Fields, name: string): unknown {
  return fields[name] ?? fields[snakeCase(name)] ?? undefined;
}

/** The name under which the object has the member; `name` if it has none. */
export function givenName(fields: Fields, name: string): string {
  const other = snakeCase(name);
  return other in fields && !(name in fields) ? other : name;
}

/** Empty if it is absent. An object counts as a list of one, as at Google. @throws GatewayError 400 for anything else */
export function listMember(fields: Fields, name: string, path: string): readonly unknown[] {
  const value = member(fields, name) ?? [];
  if (isFields(value)) return [value];
  if (!Array.isArray(value)) throw invalidField(path, 'must be a list');
  return value;
}

/** Empty if it is absent. @throws GatewayError 400 for anything but an object */
export function objectMember(fields: Fields, name: string, path: string): Fields {
  const value = member(fields, name) ?? {};
  if (!isFields(value)) throw invalidField(path, 'must be an object');
  return value;
}

/** Members not in `known`, whose names are in camelCase; undefined when there are none. */
export function otherMembers(fields: Fields, known: ReadonlySet<string>): Fields | undefined {
  const others = Object.entries(fields).filter(
    ([name, value]) => value !== null && value !== undefined && !known.has(name) && !isSpelled(name, known),
  );
  return others.length === 0 ? undefined : Object.fromEntries(others);
}

/** Whether it is a known name in snake_case; a mix of both spellings is not. */
function isSpelled(name: string, known: ReadonlySet<string>): boolean {
  const other = camelCase(name);
  return known.has(other) && snakeCase(other) === name;
}

/** A member under two names would mean one thing here and another at a provider. @throws GatewayError 400 */
export function refuseTwins(fields: Fields, at: string): void {
  for (const name of Object.keys(fields)) {
    const other = camelCase(name);
    if (other !== name && Object.hasOwn(fields, other)) throw invalidField(`${at}${name}`, `repeats ${at}${other}`);
  }
}

const snakeNames = new Map<string, string>();

function snakeCase(name: string): string {
  let snake = snakeNames.get(name);
  if (snake === undefined) {
    snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    snakeNames.set(name, snake);
  }
  return snake;
}

export function camelCase(name: string): string {
  return name.includes('_') ? name.replaceAll(/(?<!^)_([a-z])/g, (_, letter: string) => letter.toUpperCase()) : name;
}
