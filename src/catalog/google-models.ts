/** The catalog for Google's clients: `GET /v1beta/models` and single models, in the form of the Gemini API. */
import { Type } from 'typebox';
import { type GatewayError, invalidField } from '../base/errors.ts';
import { gemini } from '../formats/index.ts';
import { ANY_KEY } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { googlePages, type Row } from './query.ts';
import { contextOf, outputModalitiesOf } from './view.ts';

/** Google's own default. */
const PAGE_SIZE = 50;
const GENERATING = ['generateContent', 'streamGenerateContent', 'countTokens'];
const EMBEDDING = ['embedContent', 'batchEmbedContents'];
const CONVERSATIONS = ['text', 'image', 'audio'];

export const GoogleModel = Type.Object(
  {
    name: Type.String({ description: '`models/` and the id' }),
    version: Type.String(),
    displayName: Type.String(),
    inputTokenLimit: Type.Optional(Type.Integer()),
    outputTokenLimit: Type.Optional(Type.Integer()),
    supportedGenerationMethods: Type.Array(Type.String()),
  },
  { $id: 'GoogleModel' },
);

export const GoogleModelList = Type.Object(
  { models: Type.Array(GoogleModel), nextPageToken: Type.Optional(Type.String()) },
  { $id: 'GoogleModelList' },
);

const KEY = Type.Optional(Type.String({ description: 'The key, instead of a header' }));

interface ListedRows<C> {
  rows(exchange: Exchange<C>): readonly Row[];
  /** @throws GatewayError 404 */
  row(name: string): Row;
}

export function googleModelOperations<C>({ rows, row }: ListedRows<C>): Operation<C>[] {
  const common = {
    method: 'GET',
    root: true,
    tag: 'Models',
    access: ANY_KEY,
    keyInQuery: true,
    anyQuery: true,
    ...(gemini.operation.errorSchema && { errorSchema: gemini.operation.errorSchema }),
    encodeError: (error: GatewayError) => gemini.encodeFailure(error, { generationId: null }),
  } as const;
  const one = {
    ...common,
    query: Type.Object({ key: KEY }),
    replies: ok('The model', GoogleModel),
  };
  return [
    {
      ...common,
      id: 'listModelsForGoogle',
      path: '/v1beta/models',
      summary: "List the available models, for Google's clients",
      query: Type.Object({
        ...googlePages,
        key: KEY,
      }),
      replies: ok('One page', GoogleModelList),
      handle: (exchange) => exchange.reply(200, pageForGoogle(rows(exchange), exchange.query)),
    },
    {
      ...one,
      id: 'getModelForGoogle',
      path: '/v1beta/models/{model}',
      summary: "Get one model, for Google's clients",
      params: Type.Object({ model: Type.String() }),
      handle: (exchange) => exchange.reply(200, viewForGoogle(row(exchange.params['model']!))),
    },
    ...['', 'Beta'].map(
      (suffix): Operation<C> => ({
        ...one,
        root: suffix !== '',
        id: `getModelOfAuthorForGoogle${suffix}`,
        path: `${suffix === '' ? '' : '/v1beta'}/models/{author}/{model}`,
        summary: "Get one model whose name has a slash, for Google's clients",
        params: Type.Object({ author: Type.String(), model: Type.String() }),
        handle: (exchange) => {
          const { author, model } = exchange.params;
          exchange.reply(200, viewForGoogle(row(`${author}/${model}`)));
        },
      }),
    ),
  ];
}

/** @throws GatewayError 400 for a token that no page has given */
export function pageForGoogle(rows: readonly Row[], { pageSize, pageToken = '0' }: Exchange['query']) {
  if (!/^\d{1,9}$/.test(pageToken as string)) throw invalidField('pageToken', 'must be the nextPageToken of a page');
  const start = Number(pageToken);
  const end = start + ((pageSize as number | undefined) || PAGE_SIZE);
  return {
    models: rows.slice(start, end).map(viewForGoogle),
    ...(end < rows.length && { nextPageToken: String(end) }),
  };
}

export function viewForGoogle({ id, model }: Row) {
  const outputs = outputModalitiesOf(model);
  const context = contextOf(model);
  const output = model.endpoints[0]?.maxCompletionTokens ?? null;
  return {
    name: `models/${id}`,
    version: id.split('/').at(-1)!,
    displayName: model.name,
    ...(context !== null && { inputTokenLimit: context }),
    ...(output !== null && { outputTokenLimit: output }),
    supportedGenerationMethods: [
      ...(outputs.some((kind) => CONVERSATIONS.includes(kind)) ? GENERATING : []),
      ...(outputs.includes('embeddings') ? EMBEDDING : []),
    ],
  };
}
