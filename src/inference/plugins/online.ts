/** The suffix `:online` of a model's name: the plugin `web` with its defaults. */
import { readDocument } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { refuseIfDisabled } from '../admission/workspace-rules.ts';
import { type AcceptedRequest, factsOf } from '../request.ts';
import { sorted } from './requested.ts';
import { web } from './web/index.ts';

export const ONLINE = ':online';

/**
 * @param request whose model has the suffix
 * @throws GatewayError 403 if the workspace has disabled web search
 */
export function withSearch<Request extends AcceptedRequest>(request: Request): Request {
  const { format, facts, plugins = [], caller } = request;
  refuseIfDisabled('svc:web_search', caller, 'model');
  const model = JSON.stringify(facts.model!.slice(0, -ONLINE.length));
  const document = readDocument(applyEdits(request.document, [{ key: 'model', json: model }]));
  const search = { plugin: web, settings: {}, path: 'model' };
  const all = plugins.some(({ plugin }) => plugin === web) ? plugins : sorted([...plugins, search]);
  return { ...request, document, facts: factsOf(format, document), plugins: all };
}
