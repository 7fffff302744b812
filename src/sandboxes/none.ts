/** The driver for machines where nothing can isolate code: it refuses to run any. */
import { GatewayError } from '../base/errors.ts';
import type { DriverProblem, Examination, SandboxDriver } from './driver.ts';

/** @param problems why there is no other driver @param mayChange whether there may be one later */
export function noDriver(problems: readonly DriverProblem[], mayChange = false): SandboxDriver {
  const refuse = async () => {
    throw noSandboxes(problems);
  };
  return {
    examine: async (): Promise<Examination> => ({ driver: 'none', isolation: null, problems, mayChange }),
    create: refuse,
    list: async () => [],
    remove: refuse,
    sweep: async () => 0,
  };
}

/** 503: this gateway cannot run code. */
function noSandboxes(problems: readonly DriverProblem[]): GatewayError {
  const reasons = problems.map(({ message, remedy }) => `${message} (${remedy})`);
  return new GatewayError('server', `This gateway has no sandbox to run code in: ${reasons.join('; ')}.`, {
    status: 503,
    metadata: { retryable: false, reason: 'no_sandbox' },
  });
}
