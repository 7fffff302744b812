/** `POST /guardrails/{id}/test`: what a text would trigger, without a request to a model. */
import { type Static, Type } from 'typebox';
import type { Caller } from '../access/index.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { closed, idOf, ok } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import { Filters } from './filters/filters.ts';
import { Effort } from './filters/patterns.ts';
import { replaced } from './filters/redaction.ts';
import { existingGuardrail, type GuardrailParts } from './operations.ts';
import { GuardrailParamsSchema } from './schema.ts';

const LONGEST_TEXT = 100_000;
const MOST_MATCHES = 1_000;

const TrialSchema = Type.Object(
  { text: Type.String({ maxLength: LONGEST_TEXT, description: 'The text of a user message' }) },
  { ...closed, $id: 'TestGuardrail' },
);

const TrialReply = Type.Object(
  {
    data: Type.Object({
      blocked: Type.Boolean({ description: 'A request with this text would be refused' }),
      text: Type.String({ description: 'The text that a model would get; not sent if blocked' }),
      matches: Type.Array(
        Type.Object({
          filter: Type.String({ description: 'Slug of a built-in filter, or the pattern' }),
          action: Type.String(),
          label: Type.String(),
          start: Type.Integer({ description: 'Offset in UTF-16 units' }),
          end: Type.Integer({ description: 'Not included' }),
        }),
        { maxItems: MOST_MATCHES },
      ),
    }),
  },
  { $id: 'TestedGuardrail' },
);

/** Reads `parts` only while handling a request. */
export function testGuardrail(parts: GuardrailParts): Operation<Caller> {
  return {
    id: 'testGuardrail',
    method: 'POST',
    path: '/guardrails/{id}/test',
    summary: "Test which of a guardrail's request filters a text would trigger; nothing is sent or stored",
    tag: 'Guardrails',
    access: MANAGEMENT,
    params: GuardrailParamsSchema,
    body: { schema: TrialSchema },
    replies: ok('The matches, in the order of the text', TrialReply),
    async handle(exchange) {
      const { database, clock } = parts;
      const { text } = exchange.body as Static<typeof TrialSchema>;
      const { id, rules } = await existingGuardrail(database, exchange.caller.organizationId, idOf(exchange));
      const filters = await Filters.of([{ guardrailId: id, via: 'api-key', rules }]);
      const matches = filters?.matches(text, true, new Effort(clock)) ?? [];
      const data = {
        blocked: matches.some(({ filter }) => filter.action === 'block'),
        text: replaced(text, matches),
        matches: matches
          .toSorted((a, b) => a.start - b.start || a.filter.rank - b.filter.rank)
          .slice(0, MOST_MATCHES)
          .map(({ filter: { shownName, action, label }, start, end }) => ({
            filter: shownName,
            action,
            label,
            start,
            end,
          })),
      };
      exchange.reply(200, { data });
    },
  };
}
