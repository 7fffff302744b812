import type { Clock } from '../../base/clock.ts';
import type { Transport } from '../send/transport.ts';
import { SimulatedCall } from './call.ts';

/** Delays and timeouts of every call use the given clock. */
export function simulatedTransport(clock: Clock): Transport {
  const open = new Set<SimulatedCall>();
  return {
    send(request, receiver) {
      const call = new SimulatedCall(clock, request, {
        head: (status, headers) => receiver.head(status, headers),
        data: (chunk) => receiver.data(chunk),
        end() {
          open.delete(call);
          receiver.end();
        },
        failed(failure, sent) {
          open.delete(call);
          receiver.failed(failure, sent);
        },
      });
      open.add(call);
      return {
        pause: () => call.pause(),
        resume: () => call.resume(),
        abort() {
          open.delete(call);
          call.abort();
        },
      };
    },
    async close() {
      for (const call of open) call.abort();
      open.clear();
    },
  };
}
