/** The plugin `web-fetch`: the request gets the tool `svc:web_fetch`, unless it has it already. */
import Type from 'typebox';
import { readDocument, stringifyJson } from '../../../base/json.ts';
import { applyEdits } from '../../../base/json-edits.ts';
import { type Fields, listOf, restOf } from '../../../formats/conversation/fields.ts';
import { optional } from '../../../formats/conversation/loose-schema.ts';
import { serverToolName } from '../../../formats/server-tools/index.ts';
import { changeDocument } from '../../admission/changed-document.ts';
import { webFetch as tool } from '../../tools/web-fetch.ts';
import type { Plugin } from '../plugin.ts';

export const webFetch: Plugin = {
  id: 'web-fetch',
  // The tool itself checks its settings.
  parameters: {},
  described: {
    allowed_domains: optional(Type.Array(Type.String())),
    blocked_domains: optional(Type.Array(Type.String())),
    max_content_tokens: optional(Type.Integer({ minimum: 1 })),
    max_uses: optional(Type.Integer({ minimum: 1 })),
  },
  check: (settings, path) => tool.check(ofTool(settings), path, tool.name, 'chat'),
  beforeRouting({ context, settings }) {
    const { document, format } = context.request;
    const tools = listOf(document.exact['tools']);
    if (tools.some((declared) => serverToolName(declared, format.id) === tool.name)) return undefined;
    const json = stringifyJson([...tools, { type: tool.name, parameters: ofTool(settings) }]);
    changeDocument(context, readDocument(applyEdits(document, [{ key: 'tools', json }])));
    return undefined;
  },
};

function ofTool(settings: Fields): Fields {
  return restOf(settings, ['id', 'enabled']) ?? {};
}
