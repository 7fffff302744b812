/**
 * Sandboxes: isolated places for untrusted code, with a persistent workspace, limits, and no way out but the egress proxy.
 * Several drivers (`driver.ts`) implement one interface (`sandbox.ts`); the gateway uses the one that works on its machine. If
 * none does, everything that needs a sandbox is refused.
 *
 * Not here: who may use a sandbox and for what (server tools, interns), what it may reach (`egress-proxy/`), secrets (`vault/`).
 */
export type { Examination } from './driver.ts';
export { examineSandboxes } from './drivers.ts';
export { remoteDoor } from './remote-door.ts';
export { type Finished, run } from './run.ts';
export {
  type Command,
  type Ending,
  type Entry,
  type Execution,
  HOME,
  type Program,
  type Sandbox,
  type SandboxLimits,
  type SandboxNetwork,
  type SandboxOptions,
  WORKSPACE,
} from './sandbox.ts';
export { Sandboxes } from './sandboxes.ts';
