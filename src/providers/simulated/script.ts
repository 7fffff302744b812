/** The script for `simulated/script`: the JSON text of the last user message. All members are optional. */
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { closed } from '../../http/contract.ts';

const count = Type.Integer({ minimum: 0, maximum: 1_000_000_000 });
const delayMs = Type.Integer({ minimum: 0, maximum: 3_600_000 });
/** Number of stream events before it happens (0: before the first). Without streaming: before the end of the body. */
const after = Type.Integer({ minimum: 0, maximum: 1_000_000_000 });

const schema = Type.Object(
  {
    /** Text of the reply, repeated `repeat` times. */
    text: Type.Optional(Type.String()),
    repeat: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000_000 })),
    /** Characters per streamed event; default 16. */
    chunk_size: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    /** Thinking, before the text. */
    reasoning: Type.Optional(Type.String()),
    refusal: Type.Optional(Type.String()),
    tool_calls: Type.Optional(
      Type.Array(
        Type.Object(
          {
            id: Type.Optional(Type.String()),
            name: Type.String({ minLength: 1 }),
            /** A string is sent unchanged; anything else as JSON. */
            arguments: Type.Optional(Type.Unknown()),
          },
          closed,
        ),
        { maxItems: 128 },
      ),
    ),
    /** Overrides the finish reason derived from the content. */
    finish_reason: Type.Optional(Type.String()),
    /** Overrides the counts; null: no usage is reported. */
    usage: Type.Optional(
      Type.Union([
        Type.Null(),
        Type.Object(
          {
            prompt_tokens: Type.Optional(count),
            completion_tokens: Type.Optional(count),
            cached_tokens: Type.Optional(count),
            cache_write_tokens: Type.Optional(count),
            reasoning_tokens: Type.Optional(count),
          },
          closed,
        ),
      ]),
    ),
    /** Replies with an error only. `body` is sent unchanged; default is OpenAI's envelope. */
    error: Type.Optional(
      Type.Object(
        {
          status: Type.Integer({ minimum: 200, maximum: 599 }),
          body: Type.Optional(Type.Unknown()),
          headers: Type.Optional(
            Type.Record(Type.String({ pattern: '^[a-z0-9-]{1,64}$' }), Type.String({ pattern: '^[ -~]*$' })),
          ),
        },
        closed,
      ),
    ),
    /** An error event in the stream, which ends it. */
    error_event: Type.Optional(Type.Object({ after, body: Type.Optional(Type.Unknown()) }, closed)),
    /** An event that is not JSON; the stream continues after it. */
    malformed_after: Type.Optional(after),
    /** The connection breaks. */
    cut_after: Type.Optional(after),
    /** The connection closes cleanly, but before the end marker. */
    end_after: Type.Optional(after),
    /** Nothing more is sent. */
    stall_after: Type.Optional(after),
    delay_ms: Type.Optional(
      Type.Object(
        {
          /** Before the status and headers. */
          headers: Type.Optional(delayMs),
          /** Before each event. */
          chunks: Type.Optional(delayMs),
        },
        closed,
      ),
    ),
  },
  closed,
);

export type Script = Static<typeof schema>;

const validator = Compile(schema);

/** The parsed script, or a description of the problem. */
export function parseScript(text: string): Script | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'the last user message must be a script in JSON';
  }
  if (validator.Check(value)) return value;
  const error = validator.Errors(value).find(({ keyword }) => keyword !== 'boolean')!;
  const place = error.instancePath.slice(1).replaceAll('/', '.') || 'it';
  const names = error.keyword === 'additionalProperties' ? `: ${error.params.additionalProperties.join(', ')}` : '';
  return `the script is invalid: ${place} ${error.message}${names}`;
}
