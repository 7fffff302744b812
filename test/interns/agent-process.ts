/** An agent as a process without a sandbox: its program runs from where it is on this machine. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type {
  AgentAnswer,
  AgentConnection,
  AgentEvents,
  AgentProfile,
  AgentQuestion,
  AgentSettings,
  AgentSurroundings,
} from '../../src/interns/agents/index.ts';

export interface RunningAgent {
  readonly connection: AgentConnection;
  readonly child: { readonly pid?: number | undefined; kill(signal: 'SIGKILL'): boolean };
  stop(): Promise<void>;
}

/** @param user some agents refuse to run as root */
export async function startAgent(
  profile: AgentProfile,
  settings: AgentSettings,
  places: Omit<AgentSurroundings, 'node'>,
  user?: number,
): Promise<RunningAgent> {
  const surroundings = { node: process.execPath, ...places };
  const { argv, environment, programs, files } = profile.command(settings, surroundings);
  for (const [file, content] of Object.entries(files)) {
    const created = mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
    if (user !== undefined)
      for (const made of [created, path.dirname(file), file]) if (made) chownSync(made, user, user);
  }
  const here = (word: string) =>
    programs.reduce((text, { name, path: from }) => text.replace(`/opt/${name}`, from), word);
  const [program = '', ...args] = argv.map(here);
  const child = spawn(program, args, {
    cwd: places.workspace,
    env: { PATH: process.env['PATH'], HOME: places.home, ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(user === undefined ? {} : { uid: user, gid: user }),
  });
  const exited = once(child, 'exit');
  const connection = await profile.connect({ stdin: child.stdin, stdout: child.stdout, exited }, surroundings);
  const stop = async () => {
    connection.close();
    child.stdin.end();
    // Some agents do not end with their input.
    child.kill('SIGTERM');
    await exited;
  };
  return { connection, child, stop };
}

/** The events of one prompt. Questions get the answers in turn. */
export class Heard implements AgentEvents {
  text = '';
  thought = '';
  models: string[] = [];
  readonly questions: AgentQuestion[] = [];
  readonly #answers: AgentAnswer[];

  constructor(...answers: AgentAnswer[]) {
    this.#answers = answers;
  }

  content(text: string): void {
    this.text += text;
  }
  reasoning(text: string): void {
    this.thought += text;
  }
  model(name: string): void {
    this.models.push(name);
  }
  question(question: AgentQuestion, reply: (answer: AgentAnswer) => void): void {
    this.questions.push(question);
    const answer = this.#answers.shift();
    if (answer !== undefined) reply(answer);
  }
}

export const option = (chosen: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always') =>
  ({ action: 'option', option: chosen }) as const;
