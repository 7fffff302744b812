/**
 * Runs transactions one after the other, so that writers waiting for the same lock occupy one connection and not all.
 */
import { GatewayError } from '../base/errors.ts';
import type { Database } from '../storage/database.ts';

/** Maximum waiting transactions; further ones are refused with a retryable error. */
const MAX_WAITING = 1_000;

/**
 * Like `database`, except that transactions run one at a time. Transactions on `database` itself are not serialized.
 */
export function oneWriter(database: Database): Database {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return {
    query: (text, values) => database.query(text, values),
    get up() {
      return database.up;
    },
    close: () => database.close(),
    transaction(work) {
      if (waiting >= MAX_WAITING) {
        const details = { retryAfterSeconds: 1 };
        return Promise.reject(
          new GatewayError('rate_limit_exceeded', 'too many changes are waiting; retry later', details),
        );
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
