/**
 * What every member of the yaml file means, by its path as `member-types.ts` lists it. Together they are
 * `docs/reference/configuration.md`: write plain English, one or two sentences.
 */

import { DEFAULT_OIDC_NAME } from './console.ts';
import { DEFAULT_AGENT } from './interns.ts';
import { DEFAULT_IO_LOGGING } from './io-logging.ts';
import { type Meaning, type Row, section } from './meaning.ts';
import { FURTHER_PRICES } from './price-meanings.ts';
import { DEFAULT_MAX_CONCURRENCY, DEFAULT_TIMEOUTS } from './provider-readers.ts';
import { ROUTING_MEANINGS } from './routing.ts';
import { DEFAULT_KUBERNETES, DEFAULT_SANDBOXES } from './sandboxes.ts';
import { DEFAULT_ACCOUNT, DEFAULT_LIMITS, DEFAULT_RETENTION } from './section-readers.ts';
import type { Limits } from './settings.ts';
import { TOOL_MEANINGS } from './tool-meanings.ts';
import { DEFAULT_VAULT } from './vault.ts';

export const MEMBER_MEANINGS: Readonly<Record<string, Meaning>> = {
  ...section('account', 'Defaults for every key and workspace, and the balance of the whole account.', {
    zdr: ['Use only endpoints that keep no prompts (zero data retention).', DEFAULT_ACCOUNT.zdr],
    allow_training: ['Allow endpoints that train on prompts.', DEFAULT_ACCOUNT.allowTraining],
    allow_publication: ['Allow endpoints that publish prompts.', DEFAULT_ACCOUNT.allowPublication],
    allow_safety_retention: [
      'Allow endpoints that keep prompts for safety reviews.',
      DEFAULT_ACCOUNT.allowSafetyRetention,
    ],
    prompt_caching: [
      'Where the gateway places prompt cache breakpoints for clients that set none: in no request, in translated ones, or always.',
      DEFAULT_ACCOUNT.promptCaching,
    ],
    balance_usd: ['Total that may be spent, in USD. `null` is unlimited.', 'null'],
  }),
  ...section('hosts', 'Host names of the global and the regional API roots.', {
    global: ['Hosts that may use endpoints in every region.'],
    europe: ['Hosts that use only endpoints in the region `europe`.'],
    us: ['Hosts that use only endpoints in the region `us`.'],
  }),
  trusted_proxies: {
    meaning: 'Proxies in front of the gateway whose `X-Forwarded-*` headers are trusted.',
    fallback: '[]',
  },
  ...section('egress', 'Where URLs in requests (images, documents) may lead, beyond the public internet.', {
    networks: ['Private addresses and networks that may be fetched from.', '[]'],
    ports: ['Ports that may be fetched from.', '[80, 443]'],
  }),
  ...section('egress_proxy', 'Where code in sandboxes may go ([egress proxy](../guides/egress-proxy.md)).', {
    domains: [
      'Domains that sandboxes may reach at most: exact ones, globs such as `*.example.com`, IP addresses, or `*` for every name.',
      "['*']",
    ],
    ports: ['Ports that they may reach.', '[443, 80]'],
    user: [
      'Number of the user and group that the proxy runs as if the gateway runs as root. Nothing else may use it. A restart applies it.',
      '26990',
    ],
  }),
  ...section('limits', 'Bounds on everything that can grow or wait.', {
    inference_body_bytes: limit('Largest body of an inference request.', 'inferenceBodyBytes'),
    control_body_bytes: limit('Largest body of any other request.', 'controlBodyBytes'),
    nesting_depth: limit('Deepest nesting of a JSON body.', 'nestingDepth'),
    header_bytes: limit('Size of all headers of a request.', 'headerBytes'),
    header_count: limit('Number of headers of a request.', 'headerCount'),
    headers_arrival: limit('Time from the first byte of a request to the end of its headers.', 'headersArrivalMs'),
    request_arrival: limit('Time from the first byte of a request to the end of its body.', 'requestArrivalMs'),
    idle_connection: limit('Time that an idle keep-alive connection stays open.', 'idleConnectionMs'),
    drain_delay: limit(
      'Time after SIGTERM in which `/ready` answers 503 and everything else is still served, before the listener closes.',
      'drainDelayMs',
    ),
    drain: limit('Time that open responses get to finish at shutdown.', 'drainMs'),
    keep_alive_comment: limit('Silence on a stream after which a keep-alive comment is sent.', 'keepAliveCommentMs'),
    upstream_reply_bytes: limit('Largest response of an upstream.', 'upstreamReplyBytes'),
    upstream_event_bytes: limit('Largest single event in the stream of an upstream.', 'upstreamEventBytes'),
    fetched_media: limit(
      'Number of URLs fetched for one request, for providers that accept only bytes.',
      'fetchedMedia',
    ),
    fetched_medium_bytes: limit('Largest file fetched from a URL.', 'fetchedMediumBytes'),
    fetched_media_bytes: limit('Size of all files fetched for one request.', 'fetchedMediaBytes'),
    media_fetch: limit('Time for fetching all files of one request.', 'mediaFetchMs'),
    response_cache_bytes: limit('Size of the response cache over all processes. 0 turns it off.', 'responseCacheBytes'),
    response_cache_answer_bytes: limit('Largest response that is cached.', 'responseCacheAnswerBytes'),
    server_tool_turns: limit(
      'Turns of a model in one request after which its [server tools](../guides/server-tools.md) are disabled.',
      'serverToolTurns',
    ),
    server_tool_calls: limit('Calls of server tools that one request may make.', 'serverToolCalls'),
    server_tool_call: limit('Time for one call of a server tool.', 'serverToolCallMs'),
    server_tool_result_bytes: limit('Largest result of one call of a server tool.', 'serverToolResultBytes'),
    candidates: limit('Endpoints that are tried for one request.', 'candidates'),
    connections: limit('Open client connections per process.', 'connections'),
    batch_requests: limit(
      'Requests of batches that run at once in each process ([batches](../guides/batches.md#how-it-runs)).',
      'batchRequests',
    ),
    unreturned_after: limit(
      'Silence of a process after which the doctor suggests to release what it holds of limits ([operating](../guides/operating.md#lost-processes-gatehouse-spend)).',
      'unreturnedAfterMs',
    ),
  }),
  ...ROUTING_MEANINGS,
  ...section('retention', 'How long data is kept.', {
    generations_days: [
      'Days that rows of generations are kept; they are dropped by whole months. `null` keeps them forever. Their totals (activity, analytics) are dropped with them; budgets are not affected.',
      'null',
    ],
    responses_days: ['Days that stored responses are kept after their last use.', DEFAULT_RETENTION.responsesDays],
    conversations_days: ['The same for stored conversations. `null` keeps them until they are deleted.', 'null'],
  }),
  ...section('io_logging', 'Storing prompts and responses ([I/O logging](../guides/io-logging.md)).', {
    enabled: ['Store them for workspaces that have no setting of their own.', DEFAULT_IO_LOGGING.enabled],
    sample_rate: ['Share of the requests that is stored.', DEFAULT_IO_LOGGING.sampleRate],
    retention_days: ['Days that they are kept.', DEFAULT_IO_LOGGING.retentionDays],
    max_bytes: ['Largest stored prompt, and largest stored response.', DEFAULT_IO_LOGGING.maxBytes],
  }),
  ...section('vault', 'Secrets that are bound to hosts ([vault](../guides/vault.md)).', {
    writes: ['Allow storing and deleting secrets. Otherwise both are answered with 503.', DEFAULT_VAULT.writes],
  }),
  ...section('sandboxes', 'Where untrusted code runs ([sandboxes](../guides/sandboxes.md)).', {
    driver: [
      'What isolates the code. `auto` uses the first driver that works on this machine. `kubernetes` runs sandboxes as pods ([guide](../guides/kubernetes.md)). `none` refuses everything that needs a sandbox.',
      DEFAULT_SANDBOXES.driver,
    ],
    folder: [
      'Where workspaces are kept on this machine. Defaults to `sandboxes` in the data folder, for root to a folder in `/var/lib/gatehouse-sandboxes`.',
    ],
    memory_bytes: ['Memory of a sandbox.', DEFAULT_SANDBOXES.memoryBytes],
    processes: ['Processes and threads of a sandbox.', DEFAULT_SANDBOXES.processes],
    cpus: ['CPUs that a sandbox can keep busy.', DEFAULT_SANDBOXES.cpus],
    disk_bytes: ['Disk space of a sandbox, and its largest file.', DEFAULT_SANDBOXES.diskBytes],
    files: ['Files and folders of a sandbox.', DEFAULT_SANDBOXES.files],
    output_bytes: [
      'Output of a command that sets no limit itself, after which it is ended.',
      DEFAULT_SANDBOXES.outputBytes,
    ],
    command_time: ['Time of a command that sets none itself, after which it is ended.', '10m'],
    running: ['Sandboxes that run at once in one process.', DEFAULT_SANDBOXES.running],
    container_time: ['How long an unused container of server tools is kept.', '7d'],
  }),
  ...section('sandboxes.kubernetes', 'Pods for sandboxes ([Kubernetes](../guides/kubernetes.md)).', {
    namespace: ['Namespace for sandboxes and nothing else.', DEFAULT_KUBERNETES.namespace],
    image: ['Container image of sandboxes. Required for the driver `kubernetes`.'],
    storage_class: ['Storage class of the volumes of sandboxes. Defaults to the default class of the cluster.'],
    runtime_class: ['Runtime class of the pods. Defaults to the one of gVisor, if the cluster has one.'],
    egress_host: ['IP address where pods reach the egress proxy. Defaults to the address of the pod of the gateway.'],
    egress_port: [
      'The first of 32 ports where pods reach the egress proxy, one for each process of the gateway.',
      DEFAULT_KUBERNETES.egressPort,
    ],
    kubeconfig: ['Path of a kubeconfig file. Defaults to the service account of the pod.'],
  }),
  ...TOOL_MEANINGS,
  ...section('interns', 'The program that runs as an intern ([interns](../guides/interns.md#agents)).', {
    agent: ['`gatehouse`, which ships with the gateway, or the name of an installed agent.', DEFAULT_AGENT],
  }),
  ...section('interns.agents', 'Agents that are installed on this machine.', {}),
  ...section('interns.agents[]', 'One agent. It has a `program` or a `command`.', {
    name: ['Up to 32 lower-case letters, digits and dashes.'],
    program: ['A program whose settings the gateway writes itself.'],
    folder: ['Absolute path of its installation. Sandboxes see it read-only.'],
    command: [
      'Any other program that speaks the Agent Client Protocol on stdio: its path in the folder, and arguments.',
    ],
  }),
  ...section(
    'intern_programme',
    'Who may use interns and the vault; for others they do not exist (404). Without this section: every key, as long as its organization has a single member.',
    {
      everyone: ['Every key.', false],
      workspaces: ['Every key of these workspaces, by their ids.', '[]'],
      keys: ['These keys, by their hashes.', '[]'],
    },
  ),
  ...section('blobs', 'Where uploaded files and other large content are stored ([files](../guides/files.md)).', {}),
  ...section('blobs.s3', 'An S3 bucket. Without it they are in the folder `blobs` of the data directory.', {
    bucket: ['Name of the bucket. It must exist.'],
    region: ['Its region. Defaults to `AWS_REGION`, then to `us-east-1`.'],
    endpoint: ['URL of an S3-compatible service. Defaults to that of AWS for the region.'],
    prefix: ['Beginning of every object key, such as `gatehouse/`.'],
    path_style: [
      'Put the bucket into the path of URLs instead of the host name. Defaults to `true` with an `endpoint`.',
    ],
    access_key_id: ['Access key. Without it the standard AWS credential chain is used.'],
    secret_access_key: ['Secret of that access key.'],
  }),
  ...section('scim', 'Pulling users and groups from an identity provider ([SCIM](../guides/scim.md)).', {}),
  ...section('scim.source', 'SCIM endpoint that sync jobs read. Not needed when the provider pushes changes.', {
    base_url: ['URL of the SCIM endpoint.'],
    token: ['Bearer token for it.'],
  }),
  ...section(
    'federation',
    'Identity providers whose JWTs can be exchanged for short-lived access tokens ([keys](../guides/keys.md)).',
    {},
  ),
  ...section('federation[]', 'One policy.', {
    id: ['Name of the policy; must be unique.'],
    issuer: ['Exact value of `iss`.'],
    audience: ['Accepted value of `aud`, or a list of them.'],
    jwks_uri: ["URL of the issuer's keys. By default it is discovered from the issuer."],
    jwks: ['The keys themselves, instead of a URL.'],
    claims: ['Claims that the token must have. At least one.'],
    'claims.<name>': ['Value of the claim, or a list of accepted values. `*` in a text matches any characters.'],
    key: ['Hash of the inference key whose rights the access token gets.'],
    lifetime: ['Lifetime of the access token, from 30s to 900s.', '900s'],
  }),
  ...section('console', 'The web console ([console](../guides/console.md)).', {}),
  ...section('console.oidc', 'Signing in through an identity provider with OpenID Connect.', {
    name: ['Shown on the button of the sign-in page.', DEFAULT_OIDC_NAME],
    issuer: ['URL of the identity provider, exactly as in `iss`. Its discovery document has the other addresses.'],
    client_id: ['Id of the client that is registered at the identity provider.'],
    client_secret: ['Secret of this client. Without a secret it is a public client.'],
    scopes: ['Requested in addition to `openid`.', '[email, profile]'],
    match: [
      'The claim that identifies the member: the verified `email`; `preferred_username` as the SCIM `user_name`; `sub` as the SCIM `external_id`.',
      'email',
    ],
    admins: ['Claims of members that may sign in, in addition to members with the role `admin`.'],
    'admins.<name>': ['Value of the claim, or a list of accepted values. `*` in a text matches any characters.'],
    redirect_uri: [
      'URL to which the identity provider sends the browser back. Defaults to the address that the browser uses.',
    ],
  }),
  ...section('rate_limits', 'Default rate limits ([keys](../guides/keys.md)).', {}),
  ...rates('key', 'Limits of each key that has none of its own.'),
  ...rates('workspace', 'Limits of each workspace that has none of its own.'),
  ...section(
    'providers',
    'Upstream services, in addition to those that environment variables enable. A listed provider with the id of an enabled one replaces it.',
    {},
  ),
  ...section('providers[]', 'One provider.', {
    id: ['Name of the provider, as in `provider.only` of a request; must be unique.'],
    name: ['Display name. Defaults to the name of the kind, or to the id.'],
    kind: [
      'A known service, or a wire format (`chat`, `messages`, `responses`, `gemini`, `converse`) for any other service that speaks it.',
    ],
    base_url: ['URL of the API. Defaults to the URL of the kind, if it has one.'],
    api_key: [
      'API key, or a list of keys to spread requests over. Defaults to the environment variable of the kind, unless `base_url` is set.',
    ],
    timeouts: ['Time limits of a call.'],
    'timeouts.connect': ['Connecting, with TLS.', duration(DEFAULT_TIMEOUTS.connect)],
    'timeouts.first_byte': [
      'From sending the request to the first byte of the body.',
      duration(DEFAULT_TIMEOUTS.firstByte),
    ],
    'timeouts.idle': ['Between two pieces of the body.', duration(DEFAULT_TIMEOUTS.idle)],
    'timeouts.stall': [
      'Streamed conversations: nothing of the answer comes, only heartbeats. Hidden thinking is such a time.',
      duration(DEFAULT_TIMEOUTS.stall),
    ],
    'timeouts.total': ['The whole call.', duration(DEFAULT_TIMEOUTS.total)],
    max_concurrency: ['Calls at the same time, per process.', DEFAULT_MAX_CONCURRENCY],
    headers: ['Additional request headers.'],
    'headers.<name>': ['Value of the header. It is treated as a secret.'],
    strict_template: [
      'The chat template of the server accepts one leading system message and strictly alternating turns; messages are rearranged to fit.',
      false,
    ],
    think_tags: [
      'Responses may start with reasoning between `<think>` and `</think>`; it is returned as reasoning. Defaults to what the kind says.',
    ],
    stream_options: [
      'Send `stream_options` to ask for usage in streams. `false` for servers that refuse it; usage is then estimated. Defaults to what the kind says.',
    ],
    function_tools_only: [
      'The service takes tools of type `function` only: custom tools, namespaces and the like go out as functions. `false` sends them as clients have them. Defaults to what the kind says.',
    ],
    catalog_prices: [
      'Keep the prices of the catalog. Defaults to `true` at the URL of the kind and to `false` at another `base_url`.',
    ],
    batches: [
      'Use the batch interface of the provider for batches, where its kind has one ([batches](../guides/batches.md#batch-interfaces-of-providers)). `false` sends their requests one by one. A kind without one refuses `true`. Azure has one only with `true`, Bedrock and Vertex AI with `batch_bucket`.',
      true,
    ],
    speaks: [
      'Wire formats of this service. A client of one of them is relayed, all others are translated to the first that can carry the request. Defaults to what the kind says.',
    ],
    models: [
      'Models of this provider. Without it all models of the kind are available, with limits and prices from the catalog.',
    ],
  }),
  ...section('providers[].models[]', 'One model.', {
    id: ['Name for clients, as `author/slug`.'],
    upstream_id: ['Name at the provider. Defaults to the slug.'],
    name: ['Display name.'],
    aliases: ['Further names for clients, in any syntax. If a model has the name as its id, the id takes precedence.'],
    speaks: ['Wire formats of this model, where they differ from the provider.'],
    context_length: ['Context window in tokens. Unknown by default.'],
    max_completion_tokens: ['Longest completion in tokens. Unknown by default.'],
    pricing: [
      'Prices in USD, as quoted decimals. Without them cost is `null`, and keys with a spending limit cannot use the model.',
    ],
    batch_pricing: [
      'Prices in the batch interface of the provider. Defaults to the discount that the provider documents, mostly half of `pricing` for every token.',
    ],
    input_modalities: ['Such as `[text, image, audio, file]`. Unknown by default.'],
    output_modalities: ['Such as `[text, image]`. Unknown by default.'],
    supported_parameters: ['Such as `[tools, tool_choice, temperature, reasoning]`. Unknown by default.'],
    data_policy: ['What the provider does with prompts. Anything not stated counts as the worst case.'],
    'data_policy.zdr': ['Keeps no prompts (zero data retention).', false],
    'data_policy.trains': ['Trains on prompts.', true],
    'data_policy.publishes': ['Publishes prompts.', true],
    'data_policy.retains_for_safety': ['Keeps prompts for safety reviews.', true],
    region: ['Where the model runs, such as `us` or `europe`. Unknown by default.'],
    quantization: ['Such as `fp8`. Unknown by default.'],
    service_tiers: ['Further offers of the model under other prices, by `service_tier` of the request.'],
    ...Object.fromEntries(
      ['priority', 'flex', 'scale', 'ultrafast'].map((tier) => [`service_tiers.${tier}`, [`The tier \`${tier}\`.`]]),
    ),
  }),
  ...prices('providers[].models[].pricing', FURTHER_PRICES),
  ...prices('providers[].models[].pricing.overrides[]', { audio: 'Per audio token in the prompt.' }),
  ...section('providers[].models[].pricing', 'Prices in USD.', {
    overrides: ['Prices for long prompts.'],
    output_images: ['Prices of generated images, where they are charged per image or by area.'],
  }),
  ...section('providers[].models[].pricing.overrides[]', 'Prices that replace those above for long prompts.', {
    min_prompt_tokens: ['They apply to prompts with more tokens than this, cached tokens included.'],
  }),
  ...section('providers[].models[].pricing.output_images[]', 'One price.', {
    price: ['Price in USD.'],
    per: ['Unit of the price. Megapixels are rounded up.', 'image'],
    variant: ['Quality and size that the price is for, such as `high 1024x1024`. Without it, for all others.'],
  }),
  'providers[].models[].batch_pricing': {
    meaning: 'Prices of batches.',
    fallback: '',
    like: 'providers[].models[].pricing',
  },
  ...Object.fromEntries(
    ['priority', 'flex', 'scale', 'ultrafast'].map((tier) => [
      `providers[].models[].service_tiers.${tier}.pricing`,
      { meaning: 'Prices of the tier.', fallback: '', like: 'providers[].models[].pricing' },
    ]),
  ),
};

function limit(meaning: string, name: keyof Limits): Row {
  const value = DEFAULT_LIMITS[name];
  return [meaning, name.endsWith('Ms') ? duration(value) : value];
}

function duration(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

function rates(owner: string, meaning: string): Record<string, Meaning> {
  const amounts = ['requests', 'tokens'].flatMap((what) =>
    ['minute', 'hour', 'day'].map((time): [string, Row] => [
      `${what}_per_${time}`,
      [`Most ${what} per ${time} (UTC). Unlimited by default.`],
    ]),
  );
  return section(`rate_limits.${owner}`, meaning, Object.fromEntries(amounts));
}

function prices(path: string, further: Record<string, string>): Record<string, Meaning> {
  const meanings = {
    prompt: 'Per prompt token.',
    completion: 'Per completion token.',
    input_cache_read: 'Per prompt token read from the cache of the provider.',
    input_cache_write: 'Per prompt token written to the cache of the provider.',
    input_cache_write_1h: 'Per prompt token written to the cache for one hour.',
    ...further,
  };
  return section(path, '', Object.fromEntries(Object.entries(meanings).map(([name, text]) => [name, [text]])));
}
