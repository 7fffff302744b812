/** The operations of the format, with their reply for the OpenAPI document. */
import { Type } from 'typebox';
import type { ServedOperation } from '../conversation/format.ts';
import { Charged, Count, open } from '../conversation/reply-schema.ts';
import { UNSERVED_METHODS } from './unserved.ts';

const Candidate = Type.Object(
  { index: Count, content: Type.Object({}, open), finishReason: Type.Optional(Type.String()) },
  open,
);

const ContentReply = Type.Object(
  {
    candidates: Type.Optional(Type.Array(Candidate)),
    usageMetadata: Type.Optional(Type.Object({ promptTokenCount: Count, totalTokenCount: Count, ...Charged }, open)),
    modelVersion: Type.String(),
    responseId: Type.String({ description: '`gen-...`' }),
  },
  { ...open, $id: 'GenerateContentResponse' },
);

const GoogleError = Type.Object(
  {
    error: Type.Object(
      { code: Type.Integer({ description: 'The HTTP status' }), message: Type.String(), status: Type.String() },
      open,
    ),
  },
  { ...open, $id: 'GoogleError' },
);

const DESCRIPTION =
  'The last event has the finish reasons. Without `alt=sse` the events are the elements of a JSON list.';

export const operation: ServedOperation = {
  id: 'generateContent',
  path: '/models',
  summary: 'Generate content (Gemini format)',
  reply: ContentReply,
  events: { schema: ContentReply, description: DESCRIPTION },
  errorSchema: GoogleError,
  inPath: {
    roots: [{ path: '/v1beta', suffix: 'Beta' }],
    methods: { generateContent: { stream: false }, streamGenerateContent: { stream: true } },
    unserved: UNSERVED_METHODS,
    eventsAs: 'sse',
  },
};
