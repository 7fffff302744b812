/**
 * The plugin `web`, and the suffix `:online`: one search for the client's last question, whose results the model reads
 * before it. Pages that the answer links to are its citations. `svc:web_search` lets the model search itself.
 */
import Type from 'typebox';
import { invalidField } from '../../../base/errors.ts';
import { readDocument } from '../../../base/json.ts';
import { type Fields, isFields } from '../../../formats/conversation/fields.ts';
import { optional, word } from '../../../formats/conversation/loose-schema.ts';
import { chat } from '../../../formats/index.ts';
import { BlockedByFilter, policyOf } from '../../../guardrails/index.ts';
import { changeDocument } from '../../admission/changed-document.ts';
import { type ChosenEngine, citationsIn, SearchError, type SearchResult, textFor } from '../../web-search/index.ts';
import { readSearchSettings, type SearchSettings } from '../../web-search/settings.ts';
import { Citing } from '../citing.ts';
import type { Plugin, PluginStep } from '../plugin.ts';
import { lastQuestion, withTextBefore } from './last-question.ts';

/** Engines take no longer queries. */
const LONGEST_QUERY = 400;

export const web: Plugin = {
  id: 'web',
  parameters: {
    search_prompt: optional(Type.String({ maxLength: 10_000 })),
    max_uses: optional(Type.Integer({ minimum: 1 })),
  },
  described: {
    engine: optional(Type.String()),
    max_results: optional(Type.Integer({ minimum: 1, maximum: 25 })),
    max_characters: optional(Type.Integer({ minimum: 1 })),
    include_domains: optional(Type.Array(Type.String())),
    exclude_domains: optional(Type.Array(Type.String())),
    mode: optional(Type.String()),
    search_context_size: optional(word(['low', 'medium', 'high'])),
    user_location: optional(Type.Object({ country: optional(Type.String()) })),
  },
  check: (settings, path) => void read(settings, path),
  async beforeRouting(step) {
    const { context, settings, path, parts } = step;
    const { request } = context;
    const { engine, query: limits } = read(settings, path);
    const query = lastQuestion(request.format, request.document.value).trim().slice(0, LONGEST_QUERY);
    // A request that would be refused pays for no search.
    step.candidates();
    // The suffix of a model has no settings.
    const chosen = parts.webSearch!.choose(engine, path === 'model' ? path : `${path}.engine`);
    if (query === '') return;
    const found = await search(step, chosen, { ...limits, query });
    if (found === undefined) return;
    const text = screened(step, `${settings['search_prompt'] ?? ''}\n\n${textFor(query, found)}`.trim());
    if (text === undefined) return;
    changeDocument(context, withTextBefore(request.format, context.request.document, text));
    context.searched = new Map(found.map((result) => [result.url, result]));
  },
  revise({ context: { searched } }) {
    return searched === undefined ? undefined : new Citing((text) => citationsIn(text, searched));
  },
};

function read(settings: Fields, path: string): SearchSettings {
  if (isFields(settings['x_search'])) throw invalidField(`${path}.x_search`, 'is not supported by this gateway');
  return readSearchSettings(settings, path, { allowed: 'include_domains', excluded: 'exclude_domains' });
}

/** Undefined for a search that failed: the model then answers without results. Rejects with GatewayError 402. */
async function search(
  { context, parts, early }: PluginStep,
  chosen: ChosenEngine,
  query: SearchSettings['query'] & { query: string },
): Promise<SearchResult[] | undefined> {
  const { costNano } = chosen;
  const account = context.payingForTools(parts);
  await account.hold(costNano);
  const stage = (summary: string, data: Fields, cost: number) =>
    context.addStage({
      type: 'plugin',
      name: 'web-search',
      summary,
      data: { engine: chosen.settings.kind, query: query.query, ...data },
      cost_usd: cost,
    });
  try {
    const results = await parts.webSearch!.search(chosen, query, early.signal);
    account.settle(costNano, costNano);
    account.searched();
    stage(`found ${results.length} pages`, { urls: results.map(({ url }) => url) }, account.costUsd);
    return results;
  } catch (error) {
    if (!(error instanceof SearchError)) throw error;
    if (!error.costs) account.settle(costNano, 0n);
    stage(error.message, {}, account.costUsd);
    return undefined;
  }
}

/** The text after the guardrail filters; undefined if one of them blocks it: a page must not decide over a request. */
function screened({ context, parts }: PluginStep, text: string): string | undefined {
  const { filters } = policyOf(context.request.caller).compiled;
  if (filters === undefined) return text;
  const document = readDocument(Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: text }] })));
  try {
    const { document: clean, hits } = filters.screen(document, chat.texts, parts.clock);
    context.addHits(hits);
    return lastQuestion(chat, clean.value);
  } catch (error) {
    if (!(error instanceof BlockedByFilter)) throw error;
    context.addHits(error.hits);
    return undefined;
  }
}
