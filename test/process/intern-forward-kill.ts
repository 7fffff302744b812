/**
 * Two gateway processes on one database, of which one holds an intern and the other passes requests on to it, until one of them, or both,
 * are killed with -9. Then the run has ended as its caller was told, another process takes the intern over, and nothing ran twice.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { startEmbedded } from '../../src/storage/embedded.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { databaseUrl } from '../../src/testing/database/database.ts';
import { type GatewayProcess, gatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { chatWith } from '../interns/chat.ts';
import { internsOf } from '../interns/interns.ts';
import { obedient } from '../interns/obedient.ts';

const PATIENCE_MS = 90_000;

/** Who dies, seen from a stream that one process passes on. */
export type Fallen = 'holder' | 'forwarder' | 'both';

/** Each round: a stream through the process that does not hold the intern, deaths in the middle of it, and the next prompt. */
export async function killForwarding(t: TestContext, rounds: readonly Fallen[]): Promise<void> {
  const storage = await gatewayHome(t);
  const server = await startEmbedded({ dataFolder: storage.dataDir, clock, log });
  storage.closers?.push(() => server.stop());
  const env = {
    DATABASE_URL: databaseUrl({ socketFolder: server.socketFolder }),
    GATEHOUSE_KEK: randomBytes(32).toString('base64'),
  };
  const agents = obedient(t);
  const start = async () => startGatewayProcess(t, { home: await gatewayHome(t, false), yaml: agents.yaml, env });
  let [holder, forwarder] = [await start(), undefined as GatewayProcess | undefined];
  const { made, reaches } = internsOf(holder);
  const { id } = await made({ name: 'shared', provision: true });
  await reaches(id, 'running', PATIENCE_MS);

  const turns: string[] = [];
  const traced = (code: string) => {
    turns.push(crypto.randomUUID());
    return `fs.appendFileSync('turns', '${turns.at(-1)}\\n'); ${code}`;
  };
  const traces = () => {
    const file = path.join(agents.workspace(id), 'turns');
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  };
  for (const fallen of rounds) {
    forwarder ??= await start();
    const stream = await chatWith(forwarder, id).prompt(traced("say('half'); await new Promise(() => {});"), {
      session_id: 'session',
    });
    await until(() => stream.text() === 'half', 'it streams', PATIENCE_MS);
    const [before] = agents.agents(id);
    if (fallen !== 'forwarder') await holder.end('SIGKILL');
    if (fallen !== 'holder') await forwarder.end('SIGKILL');
    if (fallen === 'holder') {
      assert.deepEqual(await stream.reason(), [502, 'stream_severed']);
      assert.equal((await stream.ending()).session, 'session');
      holder = forwarder;
    }
    if (fallen === 'both') holder = await start();
    if (fallen !== 'forwarder') await until(() => !agents.agents(id).includes(before!), 'its agent has ended');

    // The run of a client that is gone is being cancelled for a moment.
    const next = await until(
      async () => {
        const messages = [{ role: 'user', content: traced("say('next')") }];
        const { status, body } = await accepted(chatWith(holder, id).send({ messages, session_id: 'session' }));
        if (status !== 200) turns.pop();
        return body;
      },
      'the next prompt is accepted',
      PATIENCE_MS,
    );
    assert.match(next, /"content":"next"/);
    assert.match(next, /"finish_reason":"stop"/);
    assert.deepEqual(traces(), turns, 'each turn ran once');
    if (fallen !== 'forwarder' || forwarder.ended) forwarder = undefined;
  }
}

/** The body of a response that was accepted, read to its end. */
async function accepted(sent: Promise<{ response: Response }>): Promise<{ status: number; body: string | undefined }> {
  const { response } = await sent;
  const body = await response.text();
  if (response.status !== 200) assert.equal(JSON.parse(body).error.metadata.retryable, true, body);
  return { status: response.status, body: response.status === 200 ? body : undefined };
}
