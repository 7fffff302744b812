/** The protocol's client, as the session sees it: what is shown becomes notifications, questions become requests. */
import {
  type AgentContext,
  methods,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk/unstable';
import type { ToolCall } from './message.ts';
import type { PermissionAnswer, Person } from './session.ts';

const OPTIONS: readonly { optionId: PermissionAnswer; name: string; kind: PermissionAnswer }[] = [
  { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'allow_always', name: 'Allow for this session', kind: 'allow_always' },
  { optionId: 'reject_once', name: 'Reject', kind: 'reject_once' },
  { optionId: 'reject_always', name: 'Reject for this session', kind: 'reject_always' },
];

export function clientAsPerson(client: AgentContext, sessionId: string): Person {
  const show = (update: SessionUpdate) => void client.notify(methods.client.session.update, { sessionId, update });
  return {
    content: (text) => show({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }),
    reasoning: (text) => show({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text } }),
    model: (name) => show({ sessionUpdate: 'session_info_update', _meta: { model: name } }),
    toolStarted: (call, tool, title) =>
      show({
        sessionUpdate: 'tool_call',
        toolCallId: call.id,
        title,
        kind: tool?.kind ?? 'other',
        status: 'in_progress',
        rawInput: inputOf(call),
      }),
    toolEnded: ({ id }, result, failed) =>
      show({
        sessionUpdate: 'tool_call_update',
        toolCallId: id,
        status: failed ? 'failed' : 'completed',
        content: [{ type: 'content', content: { type: 'text', text: result } }],
      }),
    async permission(call, tool, title) {
      const toolCall = { toolCallId: call.id, title, kind: tool.kind, name: tool.name, rawInput: inputOf(call) };
      const request: RequestPermissionRequest = { sessionId, toolCall, options: [...OPTIONS] };
      const { outcome } = await client.request(methods.client.session.requestPermission, request);
      return outcome.outcome === 'selected'
        ? (OPTIONS.find(({ optionId }) => optionId === outcome.optionId)?.kind ?? null)
        : null;
    },
    async ask(message, choices) {
      const answered = await client.request(methods.client.elicitation.create, {
        mode: 'form',
        sessionId,
        message,
        requestedSchema: {
          type: 'object',
          properties: { answer: { type: 'string', ...(choices === null ? {} : { enum: [...choices] }) } },
          required: ['answer'],
        },
      });
      const content = answered.action === 'accept' ? (answered['content'] as Record<string, unknown> | null) : null;
      return content === null ? null : String(content['answer']);
    },
  };
}

/** For people who look at the call; it is checked elsewhere. */
function inputOf({ function: { arguments: text } }: ToolCall): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
