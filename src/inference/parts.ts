/** The dependencies of the pipeline; wired in `server/operation-parts.ts`. */
import type { Caller } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import type { HostSettings, Limits, PromptCachingMode } from '../base/config.ts';
import type { EndOfTurn } from '../base/end-of-turn.ts';
import type { Log } from '../base/log.ts';
import type { Nano } from '../base/money.ts';
import type { ByokCredentials } from '../byok/index.ts';
import type { ResponseCache } from '../cache/index.ts';
import type { Catalog, Endpoint, Statistics } from '../catalog/index.ts';
import type { Exporter } from '../destinations/index.ts';
import type { Egress } from '../egress/index.ts';
import type { FileContents, VendorCopies, WorkspaceFiles } from '../files/index.ts';
import type { FailureKind } from '../formats/conversation/failure.ts';
import type { Memories } from '../memories/index.ts';
import type { Transport } from '../providers/index.ts';
import type { Spend } from '../spend/index.ts';
import type { Tracer } from '../tracing/index.ts';
import type { Transcripts } from '../transcripts/index.ts';
import type { VectorSearch } from '../vector-stores/index.ts';
import type { Concurrency } from './admission/concurrency.ts';
import type { RateLimiting } from './admission/rate-limits.ts';
import type { DocxReader } from './documents/docx-reader.ts';
import type { Ocr } from './documents/ocr.ts';
import type { PageReader } from './documents/page-reader.ts';
import type { PdfReader } from './documents/pdf-reader.ts';
import type { Moderator } from './plugins/moderation/moderator.ts';
import type { RequestsInFlight } from './requests-in-flight.ts';
import type { AccountPolicy, Credentials, Health, Sessions } from './routing/index.ts';
import type { RouterModels } from './routing/router-models.ts';
import type { Threads } from './routing/threads.ts';
import type { TokenCounter } from './tokens/counter.ts';
import type { RequestContainers } from './tools/index.ts';
import type { RememberedThinking } from './turns/thinking-memory.ts';
import type { WebSearch } from './web-search/index.ts';

export type AttemptOutcome = FailureKind | 'answered' | 'given_up';

export interface InferenceParts {
  /** The current catalog; a configuration reload replaces it. */
  catalog(): Catalog;
  spend: Spend;
  statistics: Statistics;
  /**
   * Called when an upstream call ends: `answered`, `given_up` (the client disconnected, or another attempt was faster)
   * or the kind of its failure.
   */
  attempted?(endpoint: Endpoint, outcome: AttemptOutcome): void;
  /**
   * Reloads followed state (BYOK credentials, the balance) if this process may have missed a change. Undefined: up to
   * date. Absent: no state is followed. Rejects with GatewayError 503.
   */
  refresh?(): Promise<void> | undefined;
  /** Customers' BYOK credentials. Absent: BYOK is off. */
  byokCredentials?: ByokCredentials;
  /** Rate limits. Absent: rate limits are off. */
  rateLimits?: RateLimiting;
  /** The response cache, and the prefix of its headers (`X-Svc-`). Absent: requests are answered without the cache. */
  cached?: { answers: ResponseCache; headerPrefix: string };
  /** The content log of inputs and outputs. Absent: content is not logged. */
  transcripts?: Transcripts;
  /** Forwards records of generations to destinations. Absent: none are forwarded. */
  exporter?: Pick<Exporter, 'exports' | 'take'>;
  /** Follows requests. Absent: they are not traced. */
  tracer?: Pick<Tracer, 'begin'> | undefined;
  health: Health;
  concurrency: Concurrency;
  inFlight: RequestsInFlight;
  credentials: Credentials;
  sessions: Sessions;
  /** Router models; absent if the gateway has none. */
  routers?: RouterModels | undefined;
  /** The configured fallbacks of a model, by its id; absent: none. */
  fallbacksOf?(modelId: string): readonly string[];
  threads: Threads;
  /** Reasoning that the client's format cannot carry. Absent: it is not remembered. */
  thinking?: RememberedThinking;
  transport: Transport;
  egress: Egress;
  /** Reads HTML pages. Absent: they are not read. */
  pages?: PageReader;
  /** Searches the web. Absent: no tool of a request can. */
  webSearch?: WebSearch;
  /** Where tools of requests run commands. Absent: they cannot. */
  requestContainers?: RequestContainers;
  /** Folders of texts that models keep. */
  memories?: Memories;
  /** The moderation service; absent if none is configured. */
  moderator?: Moderator;
  /** Recognizes the text of PDFs. Absent: paid OCR is not used. */
  ocr?: Ocr;
  /** The model that judges answers, as currently configured; undefined or absent: the model of the request. */
  alignmentModel?(): string | undefined;
  /** Counts tokens exactly. Absent: requests are bounded by their bytes. */
  tokens?: TokenCounter;
  /** Reads the text of PDFs. Absent: they are not read. */
  pdf?: PdfReader;
  /** Reads the text of Word documents. Absent: they are not read. */
  docx?: DocxReader;
  /** Files of workspaces, for requests that reference them. Absent: ids are left to the upstream. */
  files?: FileContents;
  /** Files of workspaces, for the tool of a request that changes them. Absent: none can. */
  workspaceFiles?: WorkspaceFiles;
  /** Searches in vector stores. Absent: no tool of a request can. */
  vectorStores?: VectorSearch;
  /** Copies of these files at vendors. Absent: files are sent with each request. */
  vendorCopies?: VendorCopies;
  clock: Clock;
  /** Schedules the writes of stream output at the end of the event-loop turn. */
  endOfTurn: EndOfTurn;
  log: Log;
  limits: Limits;
  /** Host names of the regional roots, as currently configured. */
  hosts(): HostSettings;
  /** The account's requirements for every endpoint, as currently configured. */
  accountPolicy(): AccountPolicy;
  /** Where cache breakpoints are placed by default, as currently configured. */
  promptCaching(): PromptCachingMode;
  /** Silence at the start of a stream after which a second endpoint is tried in parallel; null: never. */
  hedgeAfterMs(): number | null;
  /** Like `Math.random`. */
  random(): number;
  /** The account's current balance; null for unlimited. */
  accountBalanceNano(): Nano | null;
  /** The end user as providers see it: a keyed hash of the user, or of the account if the request names no user. */
  hashUser(caller: Caller, user: string | undefined): string;
  /** Comment line for a silent stream, framing included. */
  keepAliveComment: string;
  /** The member name of the routing metadata: `svc_metadata`, or its alias. */
  metadataKey: string;
}
