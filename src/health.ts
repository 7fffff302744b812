/** What orchestrators ask: is the process alive, and does it serve. */
import { Type } from 'typebox';
import { GatewayError } from './base/errors.ts';
import { ok } from './http/contract.ts';
import type { Operation } from './http/operation.ts';

export interface Readiness {
  /** False before everything is started and from the moment that draining begins. */
  ready: boolean;
}

const Status = Type.Object({ status: Type.Literal('ok') }, { $id: 'Status' });

export function healthOperations<C>(readiness: Readiness): Operation<C>[] {
  return [
    {
      id: 'getHealth',
      method: 'GET',
      path: '/health',
      root: true,
      summary: 'The process lives',
      tag: 'Health',
      access: 'none',
      replies: ok('Always, while it lives', Status),
      handle: (exchange) => exchange.reply(200, { status: 'ok' }),
    },
    {
      id: 'getReadiness',
      method: 'GET',
      path: '/ready',
      root: true,
      summary: 'The process serves requests',
      tag: 'Health',
      access: 'none',
      replies: ok('It serves; 503 while it starts or drains', Status),
      handle(exchange) {
        if (!readiness.ready)
          throw new GatewayError('server', 'starting or draining', { status: 503, retryAfterSeconds: 1 });
        exchange.reply(200, { status: 'ok' });
      },
    },
  ];
}
