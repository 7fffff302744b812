/** The server tools that a request declares. */
import { type GatewayError, invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { toWireName } from '../../base/namespace.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../formats/conversation/fields.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import { serverToolName } from '../../formats/server-tools/index.ts';
import { settingsOf } from './declaration.ts';
import { FILE_SEARCH } from './file-search.ts';
import { MCP } from './mcp/index.ts';
import { toolOf } from './registry.ts';
import { CODE_TOOL, SHOWN_CODE } from './shell/index.ts';
import type { ServerTool } from './tool.ts';

interface Declared {
  tool: ServerTool;
  /** The name in the client's spelling. */
  shownName: string;
  settings: Fields;
  /** Of the settings: `tools[0].parameters`. */
  path: string;
}

/** In the order of the request; empty for most requests. */
export function declaredTools({ id }: Pick<ServedFormat, 'id'>, document: JsonDocument): readonly Declared[] {
  const { tools } = document.structure;
  if (!Array.isArray(tools) || !tools.some((tool) => serverToolName(tool, id) !== undefined)) {
    return NONE;
  }
  return listOf(document.member('tools')).flatMap((value, index) => {
    const declaration = fieldsOf(value);
    const tool = toolOf(serverToolName(declaration, id) ?? '');
    if (tool === undefined) return [];
    const type = textOf(declaration['type']);
    return [{ tool, shownName: shownName(tool, type, declaration), ...settingsOf(declaration, `tools[${index}]`) }];
  });
}

const NONE: readonly Declared[] = [];

/** Types of the responses format that answers keep. */
const KEPT_TYPES = [MCP, FILE_SEARCH];

/** Clients that write the alias prefix expect it in answers too. */
function shownName({ name }: ServerTool, type: string, { shown_as: vendors }: Fields): string {
  if (name === CODE_TOOL && SHOWN_CODE.some((each) => each === vendors)) return textOf(vendors);
  return toWireName(type) === name || KEPT_TYPES.includes(type) ? type : name;
}

/** @throws GatewayError 400 for settings that a declared tool does not accept */
export function checkServerTools(format: Pick<ServedFormat, 'id'>, document: JsonDocument): void {
  const names = new Set<string>();
  const counts = new Map<ServerTool, number>();
  for (const { tool, shownName, settings, path } of declaredTools(format, document)) {
    tool.check(settings, path, shownName, format.id);
    if (tool.nestsTools !== undefined) checkNestedTools(settings['tools'], `${path}.tools`, tool.nestsTools);
    if (tool.named === undefined) continue;
    const count = (counts.get(tool) ?? 0) + 1;
    counts.set(tool, count);
    if (count > MOST_NAMED) throw invalidField(path, `is one more ${tool.name} than the ${MOST_NAMED} of a request`);
    const name = `${tool.name} ${textOf(settings[tool.named])}`;
    if (names.has(name)) {
      throw invalidField(`${path}.${tool.named}`, `must differ from that of every other ${tool.name}`);
    }
    names.add(name);
  }
}

/** The most tools of one kind, such as MCP servers, each of which may hold connections. */
const MOST_NAMED = 16;
/** The most tools of a tool. */
const MOST_NESTED = 16;

/** Tools of requests that a tool makes, which are chat requests. @param without wire names that are not allowed */
function checkNestedTools(tools: unknown, path: string, without: readonly string[]): void {
  if (tools === undefined || tools === null) return;
  if (!Array.isArray(tools) || tools.length > MOST_NESTED) {
    throw invalidField(path, `must be a list of at most ${MOST_NESTED} server tools`);
  }
  tools.forEach((value, index) => {
    const declaration = fieldsOf(value);
    const name = serverToolName(declaration, 'chat');
    const tool = toolOf(name ?? '');
    if (tool === undefined || without.includes(name!)) throw notNested(declaration, `${path}[${index}].type`);
    const { settings, path: inner } = settingsOf(declaration, `${path}[${index}]`);
    tool.check(settings, inner, tool.name, 'chat');
    if (tool.nestsTools !== undefined) checkNestedTools(settings['tools'], `${inner}.tools`, [...without, name!]);
  });
}

function notNested({ type }: Fields, path: string): GatewayError {
  const named = JSON.stringify(textOf(type).slice(0, 100));
  return invalidField(path, `must be a server tool that can be used here, and ${named} is not one`);
}
