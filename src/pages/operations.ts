/** `GET /`, `GET /start`, `GET /docs` and `GET /openapi.json`. */
import { Type } from 'typebox';
import { ANYONE } from '../http/access-rule.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { publicUrl } from '../http/public-url.ts';
import { PAGE_HEADERS } from './html.ts';
import { referencePage } from './reference.ts';
import { type ServiceState, startPage } from './start-page.ts';
import { StaticText } from './static-text.ts';

export interface PageParts {
  version: string;
  /** Read at each request. */
  state(): ServiceState;
  /** Whether browsers that ask for `/` are sent to the console. */
  hasConsole(): boolean;
  /** The OpenAPI document as JSON text; called once. */
  document(): string;
}

const OpenApiDocument = Type.Object(
  { openapi: Type.String(), info: Type.Object({}), paths: Type.Object({}), components: Type.Object({}) },
  { $id: 'OpenApiDocument' },
);
const TAG = 'Pages';

export function pageOperations<C>(parts: PageParts): Operation<C>[] {
  const document = new StaticText(() => parts.document(), { 'Content-Type': 'application/json' });
  const reference = new StaticText(() => referencePage(document.text), PAGE_HEADERS);
  const common = { method: 'GET', root: true, tag: TAG, access: ANYONE } as const;
  const html = { 200: { description: 'The page', contentType: 'text/html' } };
  const unchanged = { 304: { description: 'Unchanged since the `ETag` in `If-None-Match`' } };
  return [
    {
      ...common,
      id: 'getRoot',
      path: '/',
      summary: 'Redirect browsers to the console; the start page for other clients',
      replies: { ...html, 302: { description: 'Redirect to the console', headers: { Location: '`console/`' } } },
      handle(exchange) {
        if (!parts.hasConsole() || !exchange.headers.accept?.includes('text/html')) return answerStart(exchange, parts);
        exchange.response.writeHead(302, { Location: 'console/', 'Content-Length': '0', Vary: 'Accept' });
        exchange.response.end();
      },
    },
    {
      ...common,
      id: 'getStartPage',
      path: '/start',
      summary: 'The start page: base URLs and how to use them',
      replies: html,
      handle: (exchange) => answerStart(exchange, parts),
    },
    {
      ...common,
      id: 'getReference',
      path: '/docs',
      summary: 'The API reference, readable without any outside host',
      replies: { ...html, ...unchanged },
      handle: (exchange) => reference.answer(exchange),
    },
    {
      ...common,
      id: 'getOpenApi',
      path: '/openapi.json',
      summary: 'This document',
      replies: { 200: { description: 'The OpenAPI document', schema: OpenApiDocument }, ...unchanged },
      handle: (exchange) => document.answer(exchange),
    },
  ];
}

function answerStart<C>(exchange: Exchange<C>, { version, state }: PageParts): void {
  const root = publicUrl(exchange);
  const body = startPage({ root, version, ...state() });
  const length = Buffer.byteLength(body);
  exchange.response.writeHead(200, { ...PAGE_HEADERS, 'Cache-Control': 'no-store', 'Content-Length': length });
  exchange.response.end(body);
}
