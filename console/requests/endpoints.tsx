/** Why each endpoint of the requested models was or was not tried. */
import type { ApiGeneration } from '../api.gen.ts';
import { Badge, Card, type Tone } from '../ui/basics.tsx';
import { Table } from '../ui/table.tsx';

type Generation = ApiGeneration['data'];
/** An attempt, whose members the interface describes as an open object. */
type Attempt = Record<string, unknown>;

interface Fate {
  id: string;
  provider: string;
  model: string;
  tone: Tone | undefined;
  outcome: string;
  reasons: readonly string[];
}

const OK = 200;

export function Endpoints({ generation }: { generation: Generation }) {
  const rows = [...asked(generation), ...generation.unasked_endpoints.map(unasked)];
  if (rows.length === 0) return null;
  return (
    <Card title="Endpoints" flush>
      <Table
        label="Endpoints, and why each was or was not tried"
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          { head: 'Provider', cell: ({ provider }) => provider },
          { head: 'Model', minor: true, cell: ({ model }) => <span class="mono clip">{model}</span> },
          { head: 'Outcome', cell: ({ tone, outcome }) => <Badge tone={tone}>{outcome}</Badge> },
          { head: 'Why', cell: ({ reasons }) => <span class="soft">{reasons.join(' ')}</span> },
        ]}
      />
    </Card>
  );
}

function asked({ provider_responses }: Generation): Fate[] {
  const attempts = (provider_responses ?? []) as Attempt[];
  const byEndpoint = Map.groupBy(attempts, (attempt) => String(attempt['endpoint_id'] ?? attempt['provider_name']));
  return [...byEndpoint].map(([id, tries]) => {
    const last = tries.at(-1)!;
    const status = last['status'];
    const answered = status === OK;
    const times = tries.length === 1 ? 'Asked once' : `Asked ${tries.length} times`;
    return {
      id,
      provider: String(last['provider_name']),
      model: String(last['model_permaslug'] ?? ''),
      tone: answered ? 'good' : 'bad',
      outcome: answered ? 'Answered' : 'Failed',
      reasons: [answered ? `${times}.` : `${times}, ${status === null ? 'no answer' : `status ${status}`}.`],
    };
  });
}

function unasked({ endpoint_id, provider_name, model, reasons }: Generation['unasked_endpoints'][number]): Fate {
  return {
    id: endpoint_id,
    provider: provider_name,
    model,
    tone: undefined,
    outcome: 'Not asked',
    reasons: reasons.map(inWords),
  };
}

const WORDS: Readonly<Record<string, string>> = {
  operation: 'It does not serve this operation.',
  service_tier: 'It is an offering of another service tier.',
  allowed_providers: 'The allowed or ignored providers of the request or a guardrail leave it out.',
  ignored_providers: 'A guardrail ignores the provider.',
  allowed_models: 'A guardrail does not allow the model.',
  ignored_models: 'A guardrail ignores the model.',
  'data_policy:zdr': 'It retains prompts.',
  'data_policy:training': 'It may train on prompts.',
  'data_policy:publication': 'It may publish prompts.',
  quantization: 'It has another quantization.',
  max_price: 'It costs more than the highest price of the request.',
  require_parameters: 'It does not support every parameter of the request.',
  context_length: 'The prompt is longer than its context.',
  own_keys_only: 'Only BYOK credentials may be used for it.',
  cooldown: 'It was in cooldown after a failure, so it came last.',
  answered_before: 'Another endpoint answered.',
  request_failed: 'The failure before it ended the request.',
  cancelled: 'The client disconnected first.',
  model_ruled_out: 'Another endpoint of the model refused the prompt for its length or content.',
  concurrency_limit: 'The provider was at its limit of concurrent requests.',
  allow_fallbacks: 'The request allows no fallbacks.',
  candidate_limit: 'The list of candidates was full.',
};

function inWords(reason: string): string {
  const [kind, what] = [reason.slice(0, reason.indexOf(':')), reason.slice(reason.indexOf(':') + 1)];
  if (WORDS[reason] !== undefined) return WORDS[reason];
  if (kind === 'feature') return `It lacks ${what.replaceAll('_', ' ')}.`;
  if (kind === 'refused') return `A limit refused the cost of this endpoint (${what}).`;
  return `${reason}.`;
}
