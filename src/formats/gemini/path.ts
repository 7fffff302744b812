/** Request paths of Gemini models. */

/** The bare model name, without `models/`. */
export function nameOf(model: string): string {
  return model.replace(/^models\//, '');
}

/** Path of the generating method. A model name may come from a client, so it is percent-encoded. */
export function geminiPath(model: string, stream: boolean): string {
  return `/models/${encodeURIComponent(nameOf(model))}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
}
