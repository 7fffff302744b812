/**
 * The egress proxy: the only way out of a sandbox, in a process of its own. A sandbox knows its secrets only as placeholders;
 * the proxy replaces a placeholder by the value where a request leaves for a host that the secret is bound to, and refuses
 * it everywhere else. It also passes model calls on to the gateway, with a key that the sandbox never sees. Not here: where
 * secrets are stored (the vault), how code is confined (the sandboxes), and requests that the gateway makes itself (`egress/`,
 * whose rules for addresses apply here, too).
 */
import type { Clock } from '../base/clock.ts';
import type { Authority } from './trust/authority.ts';

export { DOOR_NAME } from './door-key.ts';
export { sandboxInitFile } from './launch.ts';
export { type BoundSecret, createPlaceholder } from './secret.ts';
export type { GatewaySettings, ModelCall, ProxyUser, RefusalReport, SandboxSettings } from './settings.ts';
export { SOCKET_NAME, socketFolderFor } from './socket-folder.ts';
export {
  DEFAULT_PROXY_USER,
  EgressProxy,
  type EgressProxyOptions,
  type EgressWay,
  type OpenDoor,
  type ProxiedSandbox,
} from './supervisor.ts';
export type { Authority } from './trust/authority.ts';
export {
  isReservedVariable,
  SANDBOX_PROXY_PORT,
  SYSTEM_BUNDLE,
  sandboxEnvironment,
  trustBundle,
} from './trust/environment.ts';

/** A new certificate authority (P-256) for a vault. Its key must be stored encrypted. */
export async function createAuthority(clock: Clock): Promise<Authority> {
  return (await import('./trust/authority.ts')).makeAuthority(clock);
}
