/** `GET /generation/content` and `POST /generation/feedback`. */
import { type Static, Type } from 'typebox';
import type { Caller } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import { storable } from '../base/storable.ts';
import { ANY_KEY, MANAGEMENT } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import type { Database } from '../storage/database.ts';
import { FeedbackBody, FeedbackReply, GenerationContent } from './schema.ts';
import { keepFeedback } from './store.ts';
import type { Transcripts } from './transcripts.ts';

export interface TranscriptOperationParts {
  transcripts: Transcripts;
  database: Database;
  clock: Clock;
  /** Whether the organization has such a generation. */
  hasGeneration(id: string, organizationId: string): Promise<boolean>;
}

export function transcriptOperations(parts: TranscriptOperationParts): Operation<Caller>[] {
  return [content(parts), feedback(parts)];
}

function content(parts: TranscriptOperationParts): Operation<Caller> {
  return {
    id: 'getGenerationContent',
    method: 'GET',
    path: '/generation/content',
    summary: 'Get the logged input and output of one generation',
    tag: 'Generations',
    access: ANY_KEY,
    query: Type.Object({
      id: Type.String({ minLength: 1, description: 'The id of the generation, `gen-...` or `resp_...`' }),
    }),
    errors: [404],
    replies: ok('Input and output', GenerationContent),
    async handle(exchange) {
      const { caller } = exchange;
      const found = await parts.transcripts.find(generationOf(exchange.query['id'] as string));
      if (found === undefined || found.organizationId !== caller.organizationId) {
        throw new GatewayError('not_found', 'no content is stored for this generation', { path: 'id' });
      }
      if (caller.kind === 'inference' && found.keyId !== caller.keyId) {
        throw new GatewayError('permission_denied', 'this generation belongs to another key', { path: 'id' });
      }
      exchange.reply(200, {
        data: {
          input: parseJson(found.input, Number.POSITIVE_INFINITY),
          output: parseJson(found.output),
          error: found.error === null ? null : parseJson(found.error),
        },
      });
    },
  };
}

function feedback(parts: TranscriptOperationParts): Operation<Caller> {
  return {
    id: 'submitGenerationFeedback',
    method: 'POST',
    path: '/generation/feedback',
    summary: 'Submit feedback on a generation; the latest per category wins',
    tag: 'Generations',
    access: MANAGEMENT,
    body: { schema: FeedbackBody },
    errors: [404],
    replies: ok('The feedback is stored', FeedbackReply),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const given = exchange.body as Static<typeof FeedbackBody>;
      const comment = storable('comment', given.comment ?? null);
      const generationId = generationOf(given.generation_id);
      if (!(await parts.hasGeneration(generationId, organizationId))) {
        throw new GatewayError('not_found', 'no such generation', { path: 'generation_id' });
      }
      await keepFeedback(parts.database, {
        generationId,
        organizationId,
        category: given.category,
        comment,
        createdAt: parts.clock.now(),
      });
      exchange.reply(200, { data: { success: true } });
    },
  };
}

function generationOf(id: string): string {
  return id.replace(/^resp_/, 'gen-');
}
