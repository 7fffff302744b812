/** The plugin `moderation`: a request that the installation's moderation service flags goes to no model. */
import { GatewayError, invalidField } from '../../../base/errors.ts';
import type { Part } from '../../../formats/conversation/conversation.ts';
import type { ConversationRequest } from '../../request.ts';
import type { Plugin } from '../plugin.ts';

/** UTF-16 units of each text; services take no longer ones. */
const MAX_TEXT = 32 * 1024;
const MAX_TEXTS = 32;

export const moderation: Plugin = {
  id: 'moderation',
  parameters: {},
  async beforeRouting({ context, path, parts }) {
    const settings = parts.moderator?.settings() ?? null;
    if (settings === null) {
      throw invalidField(`${path}.id`, 'needs a moderation service, and none is configured (moderation)');
    }
    const texts = userTexts(context.request);
    if (texts.length === 0) return;
    const startedAt = parts.clock.monotonic();
    // A part that was not checked must not pass as checked.
    const verdict = texts.length > MAX_TEXTS ? undefined : await parts.moderator!.check(settings, texts);
    context.moderationMs = parts.clock.monotonic() - startedAt;
    if (verdict === undefined && settings.onFailure === 'refuse') throw unchecked();
    if (verdict?.flagged) throw refusal(verdict.categories);
    const summary = verdict === undefined ? 'could not be checked' : 'nothing was flagged';
    context.addStage({ type: 'plugin', name: 'moderation', summary, data: { checked: verdict !== undefined } });
  },
};

/** What the user says, in pieces that the service takes. */
function userTexts({ format, document }: ConversationRequest): string[] {
  const messages = format.decode(document.exact).messages.filter(({ role }) => role === 'user');
  return messages
    .flatMap(({ parts }) => parts.flatMap(textsOf))
    .filter((text) => text.trim() !== '')
    .flatMap((text) => pieces(text));
}

function textsOf(part: Part): string[] {
  return part.type === 'text' ? [part.text] : [];
}

function pieces(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / MAX_TEXT) }, (_, index) =>
    text.slice(index * MAX_TEXT, (index + 1) * MAX_TEXT),
  );
}

function refusal(categories: readonly string[]): GatewayError {
  const reasons = categories.length === 0 ? '' : `: ${categories.join(', ')}`;
  return new GatewayError('content_policy_violation', `the moderation service has flagged the request${reasons}`, {
    status: 403,
    metadata: { reasons: categories },
  });
}

function unchecked(): GatewayError {
  return new GatewayError('server', 'the request could not be checked by the moderation service', {
    status: 503,
    metadata: { retryable: true },
  });
}
