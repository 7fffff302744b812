/**
 * Code execution that a request declares in the words of a vendor (`code_interpreter` of the responses format,
 * `code_execution_...` of messages). It is left to the vendor wherever an endpoint of the model speaks the vendor's format. Other
 * models get the gateway's own tool in its place, and clients see its calls in the vendor's words.
 */
import { invalidField } from '../../base/errors.ts';
import { readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import type { Model } from '../../catalog/index.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../../formats/conversation/fields.ts';
import { requestedModels } from '../../formats/conversation/format.ts';
import { formatsFor } from '../../providers/index.ts';
import { changeDocument } from '../admission/changed-document.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { ConversationRequest } from '../request.ts';
import { checkEnvironment } from './container/index.ts';
import { CODE_TOOL, type ShownCode } from './shell/index.ts';

/** How calls of each type are shown, by the format that has the type. */
const TYPES: Readonly<Record<string, Readonly<Record<string, ShownCode>>>> = {
  responses: { code_interpreter: 'code_interpreter' },
  messages: { code_execution_20250522: 'code_execution', code_execution_20250825: 'bash_code_execution' },
};

/** @throws GatewayError 400 for settings that only the vendor knows */
export function withOwnCode(context: RequestContext<ConversationRequest>, parts: InferenceParts): void {
  const { format, document, facts } = context.request;
  const types = TYPES[format.id];
  if (types === undefined || parts.requestContainers === undefined) return;
  const { tools } = document.structure;
  if (!Array.isArray(tools) || !tools.some((tool) => textOf(fieldsOf(tool)['type']) in types)) return;
  const names = requestedModels(facts);
  const models = names.flatMap((name) => parts.catalog().find(name) ?? []);
  if (models.length === 0 || models.length < names.length || models.some((model) => speaks(model, format.id))) return;
  const exact = fieldsOf(document.exact);
  const declared = listOf(exact['tools']);
  if (needsVendor(exact, declared)) return;
  const changed = declared.map((value, index) => {
    const declaration = fieldsOf(value);
    const shown = types[textOf(declaration['type'])];
    if (shown === undefined) return value;
    const environment =
      format.id === 'responses'
        ? ofInterpreter(declaration['container'], `tools[${index}].container`)
        : ofRequest(exact['container'] ?? undefined, 'container');
    return { type: CODE_TOOL, shown_as: shown, parameters: { environment } };
  });
  changeDocument(context, readDocument(applyEdits(document, [{ key: 'tools', json: stringifyJson(changed) }])));
}

function speaks({ endpoints }: Model, format: ConversationRequest['format']['id']): boolean {
  return endpoints.some(({ provider, upstreamId, speaks: spoken }) =>
    formatsFor(provider.kind, upstreamId, format, spoken).includes(format),
  );
}

/** Skills, and functions that code may call, exist at the vendor only. */
function needsVendor({ container }: Fields, tools: readonly unknown[]): boolean {
  const calledByCode = tools.some((tool) =>
    listOf(fieldsOf(tool)['allowed_callers']).some((caller) => textOf(caller) !== 'direct'),
  );
  return calledByCode || isFields(container);
}

function ofInterpreter(container: unknown, path: string): Fields {
  if (typeof container === 'string') return ofRequest(container, path);
  if (!isFields(container) || container['type'] !== 'auto') {
    throw invalidField(path, "must be the id of a container or an object of the type 'auto'");
  }
  const { memory_limit: memory, file_ids, network_policy } = container;
  if ((memory ?? undefined) !== undefined) {
    throw invalidField(
      `${path}.memory_limit`,
      'is not supported for this model: the sandbox has the memory that is configured',
    );
  }
  const environment = {
    type: 'container_auto',
    ...((file_ids ?? undefined) !== undefined && { file_ids }),
    ...((network_policy ?? undefined) !== undefined && { network_policy }),
  };
  checkEnvironment(environment, path);
  return environment;
}

function ofRequest(container: unknown, path: string): Fields {
  if (container === undefined) return { type: 'container_auto' };
  const environment = { type: 'container_reference', container_id: container };
  try {
    checkEnvironment(environment, path);
  } catch {
    throw invalidField(path, 'must be 1 to 40 letters, digits, "_" and "-"');
  }
  return environment;
}
