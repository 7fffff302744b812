/** Wire schemas of batches as OpenAI's clients know them. */
import { Type } from 'typebox';
import { EXPIRY_SECONDS } from '../../files/index.ts';
import { closed, nullable } from '../../http/contract.ts';
import { BATCH_ENDPOINTS, BATCH_STATES } from '../batch.ts';

const count = Type.Integer({ minimum: 0 });
const time = nullable(Type.Integer({ description: 'Unix seconds' }));
const Endpoint = Type.Enum([...BATCH_ENDPOINTS]);

export const METADATA = { pairs: 16, keyLength: 64, valueLength: 512 };

export const CreateFileBatchBody = Type.Object(
  {
    input_file_id: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'A file with the purpose `batch`; its lines have `custom_id`, `method`, `url` and `body`',
    }),
    endpoint: Endpoint,
    completion_window: Type.Optional(Type.Literal('24h')),
    metadata: Type.Optional(
      nullable(
        Type.Record(Type.String(), Type.String({ maxLength: METADATA.valueLength }), {
          maxProperties: METADATA.pairs,
          description: `Keys have at most ${METADATA.keyLength} characters`,
        }),
      ),
    ),
    output_expires_after: Type.Optional(
      nullable(
        Type.Object(
          { anchor: Type.Literal('created_at'), seconds: Type.Integer(EXPIRY_SECONDS) },
          { ...closed, description: 'Of the files with the results, after their creation; default 30 days' },
        ),
      ),
    ),
  },
  { ...closed, $id: 'CreateFileBatchRequest' },
);

const InputErrors = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      code: Type.String(),
      line: nullable(Type.Integer({ description: 'From 1' })),
      message: Type.String(),
      param: nullable(Type.String()),
    }),
  ),
});

export const OpenaiBatch = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('batch'),
    endpoint: Endpoint,
    model: Type.Optional(Type.String({ description: 'If all requests name the same' })),
    errors: nullable(InputErrors),
    input_file_id: nullable(Type.String({ description: 'Null if the requests did not come from a file' })),
    completion_window: Type.Literal('24h'),
    status: Type.Enum([...BATCH_STATES]),
    output_file_id: nullable(Type.String({ description: 'The responses' })),
    error_file_id: nullable(Type.String({ description: 'The errors' })),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    in_progress_at: time,
    expires_at: Type.Integer({ description: 'Unix seconds' }),
    finalizing_at: time,
    completed_at: time,
    failed_at: time,
    expired_at: time,
    cancelling_at: time,
    cancelled_at: time,
    request_counts: Type.Object({ total: count, completed: count, failed: count }),
    usage: Type.Object({
      input_tokens: count,
      input_tokens_details: Type.Object({ cached_tokens: count }),
      output_tokens: count,
      output_tokens_details: Type.Object({ reasoning_tokens: count }),
      total_tokens: count,
    }),
    metadata: nullable(Type.Record(Type.String(), Type.String())),
  },
  { $id: 'OpenaiBatch' },
);
