/** The thread's half of `OneByOne`: answers each order, once its parser is loaded. */
import { parentPort } from 'node:worker_threads';

/** Sent instead of a result: the parser is not installed, which is not a fault of the document. */
export interface NotLoaded {
  id: number;
  notLoaded: Error;
}

/**
 * @param load the parser, on first use
 * @param read must not reject
 */
export function answerOrders<Order extends { id: number }, Parser>(
  load: () => Promise<Parser>,
  read: (order: Order, parser: Parser) => Promise<{ id: number }>,
): void {
  parentPort?.on('message', async (order: Order) => {
    let parser: Parser;
    try {
      parser = await load();
    } catch (error) {
      parentPort?.postMessage({ id: order.id, notLoaded: error as Error } satisfies NotLoaded);
      return;
    }
    parentPort?.postMessage(await read(order, parser));
  });
}
