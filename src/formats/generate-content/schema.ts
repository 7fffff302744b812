/** Schemas of `generateContent`: open, naming what has an effect. `request.ts` checks what they cannot express. */
import { Type } from 'typebox';
import { Charged, Count, open } from '../conversation/reply-schema.ts';

const Part = Type.Object({}, { ...open, $id: 'GeminiPart' });

const Content = Type.Object(
  { role: Type.Optional(Type.String({ description: '`user` or `model`' })), parts: Type.Optional(Type.Array(Part)) },
  { ...open, $id: 'GeminiContent' },
);

export const schema = Type.Object(
  {
    contents: Type.Array(Content, { minItems: 1 }),
    systemInstruction: Type.Optional(Content),
    tools: Type.Optional(Type.Array(Type.Object({}, open))),
    toolConfig: Type.Optional(Type.Object({}, open)),
    generationConfig: Type.Optional(Type.Object({}, open)),
    safetySettings: Type.Optional(
      Type.Array(Type.Object({}, open), { description: 'For models at Google; has no effect elsewhere' }),
    ),
  },
  { ...open, $id: 'GenerateContentRequest' },
);

const Candidate = Type.Object({ index: Count, content: Content, finishReason: Type.Optional(Type.String()) }, open);

export const ContentReply = Type.Object(
  {
    candidates: Type.Array(Candidate),
    usageMetadata: Type.Optional(Type.Object({ promptTokenCount: Count, totalTokenCount: Count, ...Charged }, open)),
    modelVersion: Type.String(),
    responseId: Type.String({ description: '`gen-...`' }),
  },
  { ...open, $id: 'GenerateContentResponse' },
);

export const ContentEvents = {
  schema: ContentReply,
  description: 'With `alt=sse`; without it the same events are the elements of a JSON list.',
};

export const GoogleErrorSchema = Type.Object(
  {
    error: Type.Object(
      { code: Type.Integer({ description: 'The HTTP status' }), message: Type.String(), status: Type.String() },
      open,
    ),
  },
  { ...open, $id: 'GoogleError' },
);
