/** Refuses requests for features of the gateway that are not built. */
import Type from 'typebox';
import { type GatewayError, invalidField } from '../../base/errors.ts';
import { toWireName, WIRE_NAME } from '../../base/namespace.ts';
import type { FormatId } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isPresent, listOf, textOf } from '../conversation/fields.ts';
import { optional } from '../conversation/loose-schema.ts';
import { SERVER_TOOLS, type ServerTool } from './server-tool.ts';
import { StopConditionSchema, stopConditions } from './stop-conditions.ts';

/** The request members of the gateway's features that are alike in all formats. */
export const featureMembers = {
  plugins: optional(Type.Array(Type.Object({ id: Type.String(), enabled: optional(Type.Boolean()) }))),
  stop_server_tools_when: optional(Type.Array(StopConditionSchema, { minItems: 1 })),
};

/** Where formats differ. */
export interface FeatureRules {
  /** Whether vendors' types of tools can be short for a server tool. Default: they are the vendor's. */
  shorthands?: boolean;
  /** Request members of features that are not built. */
  unbuilt: readonly string[];
}

/**
 * Throws GatewayError 400 with the path of the first feature that is not built, and for a faulty stop condition. Empty
 * members pass.
 */
export function refuseUnbuilt(request: Fields, rules: FeatureRules): void {
  for (const field of rules.unbuilt) if (isPresent(request[field])) throw unbuilt(field);
  listOf(request['tools']).forEach((tool, index) => {
    refuseTool(fieldsOf(tool)['type'], `tools[${index}].type`, rules);
  });
  refuseTool(fieldsOf(request['tool_choice'])['type'], 'tool_choice.type', rules);
  stopConditions(request);
}

function refuseTool(type: unknown, path: string, rules: FeatureRules): void {
  const name = textOf(type);
  const tool = serverToolOf(name, rules);
  // Names with the gateway's prefix are never a vendor's.
  const isOurs = tool !== undefined || toWireName(name).startsWith(`${WIRE_NAME}:`);
  if (isOurs && tool?.built !== true) throw notSupported(path, `the tool ${name}`);
}

const BY_NAME = new Map<string, ServerTool>(SERVER_TOOLS.map((tool) => [tool.name, tool]));
const WITH_OTHER_TYPES = SERVER_TOOLS.filter((tool) => tool.also !== undefined);
const WITH_SHORTHANDS = SERVER_TOOLS.filter((tool) => tool.shorthands !== undefined);

/** The server tool of a type; undefined for clients' and vendors' tools, and for names that do not exist. */
function serverToolOf(type: string, { shorthands = false }: Pick<FeatureRules, 'shorthands'>): ServerTool | undefined {
  const tool = BY_NAME.get(toWireName(type));
  return tool === undefined && shorthands ? WITH_SHORTHANDS.find((short) => short.shorthands!.test(type)) : tool;
}

/**
 * The wire name of the server tool that a declaration means; undefined for clients' and vendors' tools, and for
 * tools that are not built.
 * @param format id of the request's format
 */
export function serverToolName(declaration: unknown, format: FormatId): string | undefined {
  const { type } = fieldsOf(declaration);
  if (typeof type !== 'string' || type === 'function') return undefined;
  const tool =
    serverToolOf(type, { shorthands: format === 'chat' }) ??
    WITH_OTHER_TYPES.find(
      ({ also }) => also!.format === format && also!.type === type && also!.isOurs(fieldsOf(declaration)),
    );
  return tool?.built === true ? tool.name : undefined;
}

/** The wire names of a request's tools if all of them are server tools. */
export function onlyServerTools(tools: readonly unknown[], format: FormatId): readonly string[] | undefined {
  const names = tools.map((tool) => serverToolName(tool, format));
  return names.includes(undefined) ? undefined : (names as string[]);
}

/** The error for a feature that is not built. */
export function unbuilt(path: string): GatewayError {
  return invalidField(path, 'requests a feature that this gateway does not support');
}

function notSupported(path: string, what: string): GatewayError {
  return invalidField(path, `requests ${what}, which this gateway does not support`);
}
