/**
 * Finish reasons of all services. Compatible servers mix the words of all formats and vary their case. A format with
 * its own table tries that first.
 */
import type { FinishReason } from './conversation.ts';

/** Keys in lower case with underscores. A map, not an object: an upstream may send `constructor`. */
const WORDS = new Map<string, FinishReason>(
  Object.entries({
    stop: 'stop',
    stopped: 'stop',
    eos: 'stop',
    eos_token: 'stop',
    end: 'stop',
    end_turn: 'stop',
    pause_turn: 'stop',
    compaction: 'stop',
    complete: 'stop',
    completed: 'stop',
    stop_sequence: 'stop',
    length: 'length',
    max_length: 'length',
    max_tokens: 'length',
    max_output_tokens: 'length',
    max_new_tokens: 'length',
    token_limit: 'length',
    model_length: 'length',
    model_context_window_exceeded: 'length',
    tool_calls: 'tool_calls',
    tool_call: 'tool_calls',
    tool_use: 'tool_calls',
    function_call: 'tool_calls',
    content_filter: 'content_filter',
    content_filtered: 'content_filter',
    error_toxic: 'content_filter',
    guardrail_intervened: 'content_filter',
    sensitive: 'content_filter',
    safety: 'content_filter',
    recitation: 'content_filter',
    blocklist: 'content_filter',
    prohibited_content: 'content_filter',
    spii: 'content_filter',
    refusal: 'content_filter',
    error: 'error',
    network_error: 'error',
    // The service broke off (api-docs.deepseek.com/api/create-chat-completion); vLLM and SGLang aborted the request.
    insufficient_system_resource: 'error',
    abort: 'error',
    aborted: 'error',
  }),
);

/** The unified reason for a vendor's word, in any case and with any separators; undefined for an unknown word. */
export function unifiedWord(native: string | null): FinishReason | undefined {
  if (native === null) return undefined;
  return WORDS.get(native) ?? WORDS.get(native.toLowerCase().replaceAll(/[- ]/g, '_'));
}

/**
 * The meaning of an unknown finish reason: `stop` if the answer has content, `error` otherwise. A missing reason is
 * `stop`.
 */
export function unknownEnd(native: string | null, content: boolean): 'stop' | 'error' {
  return native === null || content ? 'stop' : 'error';
}
