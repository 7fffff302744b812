/** Where a model of the form is asked. */

/** A model's own name, of `models/gemini-...` or the bare one. */
export function nameOf(model: string): string {
  return model.replace(/^models\//, '');
}

/** The method that answers. The model's name may be a client's: nothing in it leaves its place. */
export function geminiPath(model: string, stream: boolean): string {
  return `/models/${encodeURIComponent(nameOf(model))}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
}
