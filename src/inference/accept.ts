/**
 * The only entrance to the pipeline: makes a request out of a parsed body, for any sender. HTTP operations, token
 * counting and text completions use it, and so does everything that runs without a client's connection.
 */
import type { Caller } from '../access/index.ts';
import { generationId } from '../base/ids.ts';
import type { JsonDocument } from '../base/json.ts';
import type { RequestFacts, ServedFormat } from '../formats/conversation/format.ts';
import { applyPreset } from '../presets/index.ts';
import { refuseDisabledTools } from './admission/workspace-rules.ts';
import { cacheUnderPreset } from './cache/options.ts';
import { ONLINE, requestedPlugins, wantsFusion, withFusion, withSearch } from './plugins/index.ts';
import {
  type AcceptedRequest,
  type AnyFormat,
  type ConversationRequest,
  isConversationFormat,
  type RequestAbout,
} from './request.ts';
import { checkServerTools } from './tools/index.ts';

/**
 * @param given valid by the format's schema
 * @param startedAt wall time in ms; rate limits and budgets count the request at this moment
 * @throws GatewayError 400 with the field's path for a broken rule of the format, of a server tool or of a plugin, 403
 * for a tool that the workspace has disabled, 404 for a preset that it does not have
 */
export function accept<Format extends AnyFormat>(
  format: Format,
  given: JsonDocument,
  caller: Caller,
  startedAt: number,
  about: RequestAbout,
): AcceptedRequest<Format> {
  const preset = isConversationFormat(format) ? applyPreset(format, given, caller) : undefined;
  if (preset === undefined) return acceptWhole(format, given, caller, startedAt, about);
  const accepted = acceptWhole(format, preset.document, caller, startedAt, {
    ...about,
    cache: cacheUnderPreset(preset, about.cache),
  });
  return { ...accepted, presetId: preset.id };
}

/** A request without a preset, or whose preset is merged already. */
function acceptWhole<Format extends AnyFormat>(
  format: Format,
  given: JsonDocument,
  caller: Caller,
  startedAt: number,
  about: RequestAbout,
): AcceptedRequest<Format> {
  // Comes before the checks that refuse unsupported members, so that the error names the workspace's rule.
  refuseDisabledTools(caller, given);
  const checked = checkedFacts(format, given);
  const document = (isConversationFormat(format) && format.settled?.(given)) || given;
  const facts = document === given ? checked : checkedFacts(format, document);
  if (isConversationFormat(format)) checkServerTools(format, document);
  const plugins = pluginsOf(format, document);
  const request = { id: generationId(startedAt), format, document, facts, caller, startedAt, about, plugins };
  if (!isConversationFormat(format)) return request;
  return withSuffixes(request as AcceptedRequest<Format & ServedFormat>);
}

/** What the model's name and the plugins add to the request. */
function withSuffixes<Request extends ConversationRequest>(request: Request): Request {
  const searching = request.facts.model?.endsWith(ONLINE) ? withSearch(request) : request;
  if (!wantsFusion(searching)) return searching;
  const asking = withFusion(searching);
  checkServerTools(asking.format, asking.document);
  return asking;
}

function pluginsOf(format: AnyFormat, document: JsonDocument): AcceptedRequest['plugins'] {
  const { plugins, transforms } = document.structure;
  if ((plugins === undefined && transforms === undefined) || !isConversationFormat(format)) return undefined;
  return requestedPlugins(document, format.id);
}

function checkedFacts(format: AnyFormat, document: JsonDocument): RequestFacts {
  if (!isConversationFormat(format)) {
    format.check(document);
    return format.facts(document);
  }
  check(format, document);
  return format.facts(factsView(format, document));
}

/**
 * Checks the cheap view first. Its texts are never shorter than the real ones, so only a failure needs the exact body.
 */
function check(format: ServedFormat, document: JsonDocument): void {
  try {
    format.check(document.structure);
  } catch {
    format.check(document.value);
  }
}

/** The cheap view of the body, with exact texts for the members that `facts` reads; messages stay undecoded. */
function factsView({ factMembers }: ServedFormat, document: JsonDocument): Record<string, unknown> {
  if (document.ascii) return document.structure;
  const view = { ...document.structure };
  for (const key of factMembers) if (key in view) view[key] = document.member(key);
  return view;
}
