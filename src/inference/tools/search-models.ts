/** `svc:experimental__search_models`: finds models of this gateway that the caller may use. */
import { WordIndex } from '../../base/word-index.ts';
import { type Catalog, type Model, viewModel } from '../../catalog/index.ts';
import { type Fields, textOf } from '../../formats/conversation/fields.ts';
import { policyOf } from '../../guardrails/index.ts';
import { leavesEndpoint } from '../routing/index.ts';
import { Members } from '../tool-settings.ts';
import type { ToolsRunning } from '../turns/gateway-tools.ts';
import { type ServerTool, ToolError, type ToolOutcome } from './tool.ts';

const DEFAULT_RESULTS = 5;
const MAX_RESULTS = 20;
const LONGEST_QUERY = 1000;
const TOKENS_PER_LISTED_PRICE = 1_000_000;

export const searchModels: ServerTool = {
  name: 'svc:experimental__search_models',
  check: (settings, path) => void resultsOf(settings, path),
  begin(settings, path) {
    const maxResults = resultsOf(settings, path);
    return {
      functionName: 'search_models',
      description:
        'Searches the language models that this service offers, by words of their names, vendors and abilities ' +
        '(such as image, audio, tools, reasoning). Returns id, context length in tokens, and price in USD for a million tokens.',
      parameters: {
        type: 'object',
        properties: { query: { type: 'string', description: 'Words to search for', maxLength: LONGEST_QUERY } },
        required: ['query'],
        additionalProperties: false,
      },
      run: (input, running) => search(textOf(input['query']).trim(), maxResults, running),
    };
  },
};

function resultsOf(settings: Fields, path: string): number {
  return new Members(settings, path).count('max_results', MAX_RESULTS) ?? DEFAULT_RESULTS;
}

function search(query: string, maxResults: number, { request, parts }: ToolsRunning): ToolOutcome {
  if (query === '') throw new ToolError('the query is empty', { item: { query, error: 'the query is empty' } });
  const catalog = parts.catalog();
  const guarded = { guardrails: policyOf(request.caller), catalog };
  const policy = parts.accountPolicy();
  const isAllowed = ({ endpoints }: Model) => endpoints.some((endpoint) => leavesEndpoint(policy, endpoint, guarded));
  // Few models are allowed or few match: rank all, then keep what the caller may use.
  const ranked = indexOf(catalog).search(query, catalog.models.length);
  const found = ranked.filter(isAllowed).slice(0, maxResults).map(rowOf);
  return { result: JSON.stringify({ models: found }), item: { query } };
}

/** A configuration reload replaces the catalog, and with it the index. */
const indexes = new WeakMap<Catalog, WordIndex<Model>>();

function indexOf(catalog: Catalog): WordIndex<Model> {
  let index = indexes.get(catalog);
  if (index === undefined) {
    index = new WordIndex(catalog.models, wordsAbout);
    indexes.set(catalog, index);
  }
  return index;
}

function wordsAbout(model: Model): string {
  const { id, name, architecture, supported_parameters, reasoning } = viewModel(model);
  const { input_modalities: inputs, output_modalities: outputs } = architecture;
  return [id, name, ...inputs, ...outputs, ...supported_parameters, reasoning ? 'reasoning' : ''].join(' ');
}

function rowOf(model: Model): object {
  const { id, name, context_length, architecture, pricing, supported_parameters } = viewModel(model);
  return {
    id,
    name,
    context_length,
    input_modalities: architecture.input_modalities,
    output_modalities: architecture.output_modalities,
    tools: supported_parameters.includes('tools'),
    usd_per_million: { prompt: perMillion(pricing.prompt), completion: perMillion(pricing.completion) },
  };
}

/** Null if unknown, which the catalog writes as -1. */
function perMillion(price: string): number | null {
  const usd = Number(price);
  return usd < 0 ? null : Number((usd * TOKENS_PER_LISTED_PRICE).toPrecision(12));
}
