import type { Clock } from '../../base/clock.ts';
import type { Limits } from '../../base/config.ts';
import type { GatewayError } from '../../base/errors.ts';
import type { Egress } from '../../egress/index.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Closing } from '../../formats/conversation/format.ts';
import type { CallPlan, DirectFormatId, WholeBody } from '../../formats/direct/index.ts';
import type { Hit } from '../../guardrails/index.ts';
import type { Framing } from '../../providers/index.ts';
import type { Transcript } from '../answer/transcript.ts';
import type { AttemptOwner } from '../task.ts';

/** The setup of an attempt of an operation with a single public format. */
export interface DirectAttemptSetup<Answer> {
  format: DirectFormatId;
  plan: CallPlan<Answer>;
  decodeFailure(status: number, body: string, headers: Readonly<Record<string, string>>): UpstreamFailure;
  encodeReply(answer: Answer, closing: Closing): WholeBody;
  /** Of the complete reply; default JSON. */
  mediaType?(answer: Answer): string;
  events?: { whole?: true; end(answer: Answer, closing: Closing): string; failure(error: GatewayError): string };
  /** Filters the complete answer; streams of such answers are not read as streams. Absent: no filter applies. */
  screen?: { answer(answer: Answer): Answer; readonly hits: readonly Hit[] } | undefined;
  /** The content of the complete answer, if it is logged. */
  transcribe?: ((answer: Answer) => Transcript) | undefined;
  /** Of the job that the plan continues; undefined if it begins one. */
  upstreamId?: string | undefined;
  /** The client asked for a stream. */
  stream: boolean;
  owner: AttemptOwner;
  clock: Clock;
  egress: Egress;
  limits: Limits;
  framing?: Framing | undefined;
  /** The provider's total timeout, shared by all calls of one answer. */
  totalMs: number;
}
