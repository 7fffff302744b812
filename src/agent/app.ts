/** The agent's side of the Agent Client Protocol. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import {
  type AgentApp,
  type AgentContext,
  agent,
  type ContentBlock,
  methods,
  PROTOCOL_VERSION,
  RequestError,
} from '@agentclientprotocol/sdk/unstable';
import type { Clock } from '../base/clock.ts';
import { History } from './history.ts';
import { Model, ModelError } from './model.ts';
import { clientAsPerson } from './person.ts';
import { type Mode, Session } from './session.ts';
import type { AgentSettings } from './settings.ts';
import { systemPrompt } from './system-prompt.ts';
import { toolsFor } from './tools/index.ts';

const STEERING = '_session/steering';
const MODES = [
  { id: 'manual', name: 'Manual', description: 'Asks before commands, changes of files and requests.' },
  { id: 'self-drive', name: 'Self-drive', description: 'Does not ask for permission.' },
];

interface AppParts {
  readonly settings: AgentSettings;
  readonly clock: Clock;
  /** Keeps the conversations: a folder that outlives this process. */
  readonly sessionFolder: string;
}

interface SteeringRequest {
  readonly sessionId: string;
  readonly prompt: readonly ContentBlock[];
}

/** Ready to connect to one client. */
export function agentApp(parts: AppParts): AgentApp {
  const sessions = new Map<string, Session>();
  const model = new Model(parts.settings.gateway, parts.clock);
  let canAsk = false;

  const open = (id: string, folder: string): Session => {
    const { settings, clock, sessionFolder } = parts;
    const session = new Session({
      id,
      folder,
      clock,
      model,
      modelName: settings.model,
      system: systemPrompt(settings.instructions, folder),
      tools: toolsFor(canAsk),
      history: new History(sessionFolder, id),
      contextTokens: settings.contextTokens,
    });
    sessions.set(id, session);
    return session;
  };

  const sessionOf = (id: string): Session => {
    const session = sessions.get(id);
    if (session === undefined) throw RequestError.resourceNotFound(id);
    return session;
  };

  return agent({ name: 'gatehouse-agent' })
    .onRequest(methods.agent.initialize, ({ params }) => {
      canAsk = Boolean(params.clientCapabilities?.elicitation?.form);
      return {
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: 'gatehouse-agent', version: '1' },
        agentCapabilities: { loadSession: true, promptCapabilities: { embeddedContext: true } },
        authMethods: [],
        _meta: { steering: { supported: true } },
      };
    })
    .onRequest(methods.agent.session.new, ({ params }) => {
      const id = randomUUID();
      return { sessionId: id, modes: modesOf(open(id, checkedFolder(params.cwd))) };
    })
    .onRequest(methods.agent.session.load, ({ params, client }) => {
      const { sessionId, cwd } = params;
      if (!sessions.has(sessionId) && !History.exists(parts.sessionFolder, sessionId)) {
        throw RequestError.resourceNotFound(sessionId);
      }
      const session = sessions.get(sessionId) ?? open(sessionId, checkedFolder(cwd));
      replay(session, sessionId, client);
      return { modes: modesOf(session) };
    })
    .onRequest(methods.agent.session.setMode, ({ params }) => {
      const mode = MODES.find(({ id }) => id === params.modeId)?.id;
      if (mode === undefined) throw RequestError.invalidParams({ modeId: params.modeId });
      sessionOf(params.sessionId).mode = mode as Mode;
      return {};
    })
    .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
      const session = sessionOf(params.sessionId);
      try {
        const end = await session.prompt(textOf(params.prompt), clientAsPerson(client, params.sessionId));
        const { input, output, cached } = end.usage;
        const usage = {
          inputTokens: input,
          outputTokens: output,
          cachedReadTokens: cached,
          totalTokens: input + output,
        };
        return { stopReason: end.stopReason, usage };
      } catch (error) {
        if (error instanceof ModelError) throw new RequestError(MODEL_FAILED, error.message, { status: error.status });
        throw error;
      }
    })
    .onRequest(
      STEERING,
      (params) => params as SteeringRequest,
      ({ params }) => ({
        outcome: sessionOf(params.sessionId).steer(textOf(params.prompt)) ? 'injected' : 'not_running',
      }),
    )
    .onNotification(methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.cancel());
}

/** JSON-RPC's code for errors of the application. */
const MODEL_FAILED = -32_010;

function modesOf({ mode }: Session): { currentModeId: string; availableModes: typeof MODES } {
  return { currentModeId: mode, availableModes: MODES };
}

function checkedFolder(cwd: string): string {
  if (!path.isAbsolute(cwd)) throw RequestError.invalidParams({ cwd });
  return cwd;
}

/** Text, and what is referenced by its address. */
function textOf(blocks: readonly ContentBlock[]): string {
  return blocks
    .map((block) => {
      if (block.type === 'text') return block.text;
      if (block.type === 'resource_link') return block.uri;
      if (block.type === 'resource' && 'text' in block.resource) return `${block.resource.uri}\n${block.resource.text}`;
      throw RequestError.invalidParams({ prompt: `content of type ${block.type} is not supported` });
    })
    .join('\n\n');
}

/** Sends the history of a loaded session, as the protocol requires. */
function replay({ messages }: Session, sessionId: string, client: AgentContext): void {
  for (const { role, content } of messages) {
    if (role === 'tool' || content === null) continue;
    const sessionUpdate = role === 'user' ? 'user_message_chunk' : 'agent_message_chunk';
    void client.notify(methods.client.session.update, {
      sessionId,
      update: { sessionUpdate, content: { type: 'text', text: content } },
    });
  }
}
