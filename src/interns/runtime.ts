/** The agents, runs and jobs of interns in one process. */
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { Namespace } from '../base/namespace.ts';
import { Turnstile } from '../base/turnstile.ts';
import type { Blobs } from '../blobs/index.ts';
import type { Job, JobKind, Jobs } from '../jobs/index.ts';
import { PeerServer } from '../peers/index.ts';
import type { Sandboxes } from '../sandboxes/index.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { INTERNS_TOPIC } from './change-intern.ts';
import { Chats } from './chat/chats.ts';
import type { ChatSink } from './chat/chunks.ts';
import type { ChatRequest } from './chat/request.ts';
import type { InvokedReply } from './chat/schema.ts';
import { internError } from './errors.ts';
import { answerPeer } from './forwarding/answer-peers.ts';
import { forwardChat, forwardInvoke } from './forwarding/ask-holder.ts';
import { endpointOf } from './forwarding/endpoint.ts';
import type { Question } from './forwarding/question.ts';
import { type Intern, sandboxIdOf } from './intern.ts';
import * as store from './store.ts';
import { type Agent, AgentHost, type HostParts } from './work/agent-host.ts';
import { deleteOldArchives, forgetRemains, remains } from './work/archives.sql.ts';
import { HeldElsewhere, type Holder, Holders } from './work/holders.ts';
import { teardown } from './work/teardown.ts';
import { broke, type WorkParts, work } from './work/work.ts';

interface RuntimeParts extends Pick<HostParts, 'agent' | 'releases'> {
  database: Database;
  changes: Changes;
  clock: Clock;
  log: Log;
  namespace: Namespace;
  blobs: Pick<Blobs, 'keep' | 'drop'>;
  sandboxes: Pick<Sandboxes, 'create' | 'destroy' | 'list'>;
  /** Of the gateway, in PEM, if it serves TLS. */
  certificate: string | null;
  jobs: Pick<Jobs, 'send'>;
  sealing: Pick<Sealing, 'sealer' | 'opener'>;
  /** Address that other processes of this gateway reach this one at. */
  peerHost: string;
}

interface InternJob {
  internId: string;
}

/** Interns that one process starts or deletes at the same time. */
const CONCURRENCY = 4;
/** How many statements of chat requests run at once (fewer than the connections of a process), and how many may wait. */
const STATEMENTS = 6;
const MOST_WAITING = 4_096;
/** To find the holder of an intern, which may change meanwhile. */
const ATTEMPTS = 3;
const SWEEP_MS = 600_000;
const SWEPT_AT_ONCE = 100;
/** How long the workspaces of deleted interns are kept. */
const ARCHIVE_MS = 30 * 24 * 3_600_000;

export class InternRuntime {
  /** Limits the database use of chat requests, since many may start at once. */
  readonly turnstile = new Turnstile(STATEMENTS, MOST_WAITING);
  readonly #chats: Chats;
  readonly #peers: PeerServer;
  readonly #parts: RuntimeParts;
  readonly #holders: Holders;
  readonly #host: AgentHost;
  readonly #work: WorkParts;
  readonly #workKind: JobKind<InternJob>;
  readonly #sweepKind: JobKind;
  #address: { host: string; port: number } | undefined;

  constructor(parts: RuntimeParts) {
    this.#parts = parts;
    const database = inTurn(parts.database, this.turnstile);
    const id = uuidv7(parts.clock.now());
    this.#peers = new PeerServer({
      ...{ ...parts, id },
      handle: (body, response) =>
        answerPeer({ ...parts, database, chats: this.#chats, holders: this.#holders }, body as Question, response),
    });
    this.#holders = new Holders({
      ...{ ...parts, database, id, lost: (lost) => void this.#host.stop(lost) },
      endpoint: async () => endpointOf(parts.sealing, await this.#peers.listen(parts.peerHost)),
    });
    this.#host = new AgentHost({ ...parts, holders: this.#holders, gateway: () => this.#gateway() });
    this.#work = {
      ...{ ...parts, holders: this.#holders, host: this.#host },
      teardown: (intern) => teardown(parts, intern),
      atWork: new Map(),
    };
    this.#chats = new Chats({
      ...{ ...parts, database },
      agentOf: (intern) => this.#agentOf(intern),
      endAgent: (internId) => void this.#host.stop(internId),
    });
    this.#workKind = {
      ...{ name: 'interns.work', runs: 'many', concurrency: CONCURRENCY, pollSeconds: 1 },
      run: ({ data, signal }: Job<InternJob>) => work(this.#work, data.internId, signal),
    };
    this.#sweepKind = {
      ...{ name: 'interns.sweep', runs: 'one', everyMs: SWEEP_MS, atStart: true, retries: 0 },
      run: () => this.#sweep(),
    };
    parts.changes.subscribe(INTERNS_TOPIC, (id) => this.#changed(id));
  }

  /** To be registered. */
  get kinds(): readonly JobKind[] {
    return [this.#workKind as JobKind, this.#sweepKind];
  }

  /** Where this process is reached from the same machine. Before any job runs. */
  listens(host: string, port: number): void {
    const isEverywhere = host === '0.0.0.0' || host === '::' || host === '';
    this.#address = { host: isEverywhere ? '127.0.0.1' : host, port };
  }

  /** In the transaction that leaves work to do. */
  wake(tx: Queryable, { id }: Pick<Intern, 'id'>): Promise<void> {
    return this.#parts.jobs.send(this.#workKind, { internId: id }, { tx });
  }

  /** Responds to a request, in the process that holds the intern. Rejects with a GatewayError if there is no response yet. */
  respond(intern: Intern, request: ChatRequest, caller: string, sink: ChatSink): Promise<void> {
    const named = { ...request, sessionId: request.sessionId ?? crypto.randomUUID() };
    return this.#atHolder(intern, (holder) =>
      holder === undefined
        ? this.#chats.respond(intern, named, caller, sink)
        : forwardChat(this.#parts, holder, { internId: intern.id, caller, request: named }, sink),
    );
  }

  /** Runs a prompt without a reader. @throws GatewayError */
  invoke(intern: Intern, sessionId: string | null, text: string, caller: string): Promise<InvokedReply> {
    return this.#atHolder(intern, (holder) =>
      holder === undefined
        ? this.#chats.invoke(intern, sessionId, text, caller)
        : forwardInvoke(this.#parts, holder, { internId: intern.id, sessionId, text, caller }),
    );
  }

  /** Ends the runs and agents of this process; others may start them. */
  async close(): Promise<void> {
    for (const id of this.#host.epochs().keys()) this.#chats.stop(id);
    await this.#host.close();
    await this.#holders.close();
    await this.#peers.close();
  }

  /** @param act throws HeldElsewhere if the holder has changed. It gets undefined if this process holds the intern, or none does */
  async #atHolder<T>({ id }: Intern, act: (holder: Holder | undefined) => Promise<T>): Promise<T> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const holder = await this.#holders.holderOf(id);
      try {
        return await act(holder?.id === this.#holders.id ? undefined : holder);
      } catch (error) {
        if (!(error instanceof HeldElsewhere)) throw error;
      }
    }
    throw internError('intern_unreachable', 'Another process is taking over the intern. Retry.');
  }

  #gateway() {
    if (this.#address === undefined) throw internError('intern_not_ready', 'The gateway does not listen yet.');
    return { ...this.#address, certificate: this.#parts.certificate };
  }

  async #agentOf(intern: Intern): Promise<Agent> {
    if ((await this.#holders.take(intern.id)) !== undefined) throw new HeldElsewhere();
    const agent = await this.#host.agentOf(intern).catch(async (error: unknown) => {
      await this.#holders.release(intern.id);
      if (!(error instanceof GatewayError) || error.status !== 503) await broke(this.#work, intern, error);
      throw error;
    });
    // A request that stopped it may have been handled before it was started.
    const now = await store.internWithId(this.#parts.database, intern.id);
    if (now?.status === 'running' && now.epoch === intern.epoch) return agent;
    await this.#stop(intern.id);
    throw internError('intern_not_ready', 'The intern was stopped.');
  }

  /** A write waits for this: when it resolves, nothing runs that should not. @param id null: any may have changed */
  async #changed(id: string | null): Promise<void> {
    const ids = id === null ? [...this.#host.epochs().keys()] : [id];
    await Promise.all(ids.filter((each) => this.#host.holds(each)).map((each) => this.#follow(each)));
  }

  async #follow(id: string): Promise<void> {
    const intern = await store.internWithId(this.#parts.database, id);
    const isWanted = intern?.status === 'running' || intern?.status === 'provisioning';
    if (isWanted && intern.epoch === this.#host.epochs().get(id)) return;
    await this.#stop(id);
  }

  async #stop(id: string): Promise<void> {
    this.#chats.stop(id);
    await this.#host.stop(id);
    await this.#holders.release(id);
  }

  async #sweep(): Promise<void> {
    const { database, jobs, sandboxes, blobs, clock } = this.#parts;
    // The database may have been restored without its jobs.
    for (const internId of await store.internsAtWork(database, ['queued', 'provisioning', 'destroying'])) {
      await jobs.send(this.#workKind, { internId });
    }
    for (const id of await remains(database, SWEPT_AT_ONCE)) {
      if ((await this.#holders.holderOf(id)) !== undefined) continue;
      await sandboxes.destroy(sandboxIdOf(id));
      await forgetRemains(database, id);
    }
    await database.transaction(async (tx) => {
      const old = new Date(clock.now() - ARCHIVE_MS);
      for (const blobId of await deleteOldArchives(tx, old, SWEPT_AT_ONCE)) await blobs.drop(tx, blobId);
    });
  }
}

/** The database with a limit on concurrent statements and transactions. */
function inTurn(database: Database, turnstile: Turnstile): Pick<Database, 'query' | 'transaction'> {
  return {
    query: (text, values) => turnstile.pass(() => database.query(text, values)),
    transaction: (work) => turnstile.pass(() => database.transaction(work)),
  };
}
