/** Continues a partly read stream: yields `begun`, then the remaining chunks of `rest`. */
export async function* continued(begun: readonly Buffer[], rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield* begun;
  for (;;) {
    const next = await rest.next();
    if (next.done) return;
    yield next.value;
  }
}
