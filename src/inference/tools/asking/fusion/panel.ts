/** The panel of a fusion: several models answer one question side by side. */
import { GatewayError } from '../../../../base/errors.ts';
import type { Model } from '../../../../catalog/index.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../../../formats/conversation/fields.ts';
import type { ToolReport } from '../../../../formats/conversation/served-call.ts';
import { policyOf } from '../../../../guardrails/index.ts';
import { textOfReply } from '../../../nested-reply.ts';
import { leavesEndpoint, offersWhere } from '../../../routing/index.ts';
import type { ToolsRunning } from '../../../turns/gateway-tools.ts';
import { ToolError } from '../../tool.ts';
import type { FusionSettings } from './settings.ts';

/** The router model whose order the gateway's choice of a panel follows. */
export const FUSION_MODEL = 'svc/fusion';
/** Number of members of a panel that the request does not name. */
const USUAL_MEMBERS = 3;
const MAX_SOURCES = 100;
const NO_ANSWER = 'the model gave no answer';

export interface Reply {
  model: string;
  content: string;
}

interface FailedModel {
  model: string;
  error: string;
  status_code?: number;
}

export interface PanelReplies {
  replies: readonly Reply[];
  failed: readonly FailedModel[];
  sources: readonly { url: string; title: string }[];
}

/** The models of the panel. @throws ToolError if no model can serve on it */
export function panelOf({ models }: FusionSettings, { parts, request }: ToolsRunning): readonly string[] {
  if (models !== undefined) return models;
  const catalog = parts.catalog();
  const guarded = { guardrails: policyOf(request.caller), catalog };
  const policy = parts.accountPolicy();
  const offers = offersWhere(catalog.models, (endpoint) => leavesEndpoint(policy, endpoint, guarded));
  const facts = { offers, request, sessionModel: undefined, random: parts.random };
  const found = parts.routers?.(FUSION_MODEL, () => facts)?.models ?? [];
  if (found.length === 0) throw new ToolError('there are no models for a panel: name them in analysis_models');
  return found.slice(0, USUAL_MEMBERS).map(({ id }) => id);
}

/** Sends the question to all of them. A model that fails does not fail the others. */
export async function askPanel(
  models: readonly string[],
  question: string,
  settings: FusionSettings,
  running: ToolsRunning,
): Promise<PanelReplies> {
  const asked = await Promise.allSettled(
    models.map((model) =>
      reported(model, running.ask(bodyFor(model, question, settings, running), running.signal), running),
    ),
  );
  running.signal.throwIfAborted();
  const replies: Reply[] = [];
  const failed: FailedModel[] = [];
  const sources = new Map<string, string>();
  asked.forEach((outcome, index) => {
    const model = models[index]!;
    if (outcome.status === 'rejected') {
      failed.push(failureOf(model, outcome.reason, running));
      return;
    }
    const content = textOfReply(outcome.value).trim();
    if (content === '') failed.push({ model, error: NO_ANSWER });
    else replies.push({ model: textOf(outcome.value['model']) || model, content });
    for (const { url, title } of sourcesIn(outcome.value)) if (sources.size < MAX_SOURCES) sources.set(url, title);
  });
  return { replies, failed, sources: [...sources].map(([url, title]) => ({ url, title })) };
}

/** The request to one model, whose steps are reported to the client. */
async function reported(model: string, asked: Promise<Fields>, running: ToolsRunning): Promise<Fields> {
  running.report?.({ event: 'fusion_call.panel.added', members: { model } });
  try {
    const reply = await asked;
    const content = textOfReply(reply).trim();
    if (content === '') running.report?.(failedEvent({ model, error: NO_ANSWER }));
    else running.report?.({ event: 'fusion_call.panel.completed', members: { model, content } });
    return reply;
  } catch (reason) {
    running.report?.(failedEvent(shownFailure(model, reason)));
    throw reason;
  }
}

function failedEvent(failed: FailedModel): ToolReport {
  return { event: 'fusion_call.panel.failed', members: { ...failed } };
}

function bodyFor(model: string, question: string, settings: FusionSettings, running: ToolsRunning): Fields {
  const { options, toolCalls, maxTokens, cache } = settings;
  const tools = settings.tools ?? usualTools(model, running);
  const content = cache === undefined ? question : [{ type: 'text', text: question, cache_control: cache }];
  return {
    ...options,
    model,
    max_completion_tokens: maxTokens,
    ...(tools.length > 0 && { tools, max_tool_calls: toolCalls }),
    messages: [{ role: 'user', content }],
  };
}

/** Search and fetch, as far as the model, the installation and the workspace allow them. */
function usualTools(model: string, { parts, request }: ToolsRunning): readonly Fields[] {
  const found = parts.catalog().find(model);
  if (found !== undefined && !takesTools(found)) return [];
  const off = request.caller.workspace.disabledServerTools;
  return [
    ...(parts.webSearch?.available === true && !off.has('svc:web_search') ? [{ type: 'svc:web_search' }] : []),
    ...(off.has('svc:web_fetch') ? [] : [{ type: 'svc:web_fetch' }]),
  ];
}

function takesTools({ endpoints }: Model): boolean {
  return endpoints.some(({ supportedParameters: known }) => known === null || known.includes('tools'));
}

function failureOf(model: string, reason: unknown, { parts, request }: ToolsRunning): FailedModel {
  if (!isRefusal(reason)) {
    parts.log.error('a model of a panel failed', { generation: request.id, model, cause: reason });
  }
  return shownFailure(model, reason);
}

function shownFailure(model: string, reason: unknown): FailedModel {
  return isRefusal(reason)
    ? { model, error: reason.message, status_code: reason.status }
    : { model, error: 'the request failed' };
}

function isRefusal(reason: unknown): reason is GatewayError {
  return reason instanceof GatewayError && reason.status !== 500;
}

function sourcesIn(reply: Fields): { url: string; title: string }[] {
  const { annotations } = fieldsOf(fieldsOf(listOf(reply['choices'])[0])['message']);
  return listOf(annotations).flatMap((annotation) => {
    const { url, title } = fieldsOf(fieldsOf(annotation)['url_citation']);
    return typeof url === 'string' ? [{ url, title: textOf(title) }] : [];
  });
}
