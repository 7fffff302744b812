/**
 * The member names that distinguish the texts of a request from its other values. The common ones hold for every format,
 * because clients and upstreams mix the members of all of them; a format adds its own.
 */
export interface Words {
  /** Control members, which no model reads. */
  readonly control: ReadonlySet<string>;
  /** Members whose items or text are the user's unless a role says otherwise. */
  readonly users: ReadonlySet<string>;
  /** Roles of messages that the user did not write. */
  readonly others: ReadonlySet<string>;
  /** Keys defined by the formats, below which ids and media are recognized. Any other key is itself a text. */
  readonly names: ReadonlySet<string>;
  /** Below these the content is free: nothing in it counts as an id or as encrypted, whatever its name. */
  readonly free: ReadonlySet<string>;
  /**
   * As objects, these contain values from users or models, so short numbers are texts too. The same holds for
   * `metadata`.
   */
  readonly inputs: ReadonlySet<string>;
  readonly ids: ReadonlySet<string>;
  /** Encrypted reasoning. */
  readonly sealed: ReadonlySet<string>;
  /** Base64 files and media. `data` is base64 in parts of the encoded types, and in parts without a type. */
  readonly encoded: ReadonlySet<string>;
  readonly encodedTypes: ReadonlySet<string>;
  /** Members that hold URLs or encoded bytes, never prose. */
  readonly addresses: ReadonlySet<string>;
  /** Members whose values are keywords, and these keywords. */
  readonly worded: ReadonlySet<string>;
  readonly words: ReadonlySet<string>;
  /** Lists whose texts are not parts of one text. */
  readonly apart: ReadonlySet<string>;
  /** Types of parts that are media. */
  readonly media: ReadonlySet<string>;
}

/** A format's own words, separated by spaces. */
export type OwnWords = { readonly [Kind in keyof Words]?: string };

const COMMON: Words = {
  control: setOf('model models provider user safety_identifier service_tier'),
  users: setOf('messages input prompt query documents suffix'),
  others: setOf('assistant system developer tool function model'),
  names: setOf(
    'role content type text name id model messages input output instructions system tools tool_choice function parameters ' +
      'arguments description properties required items enum additionalProperties strict input_schema tool_calls tool_call_id ' +
      'tool_use_id call_id image_url url detail file filename file_data file_id input_audio data format source media_type ' +
      'cache_control ttl signature thinking reasoning reasoning_content reasoning_details encrypted_content summary prompt ' +
      'query documents metadata user max_tokens temperature top_p stream stream_options include_usage provider models ' +
      'response_format json_schema schema refusal annotations citations title context is_error status index audio caller ' +
      'container code_interpreter custom definition input_references image images mask reference_images video_url ' +
      'input_video file_url results outputs action queries item parts blocks prediction web_search_options plugins ' +
      'mcp_servers context_management acknowledged_safety_checks pending_safety_checks function_call json url_citation ' +
      'file_citation',
  ),
  free: setOf('properties parameters input_schema schema'),
  inputs: setOf('input arguments'),
  ids: setOf('id file_id tool_call_id tool_use_id call_id item_id previous_response_id'),
  sealed: setOf('signature encrypted_content thought_signature thoughtSignature'),
  encoded: setOf('data file_data'),
  encodedTypes: setOf('base64 redacted_thinking reasoning.encrypted input_audio input_file file'),
  addresses: setOf('url image_url file_url video_url audio_url file_data data image mask b64_json'),
  worded: setOf('type role status phase object format detail'),
  words: setOf(
    'user assistant system developer tool function model text image_url input_text input_image input_file input_audio ' +
      'output_text refusal file image document audio_url video_url input_video tool_use tool_result server_tool_use thinking ' +
      'redacted_thinking function_call function_call_output message reasoning base64 url json_schema json_object ephemeral ' +
      'object string number integer boolean array null custom auto any none required enabled disabled adaptive ' +
      'item_reference summary_text completed in_progress incomplete content_block low high wav mp3 flac opus pcm16 ' +
      'reasoning.text reasoning.summary reasoning.encrypted uri email date date-time time uuid content search_result',
  ),
  apart: setOf('documents'),
  media: setOf('image image_url input_image audio input_audio video video_url input_video file input_file document'),
};

/** The common words and the given ones. */
export function wordsWith(own: OwnWords): Words {
  const all: Record<string, ReadonlySet<string>> = { ...COMMON };
  for (const [kind, words] of Object.entries(own)) all[kind] = new Set([...(all[kind] ?? []), ...setOf(words)]);
  return all as unknown as Words;
}

function setOf(words: string): ReadonlySet<string> {
  return new Set(words.split(' '));
}
