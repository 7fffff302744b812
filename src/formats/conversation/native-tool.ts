/**
 * Server tools that an upstream has itself. A provider's definition lists them as rows (`ProviderKind.nativeTools`). A
 * request's tool states its settings (`FunctionTool.native`). `formats/adapters/native-tools.ts` matches the two.
 */
import type { FormatId } from './conversation.ts';
import { type Fields, fieldsOf } from './fields.ts';

/** A server tool, without the gateway's prefix. */
type NativeToolName = 'web_search' | 'web_fetch';

/** A tool that an upstream has. */
export interface NativeTool {
  readonly tool: NativeToolName;
  /** The format in which it is requested. */
  readonly format: FormatId;
  /** Upstream models that have it. Absent: all. */
  readonly models?: RegExp;
  /** Upstream models that have it next to functions. Absent: all. */
  readonly besideFunctions?: RegExp;
  /** The upstream's words without settings: a tool, or request members where no tool asks for it. */
  readonly request: { readonly tool: Fields } | { readonly members: Fields };
  /** Where settings go in it, by their names in the gateway's `parameters`: `filters.allowed_domains`. */
  readonly settings: Readonly<Record<string, string>>;
  /** Settings that are further tools of the upstream, with their words. */
  readonly further?: Readonly<Record<string, Fields>>;
  /** The tool choice that forces a call. Absent: a call cannot be forced. */
  readonly choice?: Fields;
}

/** A request's requirements for an upstream's own tool. */
export interface NativeWish {
  readonly tool: NativeToolName;
  /** Checked. */
  readonly settings: Fields;
  /** Those of the settings that may not be ignored: limits and restrictions. */
  readonly strict: readonly string[];
  /** Set if only the provider may run the tool: the setting that requires it, and why. */
  readonly required?: { readonly path: string; readonly why: string };
}

/** The row that fulfills a wish at an upstream model; undefined if the upstream cannot fulfill all of it. */
export function nativeToolFor(
  { tool, settings, strict }: NativeWish,
  rows: readonly NativeTool[],
  about: { model: string; format: FormatId; besideFunctions: boolean; forced: boolean },
): NativeTool | undefined {
  return rows.find((row) => {
    if (row.tool !== tool || row.format !== about.format || row.models?.test(about.model) === false) return false;
    if (about.besideFunctions && row.besideFunctions?.test(about.model) === false) return false;
    if (about.forced && row.choice === undefined) return false;
    return strict.every((name) => isAbsent(settings[name]) || name in row.settings || name in (row.further ?? {}));
  });
}

/** What the row sends for a wish. */
export function nativeRequest({ request, settings: paths, further = {} }: NativeTool, { settings }: NativeWish) {
  const main = structuredClone('tool' in request ? request.tool : request.members);
  for (const [name, path] of Object.entries(paths)) if (!isAbsent(settings[name])) put(main, path, settings[name]);
  const more = Object.entries(further).flatMap(([name, words]) =>
    isAbsent(settings[name]) ? [] : [{ ...words, ...fieldsOf(settings[name]) }],
  );
  return 'tool' in request ? { tools: [main, ...more], members: {} } : { tools: more, members: main };
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

function put(target: Fields, path: string, value: unknown): void {
  const names = path.split('.');
  const last = names.pop()!;
  let holder = target;
  for (const name of names) {
    const inner = { ...fieldsOf(holder[name]) };
    holder[name] = inner;
    holder = inner;
  }
  holder[last] = value;
}
