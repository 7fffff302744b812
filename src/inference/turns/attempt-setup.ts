/** The inputs of one attempt of a conversation at one endpoint. */
import type { Limits } from '../../base/config.ts';
import type { ServedFormat, SpokenFormat, Stamp } from '../../formats/conversation/format.ts';
import type { Framing } from '../../providers/index.ts';
import type { AnswerScreen } from '../answer/answer-screen.ts';
import type { Transcript } from '../answer/transcript.ts';
import type { AttemptOwner } from '../task.ts';
import type { Passage } from './passage.ts';

export interface AttemptSetup {
  served: ServedFormat;
  spoken: SpokenFormat;
  passage: Passage;
  /** The upstream's name for the model. */
  model: string;
  stamp: Stamp;
  stream: boolean;
  /** Names of the declared tools; absent when the request declares none. */
  tools?: readonly string[] | undefined;
  /** Records the content of the answer; absent when content is not logged. */
  transcript?: Transcript | undefined;
  /** Filters the answer before it is shown; absent when no guardrail filters answers. */
  screen?: AnswerScreen | undefined;
  owner: AttemptOwner;
  limits: Limits;
  /** How the provider frames its streams into events; absent for server-sent events. */
  framing?: Framing | undefined;
  /** Decodes a response with an error status. */
  decodeFailure: SpokenFormat['decodeFailure'];
}
