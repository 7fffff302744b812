/** Applies Gemini's streamed arguments: values at JSON paths, strings in pieces. */
import { type Fields, isFields } from '../conversation/fields.ts';

const STEP = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/g;

const LONGEST_LIST = 10_000;
/** Limits nesting, because a reader of deeper arguments would overflow the stack. */
const DEEPEST_PATH = 100;

/**
 * Writes the piece `{ jsonPath, stringValue | numberValue | boolValue | nullValue }` into `root`. Strings are appended.
 */
export function setPath(root: Fields, piece: Fields): void {
  const path = typeof piece['jsonPath'] === 'string' ? piece['jsonPath'] : '';
  const keys = [...path.matchAll(STEP)].map(([, name, index, single, double]) =>
    index === undefined ? (name ?? single ?? double ?? '') : Number(index),
  );
  const last = keys.pop();
  // A huge index would create a huge sparse list.
  if (last === undefined || keys.length > DEEPEST_PATH) return;
  if ([...keys, last].some((key) => typeof key === 'number' && key > LONGEST_LIST)) return;
  let parent: unknown = root;
  keys.forEach((key, depth) => {
    const empty = typeof (keys[depth + 1] ?? last) === 'number' ? [] : {};
    parent = child(parent, key) ?? put(parent, key, empty);
  });
  const value = pieceValue(piece);
  const before = child(parent, last);
  put(parent, last, typeof before === 'string' && typeof value === 'string' ? before + value : value);
}

function pieceValue(piece: Fields): unknown {
  for (const name of ['stringValue', 'numberValue', 'boolValue']) if (name in piece) return piece[name];
  return null;
}

function child(parent: unknown, key: string | number): unknown {
  if (Array.isArray(parent)) return parent[key as number];
  return isFields(parent) && Object.hasOwn(parent, key) ? parent[key] : undefined;
}

/** Defines an own property, also for names such as `__proto__`. */
function put(parent: unknown, key: string | number, value: unknown): unknown {
  if (typeof parent !== 'object' || parent === null) return undefined;
  Object.defineProperty(parent, key, { value, writable: true, enumerable: true, configurable: true });
  return value;
}
