/** Sends server tools that the upstream has itself in its own words; the others stay functions that the gateway runs. */
import type { Conversation, Extras, FormatId, FunctionTool, Tool, ToolChoice } from '../conversation/conversation.ts';
import { Uncarried } from '../conversation/losses.ts';
import { type NativeTool, type NativeWish, nativeRequest, nativeToolFor } from '../conversation/native-tool.ts';
import type { TurnAdapter } from './adapter.ts';

type Wishing = FunctionTool & { native: NativeWish };

/** @throws Uncarried for a tool that only an upstream with such a tool can run */
export const nativeTools: TurnAdapter = (conversation, { spoken, target }) => {
  const { tools = [], toolChoice } = conversation;
  if (!tools.some(isWishing)) return { conversation };
  const find = (besideFunctions: boolean) =>
    new Map<Tool, NativeTool>(
      tools.filter(isWishing).flatMap((tool) => {
        if (target.ownToolsOnly === true && tool.native.required === undefined) return [];
        const about = { model: target.model, format: spoken.id, besideFunctions, forced: isChosen(toolChoice, tool) };
        const row = nativeToolFor(tool.native, target.nativeTools ?? [], about);
        return row === undefined ? [] : [[tool, row]];
      }),
    );
  let found = find(false);
  if (tools.some((tool) => tool.type === 'function' && !found.has(tool))) found = find(true);
  for (const tool of tools) {
    if (!isWishing(tool) || tool.native.required === undefined || found.has(tool)) continue;
    const { path, why } = tool.native.required;
    throw new Uncarried(path, why);
  }
  return { conversation: found.size === 0 ? conversation : withRows(conversation, found, spoken.id) };
};

function isWishing(tool: Tool): tool is Wishing {
  return tool.type === 'function' && tool.native !== undefined;
}

function isChosen(choice: ToolChoice | undefined, { name }: FunctionTool): boolean {
  return choice?.mode === 'tool' && choice.name === name;
}

function withRows(conversation: Conversation, found: ReadonlyMap<Tool, NativeTool>, origin: FormatId): Conversation {
  const { tools: declared = [], ...others } = conversation;
  let { toolChoice } = conversation;
  const members: Record<string, unknown> = {};
  const tools = declared.flatMap((tool): Tool[] => {
    const row = found.get(tool);
    if (row === undefined || !isWishing(tool)) return [tool];
    const request = nativeRequest(row, tool.native);
    Object.assign(members, request.members);
    if (isChosen(toolChoice, tool)) toolChoice = { mode: 'opaque', origin, value: row.choice };
    return request.tools.map((value) => ({ type: 'opaque', origin, value }));
  });
  const extras: Extras = { ...conversation.extras, [origin]: { ...conversation.extras?.[origin], ...members } };
  return {
    ...others,
    ...(tools.length > 0 && { tools }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(Object.keys(members).length > 0 && { extras }),
  };
}
