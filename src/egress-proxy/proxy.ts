/** The proxy's process: it follows the orders of the gateway, and ends with it. */
import tls from 'node:tls';
import { type Clock, systemClock } from '../base/clock.ts';
import { type Dialling, EgressRules, NETWORK } from '../egress/index.ts';
import { Door } from './door.ts';
import type { SharedContext } from './forward/context.ts';
import { RefusalReports } from './refusal-reports.ts';
import { Sandbox } from './sandbox.ts';
import type { News, Order, ProxySettings, ProxyUser } from './settings.ts';

export class ProxyProcess {
  readonly #send: (news: News) => void;
  readonly #clock: Clock;
  readonly #dialling: Dialling;
  readonly #sandboxes = new Map<string, { sandbox: Sandbox; keyHash: string | null }>();
  #door: Door | undefined;
  #context: SharedContext | undefined;

  constructor(send: (news: News) => void, dialling: Dialling = NETWORK, clock: Clock = systemClock) {
    this.#send = send;
    this.#dialling = dialling;
    this.#clock = clock;
  }

  async receive(order: Order): Promise<void> {
    switch (order.type) {
      case 'start':
        this.#context = contextOf(order.settings, this.#dialling, this.#clock);
        return this.#send({ type: 'ready' });
      case 'door':
        this.#door = new Door(order.settings, this.#clock);
        return this.#send({ type: 'door', door: await this.#door.listen(order.settings) });
      case 'open':
        return this.#open(order);
      case 'close':
        return this.#close(order.id);
      case 'sync':
        return this.#send({ type: 'synced' });
    }
  }

  /** Closes every sandbox's socket. */
  close(): void {
    for (const id of this.#sandboxes.keys()) this.#close(id);
  }

  #close(id: string): void {
    const known = this.#sandboxes.get(id);
    if (known === undefined) return;
    if (known.keyHash !== null) this.#door?.expel(known.keyHash);
    known.sandbox.close();
    this.#sandboxes.delete(id);
  }

  async #open({ id, path, mode, keyHash, sandbox: settings }: Extract<Order, { type: 'open' }>): Promise<void> {
    try {
      const known = this.#sandboxes.get(id);
      if (known !== undefined) {
        known.sandbox.update(settings);
      } else {
        const reports = new RefusalReports(this.#clock, (refusal) => this.#send({ type: 'refused', id, refusal }));
        const sandbox = new Sandbox(
          settings,
          this.#context!,
          (refusal, destination) => reports.add(refusal, destination),
          (call) => this.#send({ type: 'called', id, call }),
        );
        this.#sandboxes.set(id, { sandbox, keyHash });
        await sandbox.listen(path, mode);
        if (keyHash !== null) this.#door?.admit(keyHash, path);
      }
      this.#send({ type: 'opened', id });
    } catch (error) {
      this.#close(id);
      this.#send({ type: 'failed', id, problem: problemOf(error) });
    }
  }
}

function contextOf({ networks, extraCa }: ProxySettings, dialling: Dialling, clock: Clock): SharedContext {
  const roots = [...tls.getCACertificates('default'), ...(extraCa === null ? [] : [extraCa])];
  return {
    clock,
    checks: { rules: new EgressRules({ networks, ports: [] }), dialling },
    roots: tls.createSecureContext({ ca: roots, minVersion: 'TLSv1.2' }),
  };
}

/** Errors of ours have no values in their messages; of others only the code is shown. */
function problemOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}

/**
 * Follows the gateway that started this process. The secrets come over the channel. When it closes, the gateway is gone, even by
 * kill -9, so the process ends at once.
 */
export function followGateway(dialling: Dialling = NETWORK): void {
  const send = (news: News) => {
    if (process.connected) process.send!(news, undefined, undefined, () => {});
  };
  const proxy = new ProxyProcess(send, dialling);
  process.on('message', (order: Order) => {
    if (order.type === 'start' && order.settings.user !== null) become(order.settings.user);
    void proxy.receive(order);
  });
  process.on('disconnect', () => process.exit(0));
  // A terminal signals all processes of its group; the gateway decides when this one ends.
  for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {});
  process.on('uncaughtException', (error) => {
    // A message may contain anything, so only the places are reported.
    const stack = String(error.stack)
      .split('\n')
      .filter((line) => line.startsWith('    at '))
      .slice(0, 10);
    process.send?.({ type: 'fault', stack: stack.join('\n') } satisfies News, undefined, undefined, () =>
      process.exit(1),
    );
  });
}

/**
 * Gives up the rights of root for good. The kernel then also refuses other processes of the same user to read the memory
 * and the environment of this one.
 */
function become({ uid, gid }: ProxyUser): void {
  process.setgroups!([gid]);
  process.setgid!(gid);
  process.setuid!(uid);
}
