/** The events of a streamed response. */

/** The most that an event without an end may hold. */
const MOST_BUFFERED = 16 * 1024 * 1024;

export async function* eventsOf(response: Response): AsyncGenerator<Record<string, unknown>> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) return;
    rest += value;
    if (rest.length > MOST_BUFFERED) throw new Error('An event of the answer is too large.');
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const data = block
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice('data:'.length).trimStart())
        .join('\n');
      if (data === '' || data === '[DONE]') continue;
      yield JSON.parse(data) as Record<string, unknown>;
    }
  }
}
