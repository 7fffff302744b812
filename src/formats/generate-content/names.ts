/** Members of Google's JSON, which may be written in camelCase or in snake_case. */
import { invalidField } from '../../base/errors.ts';
import { type Fields, isFields } from '../conversation/fields.ts';

export function member(fields: Fields, name: string): unknown {
  return name in fields ? fields[name] : fields[snakeCase(name)];
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

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
