/**
 * Converts calls that have their own item type in this format (`local_shell_call`, `tool_search_call`) to function
 * arguments and back.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { type Fields, fieldsOf, listOf } from '../conversation/fields.ts';

/** The `action` of a `local_shell_call`. Some models write the command as one string, which then runs in a shell. */
export function shellAction(written: string): Fields {
  const { command, env, ...others } = readObject(written);
  const words = typeof command === 'string' ? ['bash', '-lc', command] : listOf(command).map(String);
  return { ...others, type: 'exec', command: words, env: fieldsOf(env) };
}

export function shellArguments(action: Fields): string {
  const { type: _, env, ...others } = action;
  const set = Object.keys(fieldsOf(env)).length > 0 ? { env } : {};
  const given = Object.entries(others).filter(([, value]) => value !== null && value !== undefined);
  return stringifyJson({ ...Object.fromEntries(given), ...set });
}

/** Arguments as an object; empty if they are not one. */
export function readObject(written: string): Fields {
  try {
    return fieldsOf(parseJson(written));
  } catch {
    return {};
  }
}
