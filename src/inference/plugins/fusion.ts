/**
 * The plugin `fusion`, and the model `svc/fusion`: they add the server tool `svc:fusion` to a request that does not
 * declare it. With the model, the panel is asked first, and the model that the router has chosen writes the answer.
 */
import Type from 'typebox';
import { readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits, type Edit } from '../../base/json-edits.ts';
import { toWireName } from '../../base/namespace.ts';
import { fieldsOf, listOf, restOf, textOf } from '../../formats/conversation/fields.ts';
import { optional, word } from '../../formats/conversation/loose-schema.ts';
import { refuseIfDisabled } from '../admission/workspace-rules.ts';
import { type ConversationRequest, factsOf } from '../request.ts';
import type { Plugin } from './plugin.ts';
import { PRESETS } from './routers/fusion.ts';

const TOOL = 'svc:fusion';
const MODEL = 'svc/fusion';

export const fusion: Plugin = {
  id: 'fusion',
  parameters: {
    analysis_models: optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 8 })),
    model: optional(Type.String({ minLength: 1 })),
    preset: optional(word(PRESETS)),
    tools: optional(Type.Array(Type.Object({ type: Type.String() }), { maxItems: 8 })),
    max_tool_calls: optional(Type.Integer({ minimum: 1, maximum: 16 })),
  },
};

export function wantsFusion({ facts, plugins }: Pick<ConversationRequest, 'facts' | 'plugins'>): boolean {
  return isFusion(facts.model) || plugins?.some(({ plugin }) => plugin === fusion) === true;
}

function isFusion(model: string | undefined): boolean {
  return model !== undefined && toWireName(model) === MODEL;
}

/**
 * The request with the tool, which has the settings of the plugin unless it has its own.
 * @throws GatewayError 403 if the workspace has disabled the tool
 */
export function withFusion<Request extends ConversationRequest>(request: Request): Request {
  const { format, document, facts, caller, plugins } = request;
  const settings = plugins?.find(({ plugin }) => plugin === fusion)?.settings ?? {};
  const routed = isFusion(facts.model);
  refuseIfDisabled(TOOL, caller, routed ? 'model' : 'plugins');
  const given = restOf(settings, ['id', 'enabled', 'preset']) ?? {};
  const declared = listOf(document.exact['tools']);
  const at = declared.findIndex((tool) => toWireName(textOf(fieldsOf(tool)['type'])) === TOOL);
  const own = fieldsOf(fieldsOf(declared[at])['parameters']);
  const tool = { type: TOOL, parameters: { ...given, ...own } };
  const tools = at === -1 ? [...declared, tool] : declared.toSpliced(at, 1, tool);
  const edits: Edit[] = [{ key: 'tools', json: stringifyJson(tools) }];
  if (routed && mayForce(request)) edits.push({ key: 'tool_choice', json: JSON.stringify({ type: TOOL }) });
  const changed = readDocument(applyEdits(document, edits));
  return { ...request, document: changed, facts: factsOf(format, changed) };
}

/** The panel answers questions, not results of calls that the client has made for it. */
function mayForce({ format: { history }, document: { structure } }: ConversationRequest): boolean {
  if ((structure['tool_choice'] ?? undefined) !== undefined) return false;
  const last = listOf(structure[history.root]).at(-1);
  return last === undefined || history.item(last).kind !== 'result';
}
