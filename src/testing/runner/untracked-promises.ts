/**
 * Loaded before the tests of a group (`test/run.ts`). To tell which test an unhandled error belongs to, Node's test runner follows every
 * promise from its creation until it is collected: with it, promises cost 20 times as much. The tests of a group run one
 * after the other, so `unhandled-errors.ts` can tell without.
 */
import hooks from 'node:async_hooks';

const { createHook } = hooks;
hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
