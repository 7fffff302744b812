/** Sandboxes for tests: nothing is isolated and nothing runs, commands wait until they are ended. Archives have a fixed content. */
import { PassThrough } from 'node:stream';
import { GatewayError } from '../../base/errors.ts';
import type { DriverExecution, DriverSandbox, SandboxDriver } from '../../sandboxes/driver.ts';
import type { DriverChoice } from '../../sandboxes/drivers.ts';
import type { Ending } from '../../sandboxes/sandbox.ts';
import { unavailable } from '../../storage/unavailable.ts';

export class ScriptedSandboxes {
  /** Workspaces that exist, by the ids of their sandboxes. */
  readonly workspaces = new Map<string, { owner: string; running: boolean }>();
  /** The commands that run. */
  readonly commands = new Set<DriverExecution>();
  /** How many sandboxes were created. */
  created = 0;
  /** Archives begin when it resolves. */
  archiving: Promise<void> = Promise.resolve();
  /** How many were asked for. */
  archives = 0;
  /** This many creations and archives fail because the database is unreachable. */
  databaseAway = 0;
  /** Thrown by what it names. */
  readonly faults: { create?: string; archive?: string; remove?: string } = {};

  /** For `AppOptions.sandboxDrivers`. */
  get choices(): readonly DriverChoice[] {
    return [{ name: 'scripted', automatic: true, load: async () => this.#driver() }];
  }

  /** What runs ends with the machine of its gateway, which does not notice. */
  crash(): void {
    for (const [id, workspace] of this.workspaces) this.workspaces.set(id, { ...workspace, running: false });
  }

  #driver(): SandboxDriver {
    return {
      examine: async () => ({ driver: 'scripted', isolation: 'a test', problems: [] }),
      create: async ({ id, owner }) => {
        this.#failAway();
        this.#fail('create');
        if (this.workspaces.get(id)?.running) throw new Error(`two sandboxes ${id} run at once`);
        this.created += 1;
        const workspace = { owner, running: true };
        this.workspaces.set(id, workspace);
        return this.#sandbox(id, workspace);
      },
      list: async () => [...this.workspaces].map(([id, workspace]) => ({ id, ...workspace })),
      remove: async (id) => {
        this.#fail('remove');
        this.workspaces.delete(id);
      },
      sweep: async () => 0,
    };
  }

  #sandbox(id: string, workspace: { owner: string; running: boolean }): DriverSandbox {
    const { owner } = workspace;
    const own = new Set<DriverExecution>();
    return {
      exec: async ({ argv }) => {
        if (argv[0] === 'tar') {
          this.archives += 1;
          await this.archiving;
          this.#failAway();
          this.#fail('archive');
        }
        const execution = this.#execution(argv[0] === 'tar' ? 'archived' : argv[0] === 'sh' ? '' : undefined);
        own.add(execution);
        this.commands.add(execution);
        void execution.ended.then(() => this.commands.delete(execution));
        return execution;
      },
      stop: async () => {
        for (const execution of own) execution.end('stopped');
        if (this.workspaces.get(id) === workspace) this.workspaces.set(id, { owner, running: false });
      },
    };
  }

  /** @param output of a command that ends at once */
  #execution(output: string | undefined): DriverExecution {
    const ended = Promise.withResolvers<Ending>();
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    stdin.resume();
    const finish = (ending: Ending) => {
      ended.resolve(ending);
      stdout.end();
      stderr.end();
    };
    if (output !== undefined) {
      stdout.write(output);
      finish({ code: 0, reason: 'exit' });
    }
    return {
      ...{ stdin, stdout, stderr, ended: ended.promise },
      signal: () => finish({ code: null, reason: 'exit' }),
      end: (reason) => finish({ code: null, reason }),
    };
  }

  #failAway(): void {
    if (this.databaseAway === 0) return;
    this.databaseAway -= 1;
    throw unavailable('the database cannot be reached');
  }

  #fail(what: keyof ScriptedSandboxes['faults']): void {
    const message = this.faults[what];
    if (message !== undefined) throw new GatewayError('server', message);
  }
}
