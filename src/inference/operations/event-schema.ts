/** Stream events and error statuses of the inference operations, for the OpenAPI document. */
import { Type } from 'typebox';
import { ENDS_WITH_DONE } from '../../formats/conversation/reply-schema.ts';

/** Budgets, models, upstream refusals, rate limits, and upstreams that fail, time out or are overloaded. */
export const INFERENCE_ERRORS = [402, 404, 422, 429, 502, 504, 529];

const open = { additionalProperties: true } as const;

const CompletionChunk = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('text_completion'),
    created: Type.Integer({ description: 'Unix seconds' }),
    model: Type.String(),
    choices: Type.Array(Type.Object({ index: Type.Integer({ minimum: 0 }), text: Type.String() }, open)),
  },
  { ...open, $id: 'CompletionChunk' },
);

const ImageEvent = Type.Object({ type: Type.String() }, { ...open, $id: 'ImageEvent' });

const TranscriptionEvent = Type.Object({ type: Type.String() }, { ...open, $id: 'TranscriptionEvent' });

export const CompletionEvents = { schema: CompletionChunk, description: ENDS_WITH_DONE };
export const ImageEvents = { schema: ImageEvent, description: ENDS_WITH_DONE };
export const TranscriptionEvents = { schema: TranscriptionEvent, description: 'Ends with `transcript.text.done`' };
