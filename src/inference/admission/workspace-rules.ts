/** Workspace rules for requests: the default model, and disabled tools. */
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import type { RequestFacts } from '../../formats/conversation/format.ts';
import { useOf } from '../../formats/server-tools/index.ts';
import type { ApiType } from '../../spend/index.ts';

/**
 * Adds the workspace's default model if the request names none and the workspace has one for this kind of operation.
 */
export function withDefaultModel(facts: RequestFacts, { workspace }: Caller, apiType: ApiType): RequestFacts {
  if (facts.model !== undefined || facts.fallbackModels.length > 0) return facts;
  const model =
    apiType === 'completions' ? workspace.defaultTextModel : apiType === 'image' ? workspace.defaultImageModel : null;
  return model === null ? facts : { ...facts, model };
}

/** Throws GatewayError 403 for a conversation that names a server tool which its workspace has disabled. */
export function refuseDisabledTools({ workspace }: Caller, document: JsonDocument): void {
  const { disabledServerTools } = workspace;
  if (disabledServerTools.size === 0) return;
  for (const disabled of disabledServerTools) {
    const path = useOf(disabled, document.structure);
    if (path !== undefined) throw switchedOff(disabled, path);
  }
}

/** Throws GatewayError 403 if the workspace has disabled a server tool that the request asks for in another way. */
export function refuseIfDisabled(tool: string, { workspace }: Caller, path: string): void {
  if (workspace.disabledServerTools.has(tool)) throw switchedOff(tool, path);
}

function switchedOff(tool: string, path: string): GatewayError {
  return new GatewayError('permission_denied', `${path} names ${tool}, which this workspace has disabled`, {
    path,
    metadata: { disabled_server_tool: tool },
  });
}
