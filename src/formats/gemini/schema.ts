/**
 * The request body of `generateContent`: an open schema that names what has an effect. `check.ts` reads the rest, since
 * members may be written in two ways.
 */
import { type TSchema, Type } from 'typebox';
import { optional, word } from '../conversation/loose-schema.ts';
import { PreferencesSchema } from '../conversation/preferences.ts';
import { open } from '../conversation/reply-schema.ts';
import { featureMembers } from '../server-tools/index.ts';

const Part = Type.Object({}, { ...open, $id: 'GeminiPart' });

const Content = Type.Object(
  {
    role: optional(Type.String({ description: '`user` or `model`' })),
    parts: Type.Optional(Type.Unsafe({ type: ['array', 'object', 'null'], items: Part })),
  },
  { ...open, $id: 'GeminiContent' },
);

export const schema: TSchema = Type.Object(
  {
    contents: Type.Array(Content, { minItems: 1 }),
    systemInstruction: optional(Type.Object({}, open)),
    tools: optional(
      Type.Array(Type.Object({}, open), {
        description: '`functionDeclarations`, tools that run at Google, or `{type}` of a server tool',
      }),
    ),
    toolConfig: optional(Type.Object({}, open)),
    generationConfig: optional(Type.Object({}, open)),
    safetySettings: optional(
      Type.Array(Type.Object({}, open), { description: 'For models at Google; has no effect elsewhere' }),
    ),
    serviceTier: optional(Type.String()),
    model: optional(Type.String({ description: 'The path names the model' })),
    models: optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })),
    provider: optional(PreferencesSchema),
    route: optional(word(['fallback', 'sort'])),
    stream: optional(Type.Boolean({ description: 'The path says whether the reply is streamed' })),
    user: optional(Type.String()),
    session_id: optional(Type.String({ maxLength: 256 })),
    metadata: optional(Type.Record(Type.String(), Type.String({ maxLength: 512 }), { maxProperties: 16 })),
    trace: optional(Type.Object({})),
    preset: optional(Type.String()),
    max_tool_calls: optional(Type.Integer({ minimum: 0 })),
    ...featureMembers,
  },
  { ...open, $id: 'GenerateContentRequest' },
);
