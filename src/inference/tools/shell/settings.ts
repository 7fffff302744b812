/** The settings that requests give `svc:bash` and `svc:shell`. */
import { invalidField } from '../../../base/errors.ts';
import { type Fields, isFields } from '../../../formats/conversation/fields.ts';
import { Members } from '../../tool-settings.ts';
import type { Installation, RequestedTool } from '../tool.ts';
import { noSandbox, type RequestSandboxes } from './request-sandboxes.ts';

/** @throws GatewayError 400 with the path of a member that is not valid. Unknown members are ignored. */
export function checkSettings(settings: Fields, path: string, engines: readonly string[]): void {
  new Members(settings, path).word('engine', engines);
  checkEnvironment(settings['environment'] ?? undefined, `${path}.environment`);
}

function checkEnvironment(environment: unknown, path: string): void {
  if (environment === undefined) return;
  if (!isFields(environment)) throw invalidField(path, 'must be an object');
  const { type } = environment;
  if (type === 'container_reference') {
    throw invalidField(`${path}.type`, 'is container_reference, which this gateway does not support');
  }
  if (type !== 'container_auto') throw invalidField(`${path}.type`, 'must be container_auto');
  const files = environment['file_ids'] ?? [];
  if (!Array.isArray(files) || files.length > 0) {
    throw invalidField(`${path}.file_ids`, 'is not supported by this gateway');
  }
  const policy = environment['network_policy'] ?? undefined;
  if (policy === undefined) return;
  const named = isFields(policy) ? policy['type'] : undefined;
  if (named === 'allowlist') {
    throw invalidField(`${path}.network_policy.type`, 'is allowlist, which this gateway does not support');
  }
  if (named !== 'disabled') throw invalidField(`${path}.network_policy.type`, 'must be disabled');
}

type Declaration = Pick<RequestedTool, 'functionName' | 'description' | 'parameters'>;

/**
 * The tool of one request: run in a sandbox with the engine `svc`, otherwise a function that the client runs.
 * @param settings checked
 * @throws GatewayError 400 if the gateway has no sandboxes
 */
export function requested(
  settings: Fields,
  path: string,
  { requestSandboxes: sandboxes }: Installation,
  { declared, inSandbox }: { declared: Declaration; inSandbox(sandboxes: RequestSandboxes): RequestedTool },
): RequestedTool {
  if (settings['engine'] !== 'svc') return declared;
  const where = `${path}.engine`;
  if (sandboxes === undefined) throw noSandbox(where);
  return { ...inSandbox(sandboxes), load: () => sandboxes.check(where) };
}
