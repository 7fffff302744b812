/**
 * Kill rounds of interns: an intern is brought into a state, something is killed with -9, and the gateway is started again if that was
 * it. Then the intern is where the table says, its workspace is whole, nothing ran twice, and nothing is left when it is deleted.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { connect, embeddedTarget } from '../../src/testing/database/rows.ts';
import {
  type GatewayHome,
  type GatewayProcess,
  gatewayHome,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import { answerBody, ChatStream, chatWith } from '../interns/chat.ts';
import { internsOf } from '../interns/interns.ts';
import { type Obedient, obedient, processesOf, readText } from '../interns/obedient.ts';
import type { Json } from '../workspaces/control.ts';

export type Victim = 'gateway' | 'agent' | 'sandbox' | 'database connections';

const PATIENCE_MS = 90_000;
/** Of the gateway's log, for failures. */
const LAST_LINES = 30;
const CONTENT = 'kept through everything';
/** A workspace whose archive takes a while. */
const BIG = "fs.writeFileSync('big', crypto.randomBytes(60e6))";

/** What the rounds of one test share. */
export interface Place {
  t: TestContext;
  home: GatewayHome;
  obedient: Obedient;
  gateway: GatewayProcess;
  count: number;
}

export async function place(t: TestContext): Promise<Place> {
  const home = await gatewayHome(t);
  const agents = obedient(t);
  const gateway = await startGatewayProcess(t, { home, yaml: agents.yaml });
  return { t, home, obedient: agents, gateway, count: 0 };
}

/** One intern of a round. */
class Subject {
  readonly place: Place;
  readonly id: string;
  /** Turns that it was asked for. */
  readonly turns: string[] = [];
  session: string | undefined;
  stream: ChatStream | undefined;
  call: Json;

  constructor(place: Place, id: string) {
    this.place = place;
    this.id = id;
  }

  get api() {
    return internsOf(this.place.gateway);
  }

  get chat() {
    return chatWith(this.place.gateway, this.id);
  }

  /** Until it is in the state. */
  async reaches(...statuses: string[]): Promise<Json> {
    return until(
      async () => {
        const { status, body } = await this.api.call('GET', `/${this.id}`);
        return statuses.includes(status === 404 ? 'gone' : body.status) && { ...body };
      },
      `the intern is ${statuses.join(' or ')}`,
      PATIENCE_MS,
    ).catch((error: Error) => {
      const said = this.place.gateway.log.filter(({ event }) => event !== 'request').slice(-LAST_LINES);
      throw new Error([error.message, ...said.map((line) => JSON.stringify(line))].join('\n'));
    });
  }

  /** Sends a prompt that leaves a trace of its turn, until it is accepted: an earlier turn may still be ending. */
  async prompt(code: string, more: Json = {}): Promise<ChatStream> {
    const turn = crypto.randomUUID();
    this.turns.push(turn);
    const content = `fs.appendFileSync('turns', '${turn}\\n'); ${code}`;
    const session = this.session !== undefined && { session_id: this.session };
    return until(
      async () => {
        const { response, abort } = await this.chat.send({
          messages: [{ role: 'user', content }],
          ...session,
          ...more,
        });
        if (response.status === 200) {
          this.stream = new ChatStream(response, abort);
          return this.stream;
        }
        const { error } = (await response.json()) as Json;
        assert.equal(error.metadata.retryable, true, JSON.stringify(error));
        return undefined;
      },
      'the prompt is accepted',
      PATIENCE_MS,
    );
  }

  /** Runs a whole turn. */
  async turn(code: string): Promise<string> {
    return this.#ended(await (await this.prompt(code)).ending());
  }

  /** A turn whose prompt may reach an agent that was killed a moment ago: then it is severed, and the caller may retry. */
  async retried(code: string): Promise<string> {
    const ending = await (await this.prompt(code)).ending();
    return ending.error?.metadata.reason === 'stream_severed' ? this.turn(code) : this.#ended(ending);
  }

  #ended({ finish, error, session }: { finish: string; error: Json; session: string }): string {
    assert.equal(finish, 'stop', JSON.stringify(error));
    this.session = session;
    return this.stream!.text();
  }

  /** Of the turns that were asked for, each at most once, and nothing else. */
  checkTurns(): void {
    const seen = this.traces;
    assert.equal(new Set(seen).size, seen.length, 'a turn ran twice');
    assert.deepEqual(
      seen,
      this.turns.filter((turn) => seen.includes(turn)),
    );
  }

  get traces(): string[] {
    const file = path.join(this.place.obedient.workspace(this.id), 'turns');
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  }
}

type Setup = (subject: Subject) => Promise<void>;

async function running(subject: Subject): Promise<void> {
  await subject.api.call('POST', `/${subject.id}/provision`);
  await subject.reaches('running');
  await subject.turn(`fs.writeFileSync('kept', '${CONTENT}')`);
}

async function stopped(subject: Subject): Promise<void> {
  await running(subject);
  assert.equal((await subject.api.call('POST', `/${subject.id}/suspend`)).status, 200);
}

async function again(subject: Subject): Promise<void> {
  await stopped(subject);
  assert.equal((await subject.api.call('POST', `/${subject.id}/provision`)).status, 202);
}

async function instructed(subject: Subject, instructions: object): Promise<void> {
  await stopped(subject);
  await subject.api.call('PATCH', `/${subject.id}`, { instructions: JSON.stringify(instructions) });
  assert.equal((await subject.api.call('POST', `/${subject.id}/provision`)).status, 202);
}

interface Case {
  setup: Setup;
  /** Where it is afterwards, by victim; a victim that is not named does not exist in the state. */
  ends: Partial<Record<Victim, string>>;
  /** What the caller sees of a run. */
  told?: Partial<Record<Victim, (subject: Subject) => Promise<void>>>;
}

const STAYS = (status: string) => ({ gateway: status, 'database connections': status });
const GOES_ON = { gateway: 'running', agent: 'running', sandbox: 'running', 'database connections': 'running' };

const isSevered = async ({ stream }: Subject) => assert.deepEqual(await stream!.reason(), [502, 'stream_severed']);
const completes = async ({ stream }: Subject) => assert.equal((await stream!.ending()).finish, 'stop');
const isUnanswerable = async ({ chat, call, session }: Subject) => {
  const { response, abort } = await chat.send(answerBody(call, session!, 'allow_once'));
  // The gateway may not have noticed yet.
  if (response.status === 200)
    return assert.deepEqual(await new ChatStream(response, abort).reason(), [502, 'stream_severed']);
  const { status, body } = { status: response.status, body: (await response.json()) as Json };
  assert.ok(['interaction_unknown', 'interaction_not_pending'].includes(body.error.metadata.reason), `${status}`);
};

export const CASES: Record<string, Case> = {
  stopped: { setup: stopped, ends: STAYS('stopped') },
  queued: { setup: again, ends: STAYS('running') },
  'provisioning, its sandbox is made': {
    setup: async (subject) => {
      await again(subject);
      await subject.reaches('provisioning', 'running');
    },
    ends: STAYS('running'),
  },
  'provisioning, its agent starts': {
    setup: async (subject) => {
      await instructed(subject, { greetMs: 3_000 });
      const starts = async () => (await subject.reaches('provisioning', 'running')).progress?.step_number !== 2;
      await until(starts, 'the agent starts', PATIENCE_MS);
      await until(() => subject.place.obedient.agents(subject.id).length > 0, 'it runs', PATIENCE_MS);
    },
    ends: { ...STAYS('running'), agent: 'failed', sandbox: 'failed' },
  },
  'running, idle': { setup: running, ends: GOES_ON },
  'running, a turn streams': {
    setup: async (subject) => {
      await running(subject);
      const stream = await subject.prompt("say('half'); while (!fs.existsSync('go')) await sleep(50); say('whole');");
      await until(() => stream.text() === 'half', 'it streams', PATIENCE_MS);
    },
    ends: GOES_ON,
    told: {
      agent: isSevered,
      sandbox: isSevered,
      'database connections': async (subject) => {
        const waiting = subject.stream!;
        await subject.chat.prompt("fs.writeFileSync('go', '')").then((stream) => stream.ending());
        subject.stream = waiting;
        await completes(subject);
      },
    },
  },
  'running, a turn waits for an answer': {
    setup: async (subject) => {
      await running(subject);
      const stream = await subject.prompt("await ask(); say('answered');", { approval_mode: 'manual' });
      const { call, session } = await stream.ending();
      subject.call = call;
      subject.session = session;
    },
    ends: GOES_ON,
    told: {
      ...{ gateway: isUnanswerable, agent: isUnanswerable, sandbox: isUnanswerable },
      'database connections': async (subject) => {
        subject.stream = await subject.chat.answer(subject.call, subject.session!, 'allow_once');
        await completes(subject);
      },
    },
  },
  'running, a turn is being cancelled': {
    setup: async (subject) => {
      await running(subject);
      const stream = await subject.prompt("stubborn(); say('half'); await new Promise(() => {});");
      await until(() => stream.text() === 'half', 'it streams', PATIENCE_MS);
      stream.leave();
    },
    ends: GOES_ON,
  },
  failed: {
    setup: async (subject) => {
      await instructed(subject, { exit: true });
      await subject.reaches('failed');
    },
    ends: STAYS('failed'),
  },
  destroying: {
    setup: async (subject) => {
      await running(subject);
      await subject.turn(BIG);
      assert.equal((await subject.api.call('DELETE', `/${subject.id}`)).status, 202);
      await subject.reaches('destroying', 'gone');
    },
    ends: STAYS('gone'),
  },
  destroy_failed: {
    setup: async (subject) => {
      await stopped(subject);
      rmSync(path.dirname(subject.place.obedient.workspace(subject.id)), { recursive: true });
      assert.equal((await subject.api.call('DELETE', `/${subject.id}`)).status, 202);
      await subject.reaches('destroy_failed');
    },
    ends: STAYS('destroy_failed'),
  },
};

/** @param delayMs after which the victim is killed, in the state */
export async function killRound(place: Place, name: string, victim: Victim, delayMs = 0): Promise<void> {
  const { setup, ends, told } = CASES[name]!;
  place.count += 1;
  const { id } = await internsOf(place.gateway).made({ name: `round-${place.count}` });
  const subject = new Subject(place, id);
  await setup(subject);
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  await kill(subject, victim);
  await told?.[victim]?.(subject);
  const status = ends[victim]!;
  await subject.reaches(status);
  if (status === 'gone') return ended(subject);
  subject.checkTurns();
  if (status === 'running') {
    await until(() => !hasTwo(subject), 'one agent at most', PATIENCE_MS);
    assert.equal(await subject.retried("say(fs.readFileSync('kept', 'utf8'))"), CONTENT);
    subject.checkTurns();
    assert.equal(subject.traces.at(-1), subject.turns.at(-1));
    assert.equal(hasTwo(subject), false);
  } else if (status !== 'destroy_failed') {
    const kept = readFileSync(path.join(place.obedient.workspace(id), 'kept'), 'utf8');
    assert.equal(kept, CONTENT);
  }
  const deletion = await subject.api.call('DELETE', `/${id}`, {
    acknowledge_workspace_loss: status === 'destroy_failed',
  });
  assert.equal(deletion.status, 202);
  await subject.reaches('gone');
  await ended(subject);
}

/** Its agent runs in two sandboxes. */
function hasTwo({ place: { obedient: agents }, id }: Subject): boolean {
  const own = agents.agents(id).map((pid) => readText(`/proc/${pid}/cmdline`));
  return own.filter((line) => line.startsWith('node\0')).length > 1;
}

async function kill(subject: Subject, victim: Victim): Promise<void> {
  const { place } = subject;
  if (victim === 'gateway') {
    await place.gateway.end('SIGKILL');
    place.gateway = await startGatewayProcess(place.t, { home: place.home });
    return;
  }
  if (victim === 'database connections') return cutDatabase(place);
  const pids = place.obedient.agents(subject.id);
  assert.notEqual(pids.length, 0, 'the agent runs');
  // The first process of a sandbox ends all others with it.
  process.kill(victim === 'sandbox' ? Math.min(...pids) : Math.max(...pids), 'SIGKILL');
}

async function cutDatabase({ home }: Place): Promise<void> {
  const client = await connect(await embeddedTarget(home));
  try {
    const sql = 'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()';
    await client.query(`${sql} and pid <> pg_backend_pid()`);
  } finally {
    await client.end();
  }
}

/** Nothing of it runs, or is there. */
async function ended({ place, id }: Subject): Promise<void> {
  const box = path.dirname(place.obedient.workspace(id));
  await until(() => place.obedient.agents(id).length === 0, 'no process is left', PATIENCE_MS);
  await until(() => processesOf(path.basename(box)).length === 0, 'no process of the sandbox is left', PATIENCE_MS);
  assert.equal(existsSync(box), false);
  const client = await connect(await embeddedTarget(place.home));
  try {
    const counts = `select (select count(*) from intern_holders where intern_id = $1)::int as holders,
      (select count(*) from key_aliases a join api_keys k on k.id = a.key_id where k.intern_id = $1)::int as secrets`;
    const { rows } = await client.query(counts, [id]);
    assert.deepEqual(rows, [{ holders: 0, secrets: 0 }]);
  } finally {
    await client.end();
  }
}
