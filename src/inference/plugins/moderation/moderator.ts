/**
 * Sends texts to the installation's moderation service, in the format of OpenAI's `/moderations`, to learn whether they
 * break its rules.
 */
import type { ModerationSettings } from '../../../base/config.ts';
import type { Egress } from '../../../egress/index.ts';
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';

const TIMEOUT_MS = 10_000;
const MAX_REPLY_BYTES = 1024 * 1024;

interface Verdict {
  flagged: boolean;
  /** Names of the broken rules, as the service calls them. */
  categories: string[];
}

export interface Moderator {
  /** As currently configured; null if it is not. */
  settings(): ModerationSettings | null;
  /** Undefined if the service did not answer with a verdict for each text. */
  check(settings: ModerationSettings, texts: readonly string[]): Promise<Verdict | undefined>;
}

/** @param egress for addresses of the operator, which may be private */
export function createModerator(egress: Egress, settings: () => ModerationSettings | null): Moderator {
  return { settings, check: (current, texts) => check(egress, current, texts) };
}

async function check(
  egress: Egress,
  { url, apiKey, model }: ModerationSettings,
  texts: readonly string[],
): Promise<Verdict | undefined> {
  try {
    const { status, body } = await egress.request({
      url: `${url}/moderations`,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey !== null && { authorization: `Bearer ${apiKey.reveal()}` }),
      },
      body: JSON.stringify({ ...(model !== null && { model }), input: texts }),
      maxBytes: MAX_REPLY_BYTES,
      timeoutMs: TIMEOUT_MS,
    });
    return status === 200 ? verdictIn(JSON.parse(body.toString('utf8')), texts.length) : undefined;
  } catch {
    return undefined;
  }
}

function verdictIn(reply: unknown, count: number): Verdict | undefined {
  const results = listOf(fieldsOf(reply)['results']).map(fieldsOf);
  if (results.length !== count || results.some(({ flagged }) => typeof flagged !== 'boolean')) return undefined;
  const broken = results.flatMap(({ categories }) =>
    Object.entries(fieldsOf(categories)).flatMap(([name, is]) => (is === true ? [name] : [])),
  );
  return { flagged: results.some(({ flagged }) => flagged === true), categories: [...new Set(broken)] };
}
