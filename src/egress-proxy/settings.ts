/** The settings of the proxy, which it gets over its channel only. Values are held in memory only. */
import type { BoundSecret } from './secret.ts';
import type { Authority } from './trust/authority.ts';

/** One sandbox. */
export interface SandboxSettings {
  secrets: readonly BoundSecret[];
  /** Exact domains, globs (`*.api.test`) or `*`. Hosts of secrets are not included by themselves. */
  domains: readonly string[];
  /** Those of the installation, as well: a host must be on both lists. Absent: every host. */
  withinDomains?: readonly string[];
  ports: readonly number[];
  /** Signs the certificates that the sandbox sees for hosts with bound secrets. */
  authority: Authority;
  /** Absent: the sandbox calls no models. */
  gateway?: GatewaySettings;
}

/** Where the gateway serves model calls, and the key that is added to them. */
export interface GatewaySettings {
  host: string;
  port: number;
  /** In PEM, if it serves TLS. */
  certificate: string | null;
  token: string;
}

/** For all sandboxes. */
export interface ProxySettings {
  /** Private networks that the operator allows, as in the yaml file. */
  networks: readonly string[];
  /** The operator's own certificate authorities, in PEM. */
  extraCa: string | null;
  /** The user that the process switches to; null: none. */
  user: ProxyUser | null;
}

/** The listener for sandboxes on other machines. */
export interface DoorSettings {
  /** The address to listen on, which sandboxes connect to. */
  host: string;
  /** The first that is free is used. */
  ports: { from: number; to: number };
  /** The port that no sandbox may reach; 0: any. */
  forbiddenPort: number;
  /** Signs the door's certificate. */
  authority: Authority;
}

export type DoorNews = { port: number; forbiddenPort: number } | { problem: string };

export interface ProxyUser {
  uid: number;
  gid: number;
}

/** To the proxy. `path` of a socket: its folder exists. `mode` of the socket's file. `keyHash`: hash of the key that the sandbox sends to the door. */
export type Order =
  | { type: 'start'; settings: ProxySettings }
  | { type: 'door'; settings: DoorSettings }
  | { type: 'open'; id: string; path: string; mode: number; keyHash: string | null; sandbox: SandboxSettings }
  | { type: 'close'; id: string }
  | { type: 'sync' };

/** From the proxy. */
export type News =
  | { type: 'ready' }
  | { type: 'door'; door: DoorNews }
  | { type: 'opened'; id: string }
  | { type: 'failed'; id: string; problem: string }
  | { type: 'refused'; id: string; refusal: RefusalReport }
  | { type: 'called'; id: string; call: ModelCall }
  /** Everything that happened before the order has been reported. */
  | { type: 'synced' }
  | { type: 'fault'; stack: string };

/** A model call of a sandbox: reported before it is sent to the gateway, and when it has ended. */
export interface ModelCall {
  /** `request_id` of its row. */
  requestId: string;
  /** The session that the program in the sandbox names; not verified. */
  session: string | null;
  /**
   * - `begun`: it is about to be sent
   * - `charged`: it was answered by a generation, so it has a row, or will have one
   * - `free`: it was answered without a generation, such as a token count
   * - `unclear`: it may have a row, because it failed or one end closed the connection
   */
  state: 'begun' | 'charged' | 'free' | 'unclear';
}

/** A refusal for the audit log. Equal ones are reported once a minute, with their number. */
export interface RefusalReport {
  reason: string;
  message: string;
  /** The name of the secret that was refused. */
  secret: string | null;
  host: string | null;
  port: number | null;
  /** How many there were since the last report. */
  count: number;
}
