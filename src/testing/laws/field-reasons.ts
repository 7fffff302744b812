/** Fields that are silently dropped, for which formats, and why that is right. */
import type { FormatId } from '../../formats/conversation/conversation.ts';

export interface Reason {
  forms: readonly FormatId[] | 'all';
  why: string;
}

export const SILENT: Readonly<Record<'chat' | 'messages' | 'responses', Readonly<Record<string, Reason>>>> = {
  chat: {
    'an unknown field of a message': {
      forms: ['cohere', 'converse', 'gemini', 'messages', 'responses'],
      why: 'only its own form could know what it means',
    },
    'an unknown field of a part': {
      forms: ['cohere', 'converse', 'gemini', 'messages', 'responses'],
      why: 'only its own form could know what it means',
    },
    'an unknown field of a tool': {
      forms: ['cohere', 'converse', 'gemini', 'messages', 'responses'],
      why: 'only its own form could know what it means',
    },
    'content.text.cache_control': {
      forms: ['chat', 'responses'],
      why: 'a hint for prompt caches, which these services fill unasked',
    },
    'content.text.prompt_cache_breakpoint': {
      forms: ['responses'],
      why: 'a hint for prompt caches, which these services fill unasked',
    },
    'tools.cache_control': {
      forms: ['chat', 'responses'],
      why: 'a hint for prompt caches, which these services fill unasked',
    },
    cache_control: { forms: ['chat', 'responses'], why: 'a hint for prompt caches, which these services fill unasked' },
    'messages.assistant.model': {
      forms: ['cohere', 'converse', 'gemini', 'messages', 'responses'],
      why: 'tells the client who wrote the message; the model need not know',
    },
    'messages.assistant.reasoning': {
      forms: ['chat'],
      why: 'a server of unknown make may refuse earlier thinking, and a model does without',
    },
    'reasoning.encrypted': {
      forms: ['chat'],
      why: 'a server of unknown make may refuse earlier thinking, and a model does without',
    },
    'reasoning.server_tool_call': {
      forms: ['chat'],
      why: 'a server of unknown make may refuse earlier thinking, and a model does without',
    },
    'reasoning.summary part': {
      forms: ['chat'],
      why: 'a server of unknown make may refuse earlier thinking, and a model does without',
    },
    'reasoning.text signed': {
      forms: ['chat'],
      why: 'a server of unknown make may refuse earlier thinking, and a model does without',
    },
    'reasoning.exclude': { forms: ['cohere'], why: 'the gateway leaves the thinking out of the answer' },
    include_reasoning: {
      forms: ['cohere', 'converse', 'messages', 'responses'],
      why: 'the gateway leaves the thinking out of the answer',
    },
    'reasoning.summary': {
      forms: ['cohere', 'converse', 'gemini', 'messages'],
      why: 'these services choose themselves how they sum up their thinking',
    },
    'tool message.name': { forms: ['gemini'], why: 'the name stands there anyway: it is that of the call' },
    debug: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    max_tool_calls: { forms: 'all', why: 'bounds tools that the gateway runs, of which a request cannot ask yet' },
    metadata: { forms: 'all', why: 'stays with the generation' },
    models: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    provider: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    session_id: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    stream_options: { forms: 'all', why: 'says how our own stream is told' },
    trace: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    user: { forms: 'all', why: 'services get a keyed hash, of the account where nobody is named' },
  },
  messages: {
    'an unknown field of a block': {
      forms: ['chat', 'cohere', 'converse', 'gemini', 'responses'],
      why: 'only its own form could know what it means',
    },
    'an unknown field of a message': {
      forms: ['chat', 'cohere', 'converse', 'gemini', 'responses'],
      why: 'only its own form could know what it means',
    },
    'document.citations': { forms: ['cohere'], why: 'the form cites its documents unless it is told not to' },
    'metadata.user_id': { forms: 'all', why: 'services get a keyed hash, of the account where nobody is named' },
    'system.cache_control': {
      forms: ['chat', 'responses'],
      why: 'a hint for prompt caches, which these services fill unasked',
    },
    'text.cache_control': {
      forms: ['chat', 'responses'],
      why: 'a hint for prompt caches, which these services fill unasked',
    },
    cache_control: { forms: ['chat', 'responses'], why: 'a hint for prompt caches, which these services fill unasked' },
    'text.citations': {
      forms: ['chat', 'responses'],
      why: "places in a document of the vendor's own have no address; the text itself is there",
    },
    'thinking.adaptive': { forms: ['chat'], why: 'a model that is told nothing chooses itself, too' },
    'thinking.display': { forms: ['cohere'], why: 'the gateway leaves the thinking out of the answer' },
    'tools.defer_loading': {
      forms: ['chat', 'cohere', 'converse', 'gemini', 'responses'],
      why: 'elsewhere the tool is there from the beginning',
    },
    'tools.input_examples': {
      forms: ['chat', 'cohere', 'converse', 'gemini', 'responses'],
      why: 'the schema says what the examples show',
    },
    fallbacks: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    models: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    provider: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    session_id: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    trace: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    user: { forms: 'all', why: 'services get a keyed hash, of the account where nobody is named' },
  },
  responses: {
    'an unknown field of an item': {
      forms: ['chat', 'cohere', 'converse', 'gemini', 'messages'],
      why: 'only its own form could know what it means',
    },
    'input.annotations': { forms: ['chat'], why: 'sources of an earlier answer; the text itself is there' },
    'input.phase': {
      forms: ['chat', 'cohere', 'converse', 'gemini', 'messages'],
      why: 'tells the client what a message is for; the text itself is there',
    },
    'reasoning.summary': {
      forms: ['cohere', 'converse', 'gemini', 'messages'],
      why: 'these services choose themselves how they sum up their thinking',
    },
    cache_control: { forms: ['chat'], why: 'a hint for prompt caches, which these services fill unasked' },
    metadata: { forms: 'all', why: 'stays with the generation' },
    models: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    provider: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    session_id: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    trace: { forms: 'all', why: 'read by the gateway itself; no service sees it' },
    safety_identifier: { forms: 'all', why: 'services get a keyed hash, of the account where nobody is named' },
    user: {
      forms: ['chat', 'cohere', 'converse', 'gemini', 'messages'],
      why: 'services get a keyed hash, of the account where nobody is named',
    },
  },
};
