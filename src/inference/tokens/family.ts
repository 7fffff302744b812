/** The tokenizer of a model, where its vendor has published it. */

export type Encoding = 'o200k_base' | 'cl100k_base';

/**
 * Recognizes OpenAI's models under any service's prefix (`openai/gpt-4o`, `ft:gpt-4o:...`, `openai.gpt-oss-120b`).
 * gpt-oss adds only tokens of its own format to `o200k_base`. Undefined for every other family: none has a public
 * tokenizer here, so requests to them are bounded by their bytes.
 */
export function encodingOf(upstreamModel: string): Encoding | undefined {
  const name = upstreamModel.toLowerCase().match(/(?:^|[/:.])((?:gpt-|chatgpt-|codex-|o[1-9](?=$|-)).*)$/)?.[1];
  if (name === undefined) return undefined;
  if (/^gpt-(?:3\.5|35|4)(?![.o\d])/.test(name)) return 'cl100k_base';
  return /^(?:gpt-(?:4o|4\.1|4\.5|5|oss)|chatgpt-|codex-|o\d)/.test(name) ? 'o200k_base' : undefined;
}
