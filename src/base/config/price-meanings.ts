/** What the prices of a model are for, besides those of tokens and caches. */
export const FURTHER_PRICES: Readonly<Record<string, string>> = {
  request: 'Per request.',
  image: 'Per image in the prompt.',
  image_token: 'Per image token in the prompt.',
  image_output: 'Per generated image token.',
  audio: 'Per audio token in the prompt.',
  audio_output: 'Per generated audio token.',
  internal_reasoning: 'Per reasoning token, where it differs from `completion`.',
  web_search: 'Per web search.',
  input_character: 'Per character of a text to speak.',
  input_second: 'Per started second of audio to transcribe.',
  output_second: 'Per started second of generated audio or video.',
};
