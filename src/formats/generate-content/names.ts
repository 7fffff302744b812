/** Members of Google's JSON, which may be written in camelCase or in snake_case. */
import type { Fields } from '../conversation/fields.ts';

export function member(fields: Fields, name: string): unknown {
  return name in fields ? fields[name] : fields[snakeCase(name)];
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
