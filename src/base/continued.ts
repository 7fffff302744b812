/** A stream of which the beginning has been read already: `begun`, and then what `rest` still has. */
export async function* continued(begun: readonly Buffer[], rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield* begun;
  for (;;) {
    const next = await rest.next();
    if (next.done) return;
    yield next.value;
  }
}
