/** A model for agents with tools of their own: it finds the tool that a step of its script needs in each request. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';

interface DeclaredTool {
  name: string;
  parameters?: { properties?: object };
}

export interface ModelRequest {
  tools?: { function: DeclaredTool }[];
  messages: unknown[];
  stream?: boolean;
}

/** What the tools of an agent are used for, whatever they are called. */
export interface AgentTools {
  /** @param consent whether to ask for it, for agents that ask only where their model does */
  shell(command: string, consent?: boolean): Told;
  /** Undefined if the agent cannot ask. */
  ask?(question: string, choices: readonly string[]): Told;
}

export type Step = (tools: AgentTools) => Told;

/** Answers requests with tools as scripted, and those without, such as for a title, with some text. */
export class ScriptedModel {
  /** Those with tools. */
  readonly requests: ModelRequest[] = [];
  turns: Step[] = [];
  readonly #server = http.createServer((request, response) => void this.#answer(request, response));

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return urlOf(this.#server);
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString()) as ModelRequest;
    const told = isExtra(body) ? { text: 'A title' } : this.#next(body);
    const { headers, chunks } = answerOf('chat', body.stream === true, told);
    response.writeHead(200, headers).end((chunks as string[]).join(''));
  }

  #next(body: ModelRequest): Told {
    this.requests.push(body);
    const tools = (body.tools ?? []).map((tool) => tool.function);
    const id = `call_${this.requests.length}`;
    return this.turns.shift()?.(toolsOf(tools, id)) ?? { text: 'Nothing is left.' };
  }
}

function toolsOf(declared: readonly DeclaredTool[], id: string): AgentTools {
  const propertiesOf = ({ parameters }: DeclaredTool) => Object.keys(parameters?.properties ?? {});
  const having = (...names: string[]) =>
    declared.find((tool) => names.some((name) => propertiesOf(tool).includes(name)));
  const use = (tool: DeclaredTool, values: object): Told => {
    const args = Object.fromEntries(Object.entries(values).filter(([name]) => propertiesOf(tool).includes(name)));
    return { calls: [{ id, name: tool.name, arguments: JSON.stringify(args) }] };
  };
  const asking = having('question', 'questions');
  return {
    shell(command, consent = false) {
      const tool = having('command', 'cmd');
      assert.ok(tool, `no shell among ${declared.map(({ name }) => name).join(' ')}`);
      const asking = consent && { sandbox_permissions: 'require_escalated', justification: 'It writes files' };
      return use(tool, { command, cmd: command, description: 'Does it', is_background: false, ...asking });
    },
    ...(asking && {
      ask(question: string, choices: readonly string[]) {
        const options = choices.map((label) => ({ label, description: `Choose ${label}` }));
        const questions = [{ question, header: 'Choice', options, multiSelect: false, multiple: false }];
        return use(asking, { question, choices, questions });
      },
    }),
  };
}

/** What agents ask on the side: a title of the session, a guess at the next prompt. */
function isExtra({ tools = [], messages }: ModelRequest): boolean {
  return tools.length === 0 || JSON.stringify(messages.at(-1)).includes('[SUGGESTION MODE');
}

export function urlOf(server: http.Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
