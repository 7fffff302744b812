/** Fields that are silently dropped, for which formats, and why that is right. */
import type { FormatId } from '../../formats/conversation/conversation.ts';

export interface Reason {
  formats: readonly FormatId[] | 'all';
  why: string;
}

export const SILENT: Readonly<Record<'chat' | 'messages' | 'responses' | 'gemini', Readonly<Record<string, Reason>>>> =
  {
    chat: {
      'an unknown field of a message': {
        formats: ['cohere', 'converse', 'gemini', 'messages', 'responses'],
        why: 'only its own format could know what it means',
      },
      'an unknown field of a part': {
        formats: ['cohere', 'converse', 'gemini', 'messages', 'responses'],
        why: 'only its own format could know what it means',
      },
      'an unknown field of a tool': {
        formats: ['cohere', 'converse', 'gemini', 'messages', 'responses'],
        why: 'only its own format could know what it means',
      },
      'content.text.cache_control': {
        formats: ['chat', 'responses'],
        why: 'a hint for prompt caches, which these services fill unasked',
      },
      'content.text.prompt_cache_breakpoint': {
        formats: ['responses'],
        why: 'a hint for prompt caches, which these services fill unasked',
      },
      'tools.cache_control': {
        formats: ['chat', 'responses'],
        why: 'a hint for prompt caches, which these services fill unasked',
      },
      cache_control: {
        formats: ['chat', 'responses'],
        why: 'a hint for prompt caches, which these services fill unasked',
      },
      'messages.assistant.model': {
        formats: ['cohere', 'converse', 'gemini', 'messages', 'responses'],
        why: 'tells the client who wrote the message; the model need not know',
      },
      'messages.assistant.reasoning': {
        formats: ['chat'],
        why: 'a server of unknown make may refuse earlier thinking, and a model does without',
      },
      'reasoning.encrypted': {
        formats: ['chat'],
        why: 'a server of unknown make may refuse earlier thinking, and a model does without',
      },
      'reasoning.server_tool_call': {
        formats: ['chat'],
        why: 'a server of unknown make may refuse earlier thinking, and a model does without',
      },
      'reasoning.summary part': {
        formats: ['chat'],
        why: 'a server of unknown make may refuse earlier thinking, and a model does without',
      },
      'reasoning.text signed': {
        formats: ['chat'],
        why: 'a server of unknown make may refuse earlier thinking, and a model does without',
      },
      'reasoning.exclude': { formats: ['cohere'], why: 'the gateway leaves the thinking out of the answer' },
      include_reasoning: {
        formats: ['cohere', 'converse', 'messages', 'responses'],
        why: 'the gateway leaves the thinking out of the answer',
      },
      'reasoning.summary': {
        formats: ['cohere', 'converse', 'gemini', 'messages'],
        why: 'these services choose themselves how they sum up their thinking',
      },
      'tool message.name': { formats: ['gemini'], why: 'the name stands there anyway: it is that of the call' },
      debug: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      max_tool_calls: { formats: 'all', why: 'bounds the server tools, which the gateway runs itself' },
      metadata: { formats: 'all', why: 'stays with the generation' },
      models: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      provider: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      session_id: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      stream_options: { formats: 'all', why: 'says how our own stream is told' },
      trace: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      user: { formats: 'all', why: 'services get a keyed hash, of the account where nobody is named' },
    },
    messages: {
      'an unknown field of a block': {
        formats: ['chat', 'cohere', 'converse', 'gemini', 'responses'],
        why: 'only its own format could know what it means',
      },
      'an unknown field of a message': {
        formats: ['chat', 'cohere', 'converse', 'gemini', 'responses'],
        why: 'only its own format could know what it means',
      },
      'document.citations': { formats: ['cohere'], why: 'the format cites its documents unless it is told not to' },
      'metadata.user_id': { formats: 'all', why: 'services get a keyed hash, of the account where nobody is named' },
      'system.cache_control': {
        formats: ['chat', 'responses'],
        why: 'a hint for prompt caches, which these services fill unasked',
      },
      'text.cache_control': {
        formats: ['chat', 'responses'],
        why: 'a hint for prompt caches, which these services fill unasked',
      },
      cache_control: {
        formats: ['chat', 'responses'],
        why: 'a hint for prompt caches, which these services fill unasked',
      },
      'text.citations': {
        formats: ['chat', 'responses'],
        why: "places in a document of the vendor's own have no address; the text itself is there",
      },
      'thinking.adaptive': { formats: ['chat'], why: 'a model that is told nothing chooses itself, too' },
      'thinking.display': { formats: ['cohere'], why: 'the gateway leaves the thinking out of the answer' },
      'tools.defer_loading': {
        formats: ['chat', 'cohere', 'converse', 'gemini', 'responses'],
        why: 'elsewhere the tool is there from the beginning',
      },
      'tools.input_examples': {
        formats: ['chat', 'cohere', 'converse', 'gemini', 'responses'],
        why: 'the schema says what the examples show',
      },
      fallbacks: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      models: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      provider: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      session_id: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      trace: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      user: { formats: 'all', why: 'services get a keyed hash, of the account where nobody is named' },
    },
    responses: {
      'an unknown field of an item': {
        formats: ['chat', 'cohere', 'converse', 'gemini', 'messages'],
        why: 'only its own format could know what it means',
      },
      'input.annotations': { formats: ['chat'], why: 'sources of an earlier answer; the text itself is there' },
      'input.phase': {
        formats: ['chat', 'cohere', 'converse', 'gemini', 'messages'],
        why: 'tells the client what a message is for; the text itself is there',
      },
      'reasoning.summary': {
        formats: ['cohere', 'converse', 'gemini', 'messages'],
        why: 'these services choose themselves how they sum up their thinking',
      },
      cache_control: { formats: ['chat'], why: 'a hint for prompt caches, which these services fill unasked' },
      metadata: { formats: 'all', why: 'stays with the generation' },
      models: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      provider: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      session_id: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      trace: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      safety_identifier: { formats: 'all', why: 'services get a keyed hash, of the account where nobody is named' },
      user: {
        formats: ['chat', 'cohere', 'converse', 'gemini', 'messages'],
        why: 'services get a keyed hash, of the account where nobody is named',
      },
    },
    gemini: {
      'an unknown field of a content': {
        formats: ['chat', 'cohere', 'converse', 'messages', 'responses'],
        why: 'only its own format could know what it means',
      },
      'an unknown field of a part': {
        formats: ['chat', 'cohere', 'converse', 'messages', 'responses'],
        why: 'only its own format could know what it means',
      },
      'functionCallingConfig.allowedFunctionNames': {
        formats: ['cohere'],
        why: 'the only function of a request is the one that has to be called',
      },
      'functionCallingConfig.mode VALIDATED': {
        formats: ['chat', 'cohere', 'converse', 'messages', 'responses'],
        why: 'these services check calls against the schema, or cannot be asked to',
      },
      'functionDeclarations.behavior': {
        formats: ['chat', 'cohere', 'converse', 'messages', 'responses'],
        why: 'says how a live session waits for results; a request has them all',
      },
      'functionDeclarations.response': {
        formats: ['chat', 'cohere', 'converse', 'messages', 'responses'],
        why: 'the result itself shows what a function returns',
      },
      'functionResponse.willContinue': {
        formats: ['chat', 'cohere', 'converse', 'messages', 'responses'],
        why: 'says how a live session waits for results; a request has them all',
      },
      'thinkingConfig.includeThoughts': { formats: ['chat'], why: 'a model that is told nothing chooses itself, too' },
      videoMetadata: {
        formats: ['chat', 'converse', 'responses'],
        why: 'these services choose themselves what they look at in a video',
      },
      max_tool_calls: { formats: 'all', why: 'bounds the server tools, which the gateway runs itself' },
      metadata: { formats: 'all', why: 'stays with the generation' },
      models: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      provider: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      session_id: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      trace: { formats: 'all', why: 'read by the gateway itself; no service sees it' },
      user: { formats: 'all', why: 'services get a keyed hash where their format has a member for it' },
    },
  };
