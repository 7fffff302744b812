/**
 * A request for each field of the served formats, and, if the field needs other fields, the same request without it. The
 * values differ from the services' defaults.
 */
type Body = Record<string, unknown>;
export type Sample = readonly [given: Body, without?: Body];
export type Samples = Readonly<Record<string, Sample>>;

const PNG = 'data:image/png;base64,iVBORw0KGgo=';
const SCHEMA = { type: 'object', properties: { a: { type: 'string' } } };

// Chat completions.

const asked = (more: Body): Body => ({ model: 'a/b', messages: [{ role: 'user', content: 'hi' }], ...more });
const said = (message: Body): Body =>
  asked({ messages: [{ role: 'user', content: 'hi' }, message, { role: 'user', content: 'go on' }] });
const part = (value: Body): Body =>
  asked({ messages: [{ role: 'user', content: [{ type: 'text', text: 'look' }, value] }] });
const CALL = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
const called = (result: Body, call: Body = {}): Body =>
  asked({
    tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }],
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [{ ...CALL, ...call }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'x', ...result },
    ],
  });
const tool = (definition: Body, more: Body = {}): Body =>
  asked({ tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA, ...definition }, ...more }] });
const detail = (value: Body): Body =>
  said({ role: 'assistant', content: 'yes', reasoning_details: [{ index: 0, ...value }] });
const ANSWERED = said({ role: 'assistant', content: 'yes' });
const tools = [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }];

export const CHAT_FIELDS: Samples = {
  audio: [asked({ modalities: ['text', 'audio'], audio: { voice: 'a', format: 'wav' } }), asked({})],
  cache_control: [asked({ cache_control: { type: 'ephemeral' } })],
  debug: [asked({ debug: { echo_upstream_body: true } })],
  frequency_penalty: [asked({ frequency_penalty: 0.5 })],
  image_config: [asked({ image_config: { aspect_ratio: '1:1' } })],
  include_reasoning: [asked({ include_reasoning: false })],
  logit_bias: [asked({ logit_bias: { 5: 1 } })],
  logprobs: [asked({ logprobs: true })],
  max_completion_tokens: [asked({ max_completion_tokens: 321 })],
  max_tokens: [asked({ max_tokens: 321 })],
  max_tool_calls: [asked({ max_tool_calls: 3 })],
  metadata: [asked({ metadata: { a: 'b' } })],
  min_p: [asked({ min_p: 0.1 })],
  modalities: [asked({ modalities: ['text', 'image'] })],
  models: [asked({ models: ['c/d'] })],
  n: [asked({ n: 2 })],
  parallel_tool_calls: [asked({ tools, parallel_tool_calls: false }), asked({ tools })],
  prediction: [asked({ prediction: { type: 'content', content: 'x' } })],
  presence_penalty: [asked({ presence_penalty: 0.5 })],
  prompt_cache_key: [asked({ prompt_cache_key: 'k' })],
  prompt_cache_options: [asked({ prompt_cache_options: { mode: 'explicit' } })],
  provider: [asked({ provider: { order: ['x'] } })],
  reasoning: [asked({ reasoning: { effort: 'high' } })],
  'reasoning.exclude': [
    asked({ reasoning: { effort: 'high', exclude: true } }),
    asked({ reasoning: { effort: 'high' } }),
  ],
  'reasoning.max_tokens': [asked({ reasoning: { max_tokens: 2_000 } })],
  'reasoning.summary': [
    asked({ reasoning: { effort: 'high', summary: 'detailed' } }),
    asked({ reasoning: { effort: 'high' } }),
  ],
  reasoning_effort: [asked({ reasoning_effort: 'low' })],
  repetition_penalty: [asked({ repetition_penalty: 1.1 })],
  'response_format.grammar': [asked({ response_format: { type: 'grammar', grammar: 'root ::= "a"' } })],
  'response_format.json_object': [asked({ response_format: { type: 'json_object' } })],
  'response_format.json_schema': [
    asked({ response_format: { type: 'json_schema', json_schema: { name: 'n', schema: SCHEMA } } }),
  ],
  'response_format.python': [asked({ response_format: { type: 'python' } })],
  seed: [asked({ seed: 7 })],
  service_tier: [asked({ service_tier: 'flex' })],
  session_id: [asked({ session_id: 's' })],
  stop: [asked({ stop: ['END'] })],
  stream_options: [asked({ stream_options: { include_usage: false } })],
  structured_outputs: [asked({ structured_outputs: true })],
  temperature: [asked({ temperature: 0.3 })],
  tool_choice: [asked({ tools, tool_choice: 'required' }), asked({ tools })],
  'tool_choice.function': [
    asked({ tools, tool_choice: { type: 'function', function: { name: 'f' } } }),
    asked({ tools }),
  ],
  tools: [asked({ tools })],
  'tools.cache_control': [tool({}, { cache_control: { type: 'ephemeral' } }), tool({})],
  'tools.description': [tool({ description: 'd' }), tool({})],
  'tools.strict': [tool({ strict: true }), tool({})],
  top_a: [asked({ top_a: 0.1 })],
  top_k: [asked({ top_k: 5 })],
  top_logprobs: [asked({ logprobs: true, top_logprobs: 3 }), asked({ logprobs: true })],
  top_p: [asked({ top_p: 0.9 })],
  trace: [asked({ trace: { trace_id: 't' } })],
  user: [asked({ user: 'u' })],
  verbosity: [asked({ verbosity: 'low' })],
  web_search_options: [asked({ web_search_options: { search_context_size: 'low' } })],
  'messages.name': [asked({ messages: [{ role: 'user', name: 'Ada', content: 'hi' }] })],
  'messages.developer': [
    asked({
      messages: [
        { role: 'developer', content: 'be kind' },
        { role: 'user', content: 'hi' },
      ],
    }),
  ],
  'messages.assistant.audio': [said({ role: 'assistant', content: 'yes', audio: { id: 'a1' } }), ANSWERED],
  'messages.assistant.images': [
    said({ role: 'assistant', content: 'yes', images: [{ type: 'image_url', image_url: { url: PNG } }] }),
    ANSWERED,
  ],
  'messages.assistant.model': [said({ role: 'assistant', content: 'yes', model: 'm' }), ANSWERED],
  'messages.assistant.reasoning': [said({ role: 'assistant', content: 'yes', reasoning: 'hm' }), ANSWERED],
  'messages.assistant.refusal': [said({ role: 'assistant', content: 'yes', refusal: 'no' }), ANSWERED],
  'messages.assistant.annotations': [
    said({
      role: 'assistant',
      content: 'yes',
      annotations: [
        { type: 'url_citation', url_citation: { url: 'https://a.example', title: 't', start_index: 0, end_index: 3 } },
      ],
    }),
    ANSWERED,
  ],
  'reasoning.encrypted': [detail({ type: 'reasoning.encrypted', data: 'x', format: 'openai-responses-v1' }), ANSWERED],
  'reasoning.server_tool_call': [
    detail({ type: 'reasoning.server_tool_call', tool_name: 't', arguments: '{}', result: 'r' }),
    ANSWERED,
  ],
  'reasoning.summary part': [detail({ type: 'reasoning.summary', summary: 's', format: 'unknown' }), ANSWERED],
  'reasoning.text signed': [
    detail({ type: 'reasoning.text', text: 't', signature: 'c2ln', format: 'anthropic-claude-v1' }),
    ANSWERED,
  ],
  'content.text.cache_control': [
    part({ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }),
    part({ type: 'text', text: 'x' }),
  ],
  'content.text.prompt_cache_breakpoint': [
    part({ type: 'text', text: 'x', prompt_cache_breakpoint: { mode: 'explicit' } }),
    part({ type: 'text', text: 'x' }),
  ],
  'content.image_url': [part({ type: 'image_url', image_url: { url: PNG } })],
  'content.image_url.detail': [
    part({ type: 'image_url', image_url: { url: PNG, detail: 'low' } }),
    part({ type: 'image_url', image_url: { url: PNG } }),
  ],
  'content.input_audio': [part({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } })],
  'content.file': [
    part({ type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' } }),
  ],
  'content.file.file_id': [part({ type: 'file', file: { file_id: 'file-1' } })],
  'content.video_url': [part({ type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } })],
  'tool message': [called({ content: 'other' }), called({})],
  'tool message.name': [called({ name: 'f' }), called({})],
  'tool call.arguments': [called({}, { function: { name: 'f', arguments: '{"a":"b"}' } }), called({})],
  'an unknown field': [asked({ something_new: 1 })],
  'an unknown field of a message': [asked({ messages: [{ role: 'user', content: 'hi', something_new: 1 }] })],
  'an unknown field of a part': [
    part({ type: 'text', text: 'x', something_new: 1 }),
    part({ type: 'text', text: 'x' }),
  ],
  'an unknown field of a tool': [tool({}, { something_new: 1 }), tool({})],
};

// Messages.

const wrote = (more: Body): Body => ({
  model: 'a/b',
  max_tokens: 4_000,
  messages: [{ role: 'user', content: 'hi' }],
  ...more,
});
const block = (value: Body): Body =>
  wrote({ messages: [{ role: 'user', content: [{ type: 'text', text: 'look' }, value] }] });
const spoke = (...content: Body[]): Body =>
  wrote({
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content },
      { role: 'user', content: 'go on' },
    ],
  });
const YES = { type: 'text', text: 'yes' };
const FUNCTION = { name: 'f', input_schema: SCHEMA };
const used = (result: Body): Body =>
  wrote({
    tools: [FUNCTION],
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'x', ...result }] },
    ],
  });
const DOCUMENT = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'words' } };

export const MESSAGES_FIELDS: Samples = {
  cache_control: [wrote({ cache_control: { type: 'ephemeral' } })],
  'thread.create': [wrote({ thread: { type: 'create' } })],
  'thread.continue': [wrote({ thread: { type: 'continue', previous_message_id: 'gen-1' } })],
  diagnostics: [wrote({ diagnostics: { previous_message_id: 'gen-1' } })],
  context_management: [wrote({ context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } })],
  fallbacks: [wrote({ fallbacks: [{ model: 'c/d' }] })],
  max_tokens: [wrote({ max_tokens: 3_999 })],
  'metadata.user_id': [wrote({ metadata: { user_id: 'u' } })],
  'metadata.other': [wrote({ metadata: { user_id: 'u', other: 'x' } }), wrote({ metadata: { user_id: 'u' } })],
  models: [wrote({ models: ['c/d'] })],
  'output_config.effort': [wrote({ output_config: { effort: 'low' } })],
  'output_config.format': [wrote({ output_config: { format: { type: 'json_schema', schema: SCHEMA } } })],
  'output_config.task_budget': [wrote({ output_config: { task_budget: { type: 'tokens', total: 20_000 } } })],
  provider: [wrote({ provider: { order: ['x'] } })],
  safeguards: [wrote({ safeguards: [{ type: 'dangerous_tool_use' }] })],
  service_tier: [wrote({ service_tier: 'flex' })],
  session_id: [wrote({ session_id: 's' })],
  speed: [wrote({ speed: 'fast' })],
  stop_sequences: [wrote({ stop_sequences: ['END'] })],
  system: [wrote({ system: 'be kind' })],
  'system.cache_control': [
    wrote({ system: [{ type: 'text', text: 'be kind', cache_control: { type: 'ephemeral' } }] }),
    wrote({ system: [{ type: 'text', text: 'be kind' }] }),
  ],
  temperature: [wrote({ temperature: 0.3 })],
  'thinking.enabled': [wrote({ thinking: { type: 'enabled', budget_tokens: 2_000 } })],
  'thinking.adaptive': [wrote({ thinking: { type: 'adaptive' } })],
  'thinking.disabled': [wrote({ thinking: { type: 'disabled' } })],
  'thinking.display': [
    wrote({ thinking: { type: 'enabled', budget_tokens: 2_000, display: 'omitted' } }),
    wrote({ thinking: { type: 'enabled', budget_tokens: 2_000 } }),
  ],
  tool_choice: [wrote({ tools: [FUNCTION], tool_choice: { type: 'any' } }), wrote({ tools: [FUNCTION] })],
  'tool_choice.disable_parallel_tool_use': [
    wrote({ tools: [FUNCTION], tool_choice: { type: 'auto', disable_parallel_tool_use: true } }),
    wrote({ tools: [FUNCTION], tool_choice: { type: 'auto' } }),
  ],
  tools: [wrote({ tools: [FUNCTION] })],
  'tools.defer_loading': [wrote({ tools: [{ ...FUNCTION, defer_loading: true }] }), wrote({ tools: [FUNCTION] })],
  'tools.input_examples': [wrote({ tools: [{ ...FUNCTION, input_examples: [{}] }] }), wrote({ tools: [FUNCTION] })],
  'tools.strict': [wrote({ tools: [{ ...FUNCTION, strict: true }] }), wrote({ tools: [FUNCTION] })],
  'tools of the vendor': [wrote({ tools: [{ type: 'bash_20250124', name: 'bash' }] })],
  top_k: [wrote({ top_k: 5 })],
  top_p: [wrote({ top_p: 0.96 })],
  trace: [wrote({ trace: { trace_id: 't' } })],
  user: [wrote({ user: 'u' })],
  'text.cache_control': [
    block({ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }),
    block({ type: 'text', text: 'x' }),
  ],
  'text.citations': [
    spoke({
      ...YES,
      citations: [
        {
          type: 'char_location',
          cited_text: 'c',
          document_index: 0,
          document_title: 't',
          start_char_index: 0,
          end_char_index: 1,
        },
      ],
    }),
    spoke(YES),
  ],
  image: [block({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } })],
  'image.file': [block({ type: 'image', source: { type: 'file', file_id: 'f' } })],
  document: [block(DOCUMENT)],
  'document.title': [block({ ...DOCUMENT, title: 't' }), block(DOCUMENT)],
  'document.context': [block({ ...DOCUMENT, context: 'c' }), block(DOCUMENT)],
  'document.citations': [block({ ...DOCUMENT, citations: { enabled: true } }), block(DOCUMENT)],
  search_result: [block({ type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'x' }] })],
  thinking: [spoke({ type: 'thinking', thinking: 'hm', signature: 'c2ln' }, YES), spoke(YES)],
  redacted_thinking: [spoke({ type: 'redacted_thinking', data: 'x' }, YES), spoke(YES)],
  server_tool_use: [spoke({ type: 'server_tool_use', id: 's1', name: 'web_search', input: {} }, YES), spoke(YES)],
  'tool_result.is_error': [used({ is_error: true }), used({})],
  'tool_result.image': [
    used({ content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }] }),
    used({}),
  ],
  'an unknown field': [wrote({ something_new: 1 })],
  'an unknown block': [block({ type: 'container_upload', file_id: 'f' })],
  'an unknown field of a block': [
    block({ type: 'text', text: 'x', something_new: 1 }),
    block({ type: 'text', text: 'x' }),
  ],
  'an unknown field of a message': [wrote({ messages: [{ role: 'user', content: 'hi', something_new: 1 }] })],
};

// Responses.

const input = (more: Body): Body => ({ model: 'a/b', input: [{ role: 'user', content: 'hi' }], ...more });
const items = (...list: Body[]): Body =>
  input({ input: [{ role: 'user', content: 'hi' }, ...list, { role: 'user', content: 'go on' }] });
const WRITTEN = {
  type: 'message',
  id: 'm1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'yes', annotations: [] }],
};
const FN = { type: 'function', name: 'f', parameters: SCHEMA };
const content = (value: Body): Body =>
  input({ input: [{ role: 'user', content: [{ type: 'input_text', text: 'look' }, value] }] });

export const RESPONSES_FIELDS: Samples = {
  cache_control: [input({ cache_control: { type: 'ephemeral' } })],
  frequency_penalty: [input({ frequency_penalty: 0.5 })],
  image_config: [input({ image_config: { aspect_ratio: '1:1' } })],
  'include.logprobs': [input({ include: ['message.output_text.logprobs'] })],
  'include.sources': [input({ include: ['web_search_call.action.sources'] })],
  instructions: [input({ instructions: 'be kind' })],
  max_output_tokens: [input({ max_output_tokens: 321 })],
  max_tool_calls: [input({ max_tool_calls: 3 })],
  metadata: [input({ metadata: { a: 'b' } })],
  modalities: [input({ modalities: ['text', 'image'] })],
  models: [input({ models: ['c/d'] })],
  parallel_tool_calls: [input({ tools: [FN], parallel_tool_calls: false }), input({ tools: [FN] })],
  presence_penalty: [input({ presence_penalty: 0.5 })],
  prompt: [input({ prompt: { id: 'p' } })],
  prompt_cache_key: [input({ prompt_cache_key: 'k' })],
  prompt_cache_options: [input({ prompt_cache_options: { mode: 'explicit' } })],
  provider: [input({ provider: { order: ['x'] } })],
  reasoning: [input({ reasoning: { effort: 'high' } })],
  'reasoning.summary': [
    input({ reasoning: { effort: 'high', summary: 'detailed' } }),
    input({ reasoning: { effort: 'high' } }),
  ],
  safety_identifier: [input({ safety_identifier: 'u' })],
  service_tier: [input({ service_tier: 'flex' })],
  session_id: [input({ session_id: 's' })],
  temperature: [input({ temperature: 0.3 })],
  'text.format': [input({ text: { format: { type: 'json_schema', name: 'n', schema: SCHEMA } } })],
  'text.format.json_object': [input({ text: { format: { type: 'json_object' } } })],
  'text.verbosity': [input({ text: { verbosity: 'low' } })],
  tool_choice: [input({ tools: [FN], tool_choice: 'required' }), input({ tools: [FN] })],
  'tool_choice.allowed_tools': [
    input({
      tools: [FN, { ...FN, name: 'g' }],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] },
    }),
    input({ tools: [FN, { ...FN, name: 'g' }] }),
  ],
  tools: [input({ tools: [FN] })],
  'tools.strict': [input({ tools: [{ ...FN, strict: true }] }), input({ tools: [FN] })],
  'tools.custom': [input({ tools: [{ type: 'custom', name: 'c' }] })],
  'tools.web_search': [input({ tools: [{ type: 'web_search' }] })],
  'tools.namespace': [input({ tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [FN] }] })],
  top_k: [input({ top_k: 5 })],
  top_logprobs: [input({ top_logprobs: 3 })],
  top_p: [input({ top_p: 0.9 })],
  trace: [input({ trace: { trace_id: 't' } })],
  truncation: [input({ truncation: 'auto' })],
  user: [input({ user: 'u' })],
  'input.phase': [items({ ...WRITTEN, phase: 'commentary' }), items(WRITTEN)],
  'input.annotations': [
    items({
      ...WRITTEN,
      content: [
        {
          type: 'output_text',
          text: 'yes',
          annotations: [{ type: 'url_citation', url: 'https://a.example', title: 't', start_index: 0, end_index: 3 }],
        },
      ],
    }),
    items(WRITTEN),
  ],
  'input.refusal': [
    items({ ...WRITTEN, content: [{ type: 'refusal', refusal: 'no' }] }),
    items({ ...WRITTEN, content: [] }),
  ],
  'input.reasoning.encrypted': [
    items({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' }, WRITTEN),
    items(WRITTEN),
  ],
  'input.reasoning.summary': [
    items({ type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 's' }] }, WRITTEN),
    items(WRITTEN),
  ],
  'input.web_search_call': [
    items(
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
      WRITTEN,
    ),
    items(WRITTEN),
  ],
  'input.compaction': [items({ type: 'compaction', encrypted_content: 'x' }), items()],
  'input.item_reference': [items({ type: 'item_reference', id: 'm1' }), items()],
  input_image: [content({ type: 'input_image', image_url: PNG })],
  'input_image.detail': [
    content({ type: 'input_image', image_url: PNG, detail: 'low' }),
    content({ type: 'input_image', image_url: PNG }),
  ],
  'input_image.file_id': [content({ type: 'input_image', file_id: 'f' })],
  input_file: [content({ type: 'input_file', file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' })],
  input_audio: [content({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } })],
  'an unknown field': [input({ something_new: 1 })],
  'an unknown field of an item': [input({ input: [{ role: 'user', content: 'hi', something_new: 1 }] }), input({})],
};

// Gemini.

const HI = { role: 'user', parts: [{ text: 'hi' }] };
const contents = (more: Body): Body => ({ model: 'a/b', contents: [HI], ...more });
const generated = (generationConfig: Body): Body => contents({ generationConfig });
const shown = (value: Body): Body => contents({ contents: [{ role: 'user', parts: [{ text: 'look' }, value] }] });
const wroteBefore = (...parts: Body[]): Body =>
  contents({ contents: [HI, { role: 'model', parts }, { role: 'user', parts: [{ text: 'go on' }] }] });
const declares = (declaration: Body): Body =>
  contents({ tools: [{ functionDeclarations: [{ name: 'f', parameters: OPENAPI, ...declaration }] }] });
const OPENAPI = { type: 'OBJECT', properties: { a: { type: 'STRING' } } };
const YES_PART = { text: 'yes' };
const functions = [{ functionDeclarations: [{ name: 'f', parameters: OPENAPI }] }];
const responded = (more: Body, part: Body = {}): Body =>
  contents({
    tools: functions,
    contents: [
      HI,
      { role: 'model', parts: [{ functionCall: { id: 'c1', name: 'f', args: {} }, ...part }] },
      {
        role: 'user',
        parts: [{ functionResponse: { id: 'c1', name: 'f', response: { output: 'x' }, ...more } }],
      },
    ],
  });
const calling = (functionCallingConfig: Body): Body =>
  contents({ tools: functions, toolConfig: { functionCallingConfig } });
const JSON_TYPE = { responseMimeType: 'application/json' };

export const GEMINI_FIELDS: Samples = {
  cachedContent: [contents({ cachedContent: 'cachedContents/1' })],
  labels: [contents({ labels: { a: 'b' } })],
  max_tool_calls: [contents({ max_tool_calls: 3 })],
  metadata: [contents({ metadata: { a: 'b' } })],
  models: [contents({ models: ['c/d'] })],
  provider: [contents({ provider: { order: ['x'] } })],
  safetySettings: [contents({ safetySettings: [{ category: 'X', threshold: 'BLOCK_NONE' }] })],
  serviceTier: [contents({ serviceTier: 'flex' })],
  session_id: [contents({ session_id: 's' })],
  systemInstruction: [contents({ systemInstruction: { parts: [{ text: 'be kind' }] } })],
  trace: [contents({ trace: { trace_id: 't' } })],
  user: [contents({ user: 'u' })],
  audioTimestamp: [generated({ audioTimestamp: true })],
  candidateCount: [generated({ candidateCount: 2 })],
  frequencyPenalty: [generated({ frequencyPenalty: 0.5 })],
  imageConfig: [generated({ imageConfig: { aspectRatio: '1:1' } })],
  logprobs: [generated({ responseLogprobs: true, logprobs: 3 }), generated({ responseLogprobs: true })],
  maxOutputTokens: [generated({ maxOutputTokens: 321 })],
  mediaResolution: [generated({ mediaResolution: 'MEDIA_RESOLUTION_LOW' })],
  presencePenalty: [generated({ presencePenalty: 0.5 })],
  responseJsonSchema: [generated({ ...JSON_TYPE, responseJsonSchema: SCHEMA })],
  responseLogprobs: [generated({ responseLogprobs: true })],
  responseMimeType: [generated(JSON_TYPE)],
  responseModalities: [generated({ responseModalities: ['TEXT', 'IMAGE'] })],
  responseSchema: [generated({ ...JSON_TYPE, responseSchema: OPENAPI })],
  seed: [generated({ seed: 7 })],
  speechConfig: [
    generated({
      responseModalities: ['AUDIO'],
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
    }),
    generated({ responseModalities: ['AUDIO'] }),
  ],
  stopSequences: [generated({ stopSequences: ['END'] })],
  temperature: [generated({ temperature: 0.3 })],
  'thinkingConfig.includeThoughts': [generated({ thinkingConfig: { includeThoughts: true } })],
  'thinkingConfig.thinkingBudget': [generated({ thinkingConfig: { thinkingBudget: 2_000 } })],
  'thinkingConfig.thinkingLevel': [generated({ thinkingConfig: { thinkingLevel: 'HIGH' } })],
  topK: [generated({ topK: 5 })],
  topP: [generated({ topP: 0.9 })],
  tools: [contents({ tools: functions })],
  'tools.codeExecution': [contents({ tools: [{ codeExecution: {} }] })],
  'tools.googleSearch': [contents({ tools: [{ googleSearch: {} }] })],
  'tools.urlContext': [contents({ tools: [{ urlContext: {} }] })],
  'functionDeclarations.behavior': [declares({ behavior: 'NON_BLOCKING' }), declares({})],
  'functionDeclarations.description': [declares({ description: 'd' }), declares({})],
  'functionDeclarations.response': [declares({ response: OPENAPI }), declares({})],
  'functionCallingConfig.allowedFunctionNames': [
    calling({ mode: 'ANY', allowedFunctionNames: ['f'] }),
    calling({ mode: 'ANY' }),
  ],
  'functionCallingConfig.mode': [calling({ mode: 'ANY' }), contents({ tools: functions })],
  'functionCallingConfig.mode NONE': [calling({ mode: 'NONE' }), contents({ tools: functions })],
  'functionCallingConfig.mode VALIDATED': [calling({ mode: 'VALIDATED' }), contents({ tools: functions })],
  fileData: [shown({ fileData: { mimeType: 'application/pdf', fileUri: 'https://a.example/a.pdf' } })],
  inlineData: [shown({ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } })],
  'inlineData audio': [shown({ inlineData: { mimeType: 'audio/wav', data: 'AAAA' } })],
  'inlineData pdf': [shown({ inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } })],
  videoMetadata: [
    shown({ inlineData: { mimeType: 'video/mp4', data: 'AAAA' }, videoMetadata: { fps: 2 } }),
    shown({ inlineData: { mimeType: 'video/mp4', data: 'AAAA' } }),
  ],
  'functionResponse.parts': [
    responded({ parts: [{ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }] }),
    responded({}),
  ],
  'functionResponse.response': [responded({ response: { output: 'other' } }), responded({})],
  'functionResponse.response error': [responded({ response: { error: 'x' } }), responded({})],
  'functionResponse.willContinue': [responded({ willContinue: false }), responded({})],
  'thoughtSignature of a call': [responded({}, { thoughtSignature: 'c2ln' }), responded({})],
  'thoughtSignature of a text': [wroteBefore({ text: 'yes', thoughtSignature: 'c2ln' }), wroteBefore(YES_PART)],
  thought: [wroteBefore({ text: 'hm', thought: true }, YES_PART), wroteBefore(YES_PART)],
  executableCode: [wroteBefore({ executableCode: { language: 'PYTHON', code: '1' } }, YES_PART), wroteBefore(YES_PART)],
  'an unknown field': [contents({ somethingNew: 1 })],
  'an unknown field of a content': [contents({ contents: [{ ...HI, somethingNew: 1 }] })],
  'an unknown field of a part': [shown({ text: 'x', somethingNew: 1 }), shown({ text: 'x' })],
  'an unknown setting': [generated({ somethingNew: 1 })],
};
