/** Wire schemas of `/messages/batches`. */
import { Type } from 'typebox';
import { closed, nullable } from '../../http/contract.ts';

const count = Type.Integer({ minimum: 0 });
const time = Type.String({ description: 'ISO 8601' });

export const CreateMessageBatchBody = Type.Object(
  {
    requests: Type.Array(
      Type.Object(
        {
          custom_id: Type.String({ minLength: 1, maxLength: 256, description: 'Unique within the batch' }),
          params: Type.Object({}, { description: 'A request of `POST /messages`, with its model, without `stream`' }),
        },
        closed,
      ),
      { minItems: 1 },
    ),
  },
  { ...closed, $id: 'CreateMessageBatchRequest' },
);

export const MessageBatch = Type.Object(
  {
    id: Type.String({ description: '`msgbatch_...`' }),
    type: Type.Literal('message_batch'),
    processing_status: Type.Enum(['in_progress', 'canceling', 'ended']),
    request_counts: Type.Object(
      { processing: count, succeeded: count, errored: count, canceled: count, expired: count },
      { description: 'All requests count as `processing` until the batch has ended' },
    ),
    created_at: time,
    expires_at: Type.String({ description: 'Requests that have not begun by then do not run' }),
    ended_at: nullable(time),
    cancel_initiated_at: nullable(time),
    archived_at: nullable(Type.String({ description: 'Since when the results are no longer kept' })),
    results_url: nullable(Type.String({ description: 'Set once the batch has ended' })),
  },
  { $id: 'MessageBatch' },
);

export const MessageBatchPage = Type.Object(
  {
    data: Type.Array(MessageBatch),
    has_more: Type.Boolean(),
    first_id: nullable(Type.String()),
    last_id: nullable(Type.String()),
  },
  { $id: 'MessageBatchPage' },
);

export const MessageBatchResult = Type.Object(
  {
    custom_id: Type.String(),
    result: Type.Union([
      Type.Object({ type: Type.Literal('succeeded'), message: Type.Object({}, { description: 'A message' }) }),
      Type.Object({
        type: Type.Literal('errored'),
        error: Type.Object({}, { description: 'An error of `/messages`' }),
      }),
      Type.Object({ type: Type.Enum(['canceled', 'expired']) }),
    ]),
  },
  { $id: 'MessageBatchResult' },
);

export const MessageBatchDeleted = Type.Object(
  { id: Type.String(), type: Type.Literal('message_batch_deleted') },
  { $id: 'MessageBatchDeleted' },
);

export const DEFAULT_PAGE = 20;
const cursor = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 64, description }));

export const ListMessageBatchesQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: DEFAULT_PAGE })),
  after_id: cursor('Batches older than this one'),
  before_id: cursor('The batches that are just newer than this one'),
});

export const MessageBatchParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) });
