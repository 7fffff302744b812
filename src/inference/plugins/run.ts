/** Runs the steps of the plugins that a request asks for. */
import type { Conversation } from '../../formats/conversation/conversation.ts';
import type { EarlyRunning } from '../before-turns.ts';
import type { Admission, RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { ConversationRequest } from '../request.ts';
import type { Candidate } from '../routing/index.ts';
import type {
  AdmissionParts,
  AdmissionStep,
  AnswerRevision,
  Paying,
  PluginStep,
  RequestedPlugin,
  TurnJudge,
} from './plugin.ts';

interface Running {
  context: RequestContext<ConversationRequest>;
  parts: InferenceParts;
  early: EarlyRunning;
  candidates(): readonly Candidate[];
}

/** Runs the steps before guardrail filters, one after the other. Undefined if there is nothing to wait for. */
export function beforeFilters(
  plugins: readonly RequestedPlugin[],
  context: Admission<ConversationRequest>,
  parts: AdmissionParts,
  paying: Paying | undefined,
): undefined | Promise<void> {
  const asked = plugins.filter(({ plugin }) => plugin.beforeFilters !== undefined);
  return asked.length === 0 ? undefined : inOrder(asked, { context, parts, paying });
}

async function inOrder(
  plugins: readonly RequestedPlugin[],
  step: Omit<AdmissionStep, 'settings' | 'path'>,
): Promise<void> {
  for (const { plugin, settings, path } of plugins) await plugin.beforeFilters!({ ...step, settings, path });
}

/** Runs the steps before routing, one after the other. Rejects with GatewayError. */
export async function runPlugins(plugins: readonly RequestedPlugin[], running: Running): Promise<void> {
  for (const { plugin, settings, path } of plugins) {
    const step: PluginStep = { ...running, settings, path };
    await plugin.beforeRouting?.(step);
    running.early.signal.throwIfAborted();
  }
}

/** The revision of one answer by the plugins; undefined if none changes it. */
export function revisionOf(
  context: RequestContext<ConversationRequest>,
  conversation: () => Conversation,
): AnswerRevision | undefined {
  const { plugins } = context.request;
  if (plugins === undefined) return undefined;
  const revisions = plugins.flatMap(({ plugin, settings }) => {
    const revision = plugin.revise?.({ conversation: conversation(), context, settings });
    return revision ?? [];
  });
  // The plugin that changed the request last is the closest to the model.
  return revisions.length <= 1 ? revisions[0] : inTurn(revisions.reverse());
}

/** The judge of the turns of one answer; undefined for most requests. */
export function judgeOf(context: RequestContext<ConversationRequest>, parts: InferenceParts): TurnJudge | undefined {
  for (const { plugin, settings } of context.request.plugins ?? []) {
    if (plugin.judge !== undefined) return plugin.judge({ context, settings, parts });
  }
  return undefined;
}

function inTurn(revisions: readonly AnswerRevision[]): AnswerRevision {
  return {
    take: (events) => revisions.reduce((taken, revision) => revision.take(taken), events),
    turn: (turn) => revisions.reduce((taken, revision) => revision.turn(taken), turn),
  };
}
