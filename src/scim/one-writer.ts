/** Transactions one after the other, so that those that would wait for each other's locks hold one connection and not all. */
import { GatewayError } from '../base/errors.ts';
import type { Database } from '../storage/database.ts';

/** Past these an identity provider is told to come back. */
const MAX_WAITING = 1_000;

/** As `database`, whose own transactions go past it. */
export function oneWriter(database: Database): Database {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return {
    query: (text, values) => database.query(text, values),
    get kysely() {
      return database.kysely;
    },
    get up() {
      return database.up;
    },
    close: () => database.close(),
    transaction(work) {
      if (waiting >= MAX_WAITING) {
        const details = { retryAfterSeconds: 1 };
        return Promise.reject(new GatewayError('rate_limit_exceeded', 'too many changes wait for their turn', details));
      }
      waiting += 1;
      const result = last.then(() => database.transaction(work));
      const ended = () => {
        waiting -= 1;
      };
      last = result.then(ended, ended);
      return result;
    },
  };
}
