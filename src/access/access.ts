/** The parts of this folder put together: one `Access` per process. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Access as RequiredAccess } from '../http/operation.ts';
import type { Caller } from './caller.ts';

export interface Access {
  /**
   * Tells who sent a request (wire/common.md, "Auth"). A key that this process knows yields its caller at once,
   * without a promise; an unknown one is looked up. Throws or rejects with GatewayError: 401 `authentication` for a
   * missing, unknown, disabled or expired key, 403 when its creator is no longer a member of the organization, 503
   * (retryable) when the database that could tell is unreachable.
   */
  authenticate(headers: IncomingHttpHeaders): Caller | Promise<Caller>;
  /** Throws GatewayError 403 when keys of this kind may not perform an operation that requires `required`. */
  permit(caller: Caller, required: RequiredAccess): void;
}
