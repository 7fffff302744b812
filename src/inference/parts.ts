/** What the pipeline works with; put together in `app.ts`. */
import type { Caller } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import type { HostSettings, Limits, PromptCachingMode } from '../base/config.ts';
import type { EndOfTurn } from '../base/end-of-turn.ts';
import type { Log } from '../base/log.ts';
import type { Nano } from '../base/money.ts';
import type { OwnKeys } from '../byok/index.ts';
import type { ResponseCache } from '../cache/index.ts';
import type { Catalog, Endpoint, Statistics } from '../catalog/index.ts';
import type { Egress } from '../egress/index.ts';
import type { FailureKind } from '../formats/conversation/failure.ts';
import type { Transport } from '../providers/index.ts';
import type { Spend } from '../spend/index.ts';
import type { Transcripts } from '../transcripts/index.ts';
import type { Concurrency } from './concurrency.ts';
import type { Pace } from './pace.ts';
import type { Credentials, Health, RoutingPolicy, Sessions } from './routing/index.ts';
import type { Running } from './running.ts';
import type { RememberedThinking } from './thinking-memory.ts';
import type { Threads } from './threads.ts';
import type { TokenCounter } from './tokens/counter.ts';

export type AttemptOutcome = FailureKind | 'answered' | 'given_up';

export interface InferenceParts {
  /** The catalog as it is now; a reload of the configuration replaces it. */
  catalog(): Catalog;
  spend: Spend;
  statistics: Statistics;
  /**
   * Hears how each call to an upstream ended: `answered`, `given_up` (the client left, or another one was faster) or the
   * kind of its failure. Absent: nobody counts.
   */
  attempted?(endpoint: Endpoint, outcome: AttemptOutcome): void;
  /**
   * Reads again what follows changes (own keys, the balance), where this process cannot be sure of it. undefined: nothing
   * has to be waited for. Absent: nothing is followed. Rejects with GatewayError 503.
   */
  refresh?(): Promise<void> | undefined;
  /** Customers' own keys at providers. Absent: nobody has any. */
  ownKeys?: OwnKeys;
  /** Rate limits. Absent: nobody has any. */
  pace?: Pace;
  /** The response cache, and how its headers begin (`X-Svc-`). Absent: requests that ask for it are answered without. */
  cached?: { answers: ResponseCache; headerPrefix: string };
  /** The log of inputs and outputs. Absent: nobody's are kept. */
  transcripts?: Transcripts;
  health: Health;
  concurrency: Concurrency;
  running: Running;
  credentials: Credentials;
  sessions: Sessions;
  threads: Threads;
  /** Thinking that clients cannot carry. Absent: none is remembered. */
  thinking?: RememberedThinking;
  transport: Transport;
  egress: Egress;
  /** Counts tokens exactly. Absent: requests are bounded by their bytes. */
  tokens?: TokenCounter;
  clock: Clock;
  /** When what streams have brought is written to their clients. */
  endOfTurn: EndOfTurn;
  log: Log;
  limits: Limits;
  /** Host names of the regional roots, as configured now. */
  hosts(): HostSettings;
  /** What the account demands of every endpoint, as configured now. */
  policy(): RoutingPolicy;
  /** Where cache breakpoints are placed unless a workspace or a request says otherwise, as configured now. */
  promptCaching(): PromptCachingMode;
  /** Silence of a stream's beginning after which a second endpoint is asked beside the first; null: never. */
  hedgeAfterMs(): number | null;
  /** As Math.random. */
  random(): number;
  /** The account's balance as it is now; null is unlimited. */
  accountBalanceNano(): Nano | null;
  /** The end user as providers see it: a keyed hash, of the account when the request names nobody. */
  hashUser(caller: Caller, user: string | undefined): string;
  /** Comment line for a silent stream, framing included. */
  keepAliveComment: string;
  /** `svc_metadata`, or its alias. */
  metadataKey: string;
}
