/** The state of the installation, for the console: what the doctor finds while the gateway runs, and its processes. */
import { type Static, Type } from 'typebox';
import type { Caller } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import { isoTime } from '../base/timestamp.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { nullable, ok } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import type { Finding } from '../operator/index.ts';
import { listProcesses, type SpendProcess } from '../spend/index.ts';
import type { Database } from '../storage/database.ts';

export interface SystemParts {
  database: Database;
  clock: Clock;
  /** Of this process. */
  processId(): string;
  /** @param online also asks providers and the bucket */
  examine(online: boolean): Promise<Finding[]>;
}

const FindingSchema = Type.Object({
  level: Type.Union([Type.Literal('ok'), Type.Literal('note'), Type.Literal('fault')], {
    description: '`note`: works, but is worth knowing; `fault`: something does not work',
  }),
  area: Type.String(),
  message: Type.String(),
  advice: nullable(Type.String({ description: 'What to do about it' })),
});
const Findings = Type.Object({ data: Type.Array(FindingSchema) }, { $id: 'SystemFindings' });
const FindingsQuery = Type.Object(
  {
    online: Type.Optional(
      Type.Boolean({ description: 'Also asks every provider for its models, and tests a configured S3 bucket' }),
    ),
  },
  { additionalProperties: false },
);

const ProcessSchema = Type.Object({
  id: Type.String(),
  state: Type.Union([Type.Literal('live'), Type.Literal('gone'), Type.Literal('replayed')], {
    description:
      '`gone`: no heartbeat for 90 s, and its journal is not entered; `replayed`: it died with open requests of unknown cost',
  }),
  is_this: Type.Boolean({ description: 'This process served the request' }),
  host: nullable(Type.String()),
  version: nullable(Type.String()),
  started_at: nullable(Type.String({ format: 'date-time' })),
  seen_at: nullable(Type.String({ format: 'date-time', description: 'At most 30 s old while the process lives' })),
});
const Processes = Type.Object({ data: Type.Array(ProcessSchema) }, { $id: 'SystemProcesses' });

export function systemOperations(parts: SystemParts): Operation<Caller>[] {
  /** Running examinations, so that repeated requests do not start more of them. */
  const running = new Map<boolean, Promise<Finding[]>>();
  const examine = (online: boolean) => {
    const found = running.get(online) ?? parts.examine(online).finally(() => running.delete(online));
    running.set(online, found);
    return found;
  };
  return [
    {
      id: 'listSystemFindings',
      method: 'GET',
      path: '/system/findings',
      summary: 'Findings of the doctor for the running gateway',
      tag: 'System',
      access: MANAGEMENT,
      query: FindingsQuery,
      replies: ok('The findings of this process on its machine', Findings),
      async handle(exchange) {
        const { online = false } = exchange.query as Static<typeof FindingsQuery>;
        const findings = await examine(online);
        exchange.reply(200, { data: findings.map(({ advice = null, ...finding }) => ({ ...finding, advice })) });
      },
    },
    {
      id: 'listSystemProcesses',
      method: 'GET',
      path: '/system/processes',
      summary: 'The processes of the gateway on this database',
      tag: 'System',
      access: MANAGEMENT,
      replies: ok('Live processes, and lost ones that still hold a part of a budget', Processes),
      async handle(exchange) {
        const processes = await listProcesses(parts.database, parts.clock.now());
        exchange.reply(200, { data: processes.map((each) => shown(each, parts.processId())) });
      },
    },
  ];
}

function shown(process: SpendProcess, own: string): Static<typeof ProcessSchema> {
  const { id, state, host, version, startedAt, seenAt } = process;
  return {
    ...{ id, state, host, version, is_this: id === own },
    started_at: startedAt === null ? null : isoTime(startedAt),
    seen_at: seenAt === null ? null : isoTime(seenAt),
  };
}
