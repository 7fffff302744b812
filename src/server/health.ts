/** Health checks for orchestrators: liveness and readiness. */
import { Type } from 'typebox';
import { GatewayError } from '../base/errors.ts';
import { ANYONE } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';

export interface Readiness {
  /** False until everything has started, and once draining begins. */
  ready: boolean;
  /** Reasons for degraded service, one sentence each, without addresses, since the endpoint is public. Absent: none. */
  problems?(): string[];
  /** Why every request is refused now; undefined: requests are served. */
  refuses?(): string | undefined;
}

const Status = Type.Object({ status: Type.Literal('ok') }, { $id: 'Status' });
const ReadyStatus = Type.Object(
  {
    status: Type.Union([Type.Literal('ok'), Type.Literal('degraded')]),
    problems: Type.Optional(Type.Array(Type.String())),
  },
  { $id: 'ReadyStatus' },
);

export function healthOperations<C>(readiness: Readiness): Operation<C>[] {
  return [
    {
      id: 'getHealth',
      method: 'GET',
      path: '/health',
      root: true,
      summary: 'The process lives',
      tag: 'Health',
      access: ANYONE,
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
      access: ANYONE,
      replies: ok(
        'It serves; `degraded` where something takes longer or some requests are refused. 503 while it starts, drains, or ' +
          'must refuse every request',
        ReadyStatus,
      ),
      handle(exchange) {
        const reason = readiness.ready ? readiness.refuses?.() : 'starting or draining';
        if (reason !== undefined) throw new GatewayError('server', reason, { status: 503, retryAfterSeconds: 1 });
        const problems = readiness.problems?.() ?? [];
        if (problems.length === 0) exchange.reply(200, { status: 'ok' });
        else exchange.reply(200, { status: 'degraded', problems });
      },
    },
  ];
}
