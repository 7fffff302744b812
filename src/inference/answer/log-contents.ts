/** Decides which requests' inputs and outputs are logged, and builds them for `GET /generation/content`. */
import { stringifyJson } from '../../base/json.ts';
import type { LoggedContent } from '../../formats/conversation/logged-content.ts';
import type { Transcripts } from '../../transcripts/index.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';
import type { AnswerListener, Ended } from './listener.ts';
import { shortened } from './shorten.ts';

/** Sets the request up for content logging if a rule applies. Costs one lookup otherwise. */
export function logContents(context: RequestContext, { transcripts }: InferenceParts): void {
  const rule = transcripts?.ruleFor(context.request.caller);
  if (rule === undefined) return;
  const listener = new ContentListener(context, rule.maxBytes, transcripts!);
  context.logged = { maxBytes: rule.maxBytes, take: (units) => listener.take(units) };
  context.addListener(listener);
}

class ContentListener implements AnswerListener {
  readonly #context: RequestContext;
  readonly #request: AcceptedRequest;
  readonly #maxBytes: number;
  readonly #transcripts: Transcripts;
  /** Units taken from the shared buffer of running answers. */
  #taken = 0;

  constructor(context: RequestContext, maxBytes: number, transcripts: Transcripts) {
    this.#context = context;
    this.#request = context.request;
    this.#maxBytes = maxBytes;
    this.#transcripts = transcripts;
  }

  take(units: number): boolean {
    if (!this.#transcripts.memory.take(units)) return false;
    this.#taken += units;
    return true;
  }

  ended({ row, transcript, error }: Ended): void {
    this.#transcripts.memory.release(this.#taken);
    this.#taken = 0;
    const { document, format } = this.#request;
    if (!this.#transcripts.hasRoom(document.bytes.length)) return;
    const contents = {
      input: inputOf(format.loggedContent(document), this.#maxBytes),
      output: stringifyJson({
        completion: transcript?.completion || null,
        reasoning: transcript?.reasoning || null,
        ...(transcript && transcript.calls.length > 0 && { tool_calls: transcript.calls }),
        ...(transcript?.truncated && { truncated: true }),
      }),
    };
    this.#context.contents = contents;
    this.#transcripts.keep({
      id: row.id,
      createdAt: row.createdAt,
      keyId: row.keyId,
      workspaceId: row.workspaceId,
      organizationId: row.organizationId,
      ...contents,
      error: error === null ? null : stringifyJson(errorOf(error.message, error.status, error.details.metadata ?? {})),
    });
  }
}

/** The `error` member of `GET /generation/content`. */
function errorOf(message: string, status: number, metadata: Readonly<Record<string, unknown>>) {
  const earlier = Array.isArray(metadata['previous_errors']) ? (metadata['previous_errors'] as unknown[]) : [];
  return {
    message,
    status,
    provider_name: textOrNull(metadata['provider_name']),
    raw: rawText(metadata['raw']),
    previous_errors: earlier.map((entry) => {
      const { code, message: text, provider_name: provider, raw } = entry as Record<string, unknown>;
      return { code, message: text, provider_name: textOrNull(provider), raw: rawText(raw) };
    }),
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function rawText(value: unknown): string | null {
  return value === undefined || value === null ? null : typeof value === 'string' ? value : stringifyJson(value);
}

/**
 * JSON of `{messages}`, or of `{prompt}` for formats without messages. A system prompt or instructions outside of the
 * messages become the first message, with the role system.
 */
function inputOf(content: LoggedContent, maxLength: number): string {
  if ('prompt' in content) return stringifyJson({ prompt: shortened(content.prompt, maxLength) });
  const { messages, system } = content;
  if (messages.length + (system?.length ?? 0) > maxLength) {
    const value = JSON.parse(messages) as unknown;
    const listed: unknown[] = Array.isArray(value) ? value : [{ role: 'user', content: value }];
    const led = system === undefined ? listed : [{ role: 'system', content: JSON.parse(system) as unknown }, ...listed];
    return stringifyJson({ messages: shortened(led, maxLength) });
  }
  const list = messages.startsWith('[') ? messages : `[{"role":"user","content":${messages}}]`;
  if (system === undefined || system === 'null') return `{"messages":${list}}`;
  const rest = list.slice(1).trimStart();
  return `{"messages":[{"role":"system","content":${system}}${rest.startsWith(']') ? '' : ','}${rest}}`;
}
