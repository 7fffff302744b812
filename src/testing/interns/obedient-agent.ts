#!/usr/bin/env node
/**
 * An agent for tests that runs as a program, in a real sandbox: each prompt is JavaScript, which it runs. It speaks the Agent Client
 * Protocol by hand, so that it can break it. A file of its own without imports of this project: sandboxes see only its folder.
 *
 * In scope of a prompt:
 *  - `say(text)`, `ask(options)` (a permission; resolves with the outcome), `elicit(message, fields)`, `raw(text)` (writes as it is)
 *  - `cancelled`: resolves when the turn is to end; `stubborn()`: it does not end for that
 *  - `note`: what the gateway has put before the prompt
 *  - `fs`, `net`, `http`, `crypto`, `child` (of `child_process`), `sleep(ms)`
 *
 * Its instructions can be JSON: `greetMs` delays its greeting, `exit` ends it instead.
 */
import child from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

interface Message {
  id?: number;
  method?: string;
  params?: { sessionId: string; prompt: { text: string }[] };
  result?: unknown;
}

const HOME = process.env['HOME'] ?? '';
const SESSIONS = `${HOME}/sessions`;
/** Of the gateway, before a prompt. */
const NOTE = /^\(Note from the gateway: .*\)\n/;
const CANCELLED = { outcome: { outcome: 'cancelled' } };

const instructions = readInstructions();
const answers = new Map<number, (result: unknown) => void>();
const cancels = new Map<string, () => void>();
let lastId = 0;

fs.mkdirSync(SESSIONS, { recursive: true });
fs.appendFileSync(`${HOME}/starts`, 'started\n');
if (instructions.exit) process.exit(3);

const raw = (text: string) => process.stdout.write(text);
const send = (message: object) => raw(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

function request(method: string, params: object): Promise<unknown> {
  lastId += 1;
  send({ id: lastId, method, params });
  return new Promise((resolve) => void answers.set(lastId, resolve));
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line) as Message;
  if (message.method === undefined) answers.get(message.id!)?.(message.result ?? CANCELLED);
  else void handle(message);
});

async function handle({ id, method, params }: Message): Promise<void> {
  try {
    const result = await answer(method, params!);
    if (id !== undefined) send({ id, result });
  } catch (error) {
    send({ id, error: { code: -32_000, message: String((error as Error).message) } });
  }
}

async function answer(method: string | undefined, params: NonNullable<Message['params']>): Promise<object> {
  const { sessionId } = params;
  if (method === 'initialize') {
    await sleep(instructions.greetMs ?? 0);
    return { protocolVersion: 1, agentCapabilities: { loadSession: true }, authMethods: [] };
  }
  if (method === 'session/new') {
    const created = crypto.randomUUID();
    fs.writeFileSync(`${SESSIONS}/${created}`, '');
    return { sessionId: created };
  }
  if (method === 'session/load') {
    fs.accessSync(`${SESSIONS}/${sessionId}`);
    return {};
  }
  if (method === 'session/cancel') cancels.get(sessionId)?.();
  return method === 'session/prompt' ? turn(sessionId, params.prompt[0]!.text) : {};
}

async function turn(sessionId: string, code: string): Promise<object> {
  const cancelled = new Promise<void>((resolve) => void cancels.set(sessionId, resolve));
  let isStubborn = false;
  const update = (update: object) => send({ method: 'session/update', params: { sessionId, update } });
  const scope = {
    ...{ note: NOTE.exec(code)?.[0] ?? '', raw, cancelled, child, crypto, fs, http, net, sleep, sessionId },
    say: (text: string) => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }),
    stubborn: () => {
      isStubborn = true;
    },
    ask: (kinds: string[] = ['allow_once', 'reject_once']) =>
      request('session/request_permission', {
        sessionId,
        toolCall: { toolCallId: 'call', kind: 'execute', title: 'a command' },
        options: kinds.map((kind) => ({ optionId: kind, name: kind, kind })),
      }),
    elicit: (message: string, properties: object) =>
      request('elicitation/create', {
        ...{ sessionId, message, mode: 'form' },
        requestedSchema: { type: 'object', properties, required: Object.keys(properties) },
      }),
  };
  const run = new Function(...Object.keys(scope), `return (async () => { ${code.replace(NOTE, '')} })()`) as (
    ...values: unknown[]
  ) => Promise<unknown>;
  const ended = run(...Object.values(scope)).then(() => 'end_turn');
  const stopped = cancelled.then(() => (isStubborn ? new Promise<string>(() => {}) : 'cancelled'));
  return { stopReason: await Promise.race([ended, stopped]) };
}

function readInstructions(): { greetMs?: number; exit?: boolean } {
  try {
    return JSON.parse(fs.readFileSync(`${HOME}/AGENTS.md`, 'utf8'));
  } catch {
    return {};
  }
}
