/** What one try of a conversation at one endpoint works with. */
import type { Limits } from '../base/config.ts';
import type { ServedFormat, SpokenFormat, Stamp } from '../formats/conversation/format.ts';
import type { Framing } from '../providers/index.ts';
import type { AnswerScreen } from './answer-screen.ts';
import type { AttemptOwner } from './task.ts';
import type { Transcript } from './transcript.ts';
import type { Passage } from './translate.ts';

export interface AttemptSetup {
  served: ServedFormat;
  spoken: SpokenFormat;
  passage: Passage;
  /** The upstream's own name of the model. */
  model: string;
  stamp: Stamp;
  stream: boolean;
  /** Names of the declared tools; absent: there are none. */
  tools?: readonly string[] | undefined;
  /** Writes down what the answer says; absent: nobody wants it. */
  transcript?: Transcript | undefined;
  /** Looks through the answer before anybody sees it; absent: no guardrail asks for that. */
  screen?: AnswerScreen | undefined;
  owner: AttemptOwner;
  limits: Limits;
  /** How the provider cuts its streams into events; absent: server-sent events. */
  framing?: Framing | undefined;
  /** Reads an answer with an error status. */
  decodeFailure: SpokenFormat['decodeFailure'];
}
