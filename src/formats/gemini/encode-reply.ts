/** Encodes a complete answer for a client of the format. */
import { GatewayError } from '../../base/errors.ts';
import type { Choice, Logprobs, Turn } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf } from '../conversation/fields.ts';
import type { Closing, Stamp } from '../conversation/format.ts';
import { encodeUsage } from './encode-usage.ts';
import { encodeFinish } from './finish.ts';
import { PartWriter } from './part-writer.ts';

/** @throws GatewayError for an answer that failed without any content */
export function encodeReply(turn: Turn, stamp: Stamp, closing: Closing): Fields {
  if (turn.choices.some(({ finish, parts }) => finish.unified === 'error' && parts.length === 0)) {
    throw new GatewayError('provider_unavailable', 'the provider ended its answer with an error');
  }
  return {
    candidates: turn.choices.map((choice, index) => candidateOf(choice, index, shows(stamp))),
    ...headOf(stamp, turn.created),
    usageMetadata: encodeUsage(closing.usage ?? turn.usage, closing, turn.serviceTier),
    ...metadataOf(closing),
  };
}

/** The members of every reply and event besides its candidates. */
export function headOf(stamp: Stamp, created: number = stamp.created): Fields {
  return {
    modelVersion: stamp.model,
    responseId: stamp.id,
    createTime: new Date(created * 1_000).toISOString(),
    provider: stamp.provider,
  };
}

/** Whether the request asks for thoughts (`ServedFormat.echo`). */
export function shows(stamp: Stamp): boolean {
  return stamp.echo === undefined || stamp.echo()['includeThoughts'] === true;
}

export function metadataOf({ metadata }: Closing): Fields {
  return metadata === undefined ? {} : { [metadata.key]: metadata.value };
}

function candidateOf({ parts, finish, logprobs }: Choice, index: number, thoughts: boolean): Fields {
  const writer = new PartWriter(thoughts);
  const written = parts.flatMap((part, at) => [...writer.start(at, part), ...writer.stop(at)]);
  const shown = logprobs && logprobsOf(logprobs);
  return {
    // SDKs reject a candidate without parts.
    content: { role: 'model', parts: written.length === 0 ? [{ text: '' }] : written },
    finishReason: encodeFinish(finish),
    index,
    ...writer.grounding.members,
    ...(shown && { logprobsResult: shown }),
  };
}

/** Converts log probabilities of the chat format, which the conversation uses. */
export function logprobsOf({ content }: Logprobs): Fields | undefined {
  const list = listOf(content).filter(isFields);
  if (list.length === 0) return undefined;
  const shown = ({ token, logprob }: Fields) => ({ token, logProbability: logprob });
  return {
    chosenCandidates: list.map(shown),
    topCandidates: list.map((each) => ({ candidates: listOf(each['top_logprobs']).map(fieldsOf).map(shown) })),
  };
}
