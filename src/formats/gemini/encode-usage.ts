/** `usageMetadata` for a client, and the gateway's members in it. */
import type { Usage } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { type Closing, costMembers } from '../conversation/format.ts';
import { serverToolCounts } from '../conversation/server-tool-counts.ts';

/** The record of an answer; a service's own record is kept. @param tier that served the answer */
export function encodeUsage(usage: Usage | undefined, { cost }: Closing, tier?: string | null): Fields {
  return { ...(usage && countsOf(usage)), ...(tier != null && { serviceTier: tier }), ...costMembers(cost) };
}

function countsOf(usage: Usage): Fields {
  if (usage.native?.origin === 'gemini') return usage.native.value;
  const { input, cacheRead, cacheWrite5m, cacheWrite1h, output } = usage;
  // Thoughts are counted apart from candidates, so there cannot be more of them than there is output.
  const reasoning = Math.min(usage.reasoning, output);
  const written = cacheWrite5m + cacheWrite1h;
  const prompt = input + cacheRead + written;
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: output - reasoning,
    totalTokenCount: prompt + output,
    ...(cacheRead > 0 && { cachedContentTokenCount: cacheRead }),
    ...(written > 0 && { cacheWriteTokenCount: written }),
    ...(reasoning > 0 && { thoughtsTokenCount: reasoning }),
    ...details('promptTokensDetails', prompt, usage.inputAudio, usage.inputImage),
    ...details('candidatesTokensDetails', output - reasoning, usage.outputAudio, usage.outputImage),
    ...withCounts(serverToolCounts(usage)),
  };
}

/** Present only for more than text. */
function details(member: string, total: number, audio = 0, image = 0): Fields {
  if (audio + image === 0) return {};
  const text = Math.max(total - audio - image, 0);
  const counts: [string, number][] = [
    ['TEXT', text],
    ['AUDIO', audio],
    ['IMAGE', image],
  ];
  const list = counts.flatMap(([modality, tokenCount]) => (tokenCount > 0 ? [{ modality, tokenCount }] : []));
  return { [member]: list };
}

function withCounts(counts: Fields | undefined): Fields {
  return counts === undefined ? {} : { server_tool_use: counts };
}
