/** Paths of a chat request in the words of the `generateContent` request that it was made from. */
import { GatewayError } from '../../base/errors.ts';
import { settingOf } from './generation.ts';

const ROOTS: Readonly<Record<string, string>> = { messages: 'contents', tool_choice: 'toolConfig' };

/** Runs checks of the chat request. Their errors name the client's own fields. */
export function inOwnWords<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    const { path } = error instanceof GatewayError ? error.details : {};
    const own = path === undefined ? undefined : ownPath(path);
    if (!(error instanceof GatewayError) || path === undefined || own === undefined) throw error;
    throw new GatewayError(error.type, error.message.replace(path, own), { ...error.details, path: own });
  }
}

/** The messages and members of a setting have no counterpart of their own. */
function ownPath(path: string): string | undefined {
  const [root = ''] = path.split(/[.[]/, 1);
  const setting = settingOf(root);
  if (setting === undefined) return Object.hasOwn(ROOTS, root) ? ROOTS[root] : undefined;
  const isList = path.startsWith(`${root}[`);
  return isList ? setting + path.slice(root.length) : setting;
}
