/** Runs the steps of the plugins that a request asks for. */
import type { Conversation } from '../../formats/conversation/conversation.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { ConversationRequest } from '../request.ts';
import type { Candidate } from '../routing/index.ts';
import type { AnswerRevision, PluginStep, RequestedPlugin } from './plugin.ts';

interface Running {
  context: RequestContext<ConversationRequest>;
  parts: InferenceParts;
  candidates(): readonly Candidate[];
}

/** Runs the steps before routing, one after the other. Rejects with GatewayError. */
export async function runPlugins(plugins: readonly RequestedPlugin[], running: Running): Promise<void> {
  for (const { plugin, settings, path } of plugins) {
    const step: PluginStep = { ...running, settings, path };
    await plugin.beforeRouting?.(step);
  }
}

/** What the plugins change in one answer; undefined if nothing. */
export function revisionOf(
  context: RequestContext<ConversationRequest>,
  conversation: () => Conversation,
): AnswerRevision | undefined {
  const { plugins } = context.request;
  if (plugins === undefined) return undefined;
  const revisions = plugins.flatMap(({ plugin, settings }) => {
    const revision = plugin.revise?.({
      conversation: conversation(),
      settings,
      acted: (stage) => context.addStage(stage),
    });
    return revision ?? [];
  });
  return revisions.length <= 1 ? revisions[0] : inTurn(revisions);
}

function inTurn(revisions: readonly AnswerRevision[]): AnswerRevision {
  return {
    take: (events) => revisions.reduce((taken, revision) => revision.take(taken), events),
    turn: (turn) => revisions.reduce((taken, revision) => revision.turn(taken), turn),
  };
}
