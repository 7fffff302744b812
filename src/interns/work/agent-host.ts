/** The agents that run in this process: each in its sandbox, started when it is needed and stopped when the intern is. */
import { endSandboxSecret, startSandboxSecret } from '../../access/index.ts';
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { EgressWay, GatewaySettings } from '../../egress-proxy/index.ts';
import { type Execution, HOME, type Sandbox, type Sandboxes, WORKSPACE } from '../../sandboxes/index.ts';
import { changeEverywhere } from '../../storage/change-everywhere.ts';
import type { Changes, Database } from '../../storage/database.ts';
import type { SecretReleases } from '../../vault/index.ts';
import type { AgentConnection, AgentProfile } from '../agents/index.ts';
import { internError } from '../errors.ts';
import { type Intern, sandboxIdOf } from '../intern.ts';
import { vaultsOfIntern } from '../vaults.ts';
import type { Holders } from './holders.ts';
import { ModelCalls } from './model-calls.ts';

export interface HostParts {
  database: Database;
  changes: Pick<Changes, 'announce'>;
  clock: Clock;
  log: Log;
  sandboxes: Pick<Sandboxes, 'create' | 'destroy'>;
  holders: Holders;
  /** The program that runs as an intern. @throws GatewayError if there is none */
  agent(): AgentProfile;
  releases: Pick<SecretReleases, 'prepare'>;
  /** Where sandboxes reach this gateway. */
  gateway(): Omit<GatewaySettings, 'token'>;
}

/** Called with each step of a start, from 1. */
type StepReport = (label: string, number: number) => Promise<void>;

const STEPS = ['Creating the sandbox', 'Writing its settings', 'Starting the agent'] as const;
export const STEP_COUNT = STEPS.length;

/** Within those of the installation. */
const EVERY_HOST = ['*'];
/** How long an agent may take to greet. */
const START_MS = 60_000;
/** Lets an agent whose disk is full start and remove files. */
const RESERVE_BYTES = 16 * 1024 * 1024;
/** Of what the agent writes to its standard error, for the log. */
const ERROR_CHARACTERS = 2_000;
/** In a sandbox. */
const GATEWAY = 'http://127.0.0.1:3128/api/v1';
const SURROUNDINGS = { node: 'node', home: HOME, workspace: WORKSPACE, gateway: GATEWAY };

interface Held {
  readonly epoch: number;
  readonly agent: Promise<Started>;
  /** Resolves when nothing of it runs any more. */
  ending?: Promise<void>;
}

interface Started {
  /** With which the sandbox calls models. */
  readonly token: string;
  readonly sandbox: Sandbox;
  readonly connection: AgentConnection;
  readonly calls: ModelCalls;
}

/** An agent that runs. */
export type Agent = Pick<Started, 'connection' | 'calls'> & { readonly sandbox: Pick<Sandbox, 'isFull'> };

export class AgentHost {
  readonly #parts: HostParts;
  readonly #held = new Map<string, Held>();

  constructor(parts: HostParts) {
    this.#parts = parts;
  }

  holds(internId: string): boolean {
    return this.#held.has(internId);
  }

  /** Interns whose agents run, or start, with the epoch of their start. */
  epochs(): ReadonlyMap<string, number> {
    return new Map([...this.#held].map(([id, { epoch }]) => [id, epoch]));
  }

  /** The agent of an intern that this process holds; it is started if it does not run. */
  async agentOf(intern: Intern, report: StepReport = async () => {}): Promise<Agent> {
    const held = this.#held.get(intern.id);
    if (held?.epoch === intern.epoch && held.ending === undefined) return held.agent;
    if (held !== undefined) {
      await this.stop(intern.id);
      return this.agentOf(intern, report);
    }
    const entry: Held = { epoch: intern.epoch, agent: this.#start(intern, report) };
    this.#held.set(intern.id, entry);
    const stopOwn = () => (this.#held.get(intern.id) === entry ? this.stop(intern.id) : undefined);
    // An agent that ends is started again when it is needed.
    entry.agent.then(({ connection }) => connection.gone.then(stopOwn), stopOwn);
    return entry.agent;
  }

  /** Resolves when nothing of it runs in this process. */
  async stop(internId: string): Promise<void> {
    const entry = this.#held.get(internId);
    if (entry === undefined) return;
    entry.ending ??= this.#end(internId, entry).finally(() => this.#held.delete(internId));
    await entry.ending;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#held.keys()].map((id) => this.stop(id)));
  }

  async #end(internId: string, { agent }: Held): Promise<void> {
    const started = await agent.catch(() => undefined);
    if (started === undefined) return;
    started.connection.close();
    try {
      await started.sandbox.stop();
      await this.#endSecret(started.token);
    } catch (error) {
      this.#parts.log.warn('the sandbox of an intern was not stopped', { intern: internId, error });
    }
  }

  async #start(intern: Intern, report: StepReport): Promise<Started> {
    const { token, key } = await this.#startSecret(intern);
    try {
      return { token, ...(await this.#launch(intern, { token, keyId: key.keyId }, report)) };
    } catch (error) {
      await this.#endSecret(token).catch(() => {});
      // A 413 is a limit of the sandbox, not of the request that needs it.
      if (error instanceof GatewayError && error.status === 413) throw internError('intern_rejected', error.message);
      throw error;
    }
  }

  async #launch(
    intern: Intern,
    { token, keyId }: { token: string; keyId: string },
    report: StepReport,
  ): Promise<Omit<Started, 'token'>> {
    const profile = this.#parts.agent();
    const { instructions, model } = intern;
    const command = profile.command({ instructions, model }, SURROUNDINGS);
    await report(STEPS[0], 1);
    const id = sandboxIdOf(intern.id);
    const { held, borrowedVaultId } = await vaultsOfIntern(this.#parts.database, intern.workspaceId, intern.id);
    const egress = await this.#parts.releases.prepare(id, { held, borrowedVaultId, domains: EVERY_HOST });
    const gateway = { ...this.#parts.gateway(), token };
    let way: EgressWay | undefined;
    const calls = new ModelCalls({ ...this.#parts, keyId, way: () => way });
    const load = async (opened: EgressWay) => {
      way = opened;
      return { ...(await egress.network.load(opened)), gateway };
    };
    const sandbox = await this.#parts.sandboxes.create({
      ...{ id, owner: `intern ${intern.id}`, environment: egress.environment(), programs: command.programs },
      reserveBytes: RESERVE_BYTES,
      network: { ...egress.network, load, onCalled: (call) => calls.called(call) },
    });
    try {
      await report(STEPS[1], 2);
      for (const [path, content] of Object.entries(command.files)) await sandbox.writeFile(path, content);
      await report(STEPS[2], 3);
      const { argv, environment: own } = command;
      const execution = await sandbox.exec({ argv, environment: own, timeoutMs: null, outputBytes: null });
      return { sandbox, calls, connection: await this.#connect(intern, profile, execution) };
    } catch (error) {
      await sandbox.stop().catch(() => {});
      throw error;
    }
  }

  async #startSecret({ id }: Intern) {
    const now = new Date(this.#parts.clock.now());
    const secret = await changeEverywhere(this.#parts, (tx, announce) => startSandboxSecret(tx, announce, id, now));
    if (secret !== undefined) return secret;
    throw internError('intern_rejected', 'The API key of the intern was deleted, so it cannot call models.');
  }

  async #endSecret(token: string): Promise<void> {
    const { database, changes } = this.#parts;
    await database.transaction(async (tx) => {
      // No one waits until it is handled: this may run while another announcement is.
      const announce = async (topic: string, ...ids: readonly string[]) => {
        await changes.announce(tx, topic, ...ids);
      };
      await endSandboxSecret(tx, announce, token);
    });
  }

  async #connect(intern: Intern, profile: AgentProfile, execution: Execution): Promise<AgentConnection> {
    const { clock } = this.#parts;
    const { stdin, stdout, ended } = execution;
    const said = this.#errorsOf(execution, intern);
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = clock.timer(START_MS, () => {
      reject(internError('intern_unreachable', `The agent did not answer within ${START_MS / 1_000} s.`));
    });
    try {
      return await Promise.race([profile.connect({ stdin, stdout, exited: ended }, SURROUNDINGS), late]);
    } catch (error) {
      execution.signal('SIGKILL');
      if (error instanceof GatewayError) throw error;
      const message = `The agent did not start: ${(error as Error).message}${said()}`;
      throw internError('intern_unreachable', message, { cause: error });
    } finally {
      timer.cancel();
    }
  }

  /** Reads standard error, which would otherwise fill and stop the agent. Returns its end, for messages. */
  #errorsOf({ stderr, ended }: Execution, { id }: Intern): () => string {
    let text = '';
    stderr.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-ERROR_CHARACTERS);
    });
    const last = () => (text.trim() === '' ? '' : ` (${text.trim()})`);
    void ended.then(({ code, reason }) => {
      this.#parts.log.info('the agent of an intern ended', { intern: id, code, reason, stderr: text.trim() });
    });
    return last;
  }
}
