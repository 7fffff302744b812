/** The catalog: models with their prices, and the live figures of each endpoint. */
import type { ApiEndpoint, ApiModel, ApiModelList } from '../api.gen.ts';
import type { PageParts } from '../frame.tsx';
import { areSettled, useApi } from '../query.ts';
import { link, useParams } from '../route.ts';
import { Badge, Card, Empty, Facts, Page, Problem, Waiting } from '../ui/basics.tsx';
import { count, duration, NONE, perMillion } from '../ui/format.ts';
import { Choice, type Option, Text } from '../ui/forms.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { Table } from '../ui/table.tsx';

const PAGE = 50;
const INPUTS: readonly Option[] = [
  ['', 'Any input'],
  ['image', 'Takes images'],
  ['audio', 'Takes audio'],
  ['file', 'Takes files'],
];
const ABILITIES: readonly Option[] = [
  ['', 'Any ability'],
  ['tools', 'Tools'],
  ['reasoning', 'Reasoning'],
  ['structured_outputs', 'Structured output'],
];
const SORTS: readonly Option[] = [
  ['', 'As configured'],
  ['pricing-low-to-high', 'Cheapest'],
  ['context-high-to-low', 'Longest context'],
  ['throughput-high-to-low', 'Fastest'],
  ['newest', 'Newest'],
  ['most-popular', 'Most used'],
];

export function Models({ rest }: PageParts) {
  return rest === '' ? <ModelTable /> : <ModelDetail key={rest} id={rest} />;
}

function ModelTable() {
  const { params, set } = useParams();
  const value = (name: string) => params.get(name) ?? '';
  const offset = useOffset();
  const given = (name: string) => (value(name) === '' ? {} : { [name]: value(name) });
  const reading = useApi('GET /models', {
    query: {
      limit: PAGE,
      offset,
      ...given('q'),
      ...given('input_modalities'),
      ...given('supported_parameters'),
      ...given('sort'),
    } as object,
  });
  const page = reading.data as (ApiModelList & { total_count?: number }) | undefined;
  return (
    <Page title="Models" about="What can be asked here, what it costs, and how it performs.">
      <search class="filters">
        <Text
          label="Search"
          type="search"
          value={value('q')}
          onInput={(q) => set({ q }, true)}
          placeholder="Name or author"
        />
        <Choice
          label="Input"
          value={value('input_modalities')}
          options={INPUTS}
          onChange={(chosen) => set({ input_modalities: chosen }, true)}
        />
        <Choice
          label="Ability"
          value={value('supported_parameters')}
          options={ABILITIES}
          onChange={(chosen) => set({ supported_parameters: chosen }, true)}
        />
        <Choice label="Order" value={value('sort')} options={SORTS} onChange={(sort) => set({ sort }, true)} />
      </search>
      <PagedList
        label="Models"
        reading={reading}
        rows={page?.data}
        lines={8}
        empty={
          <Empty icon="models" title="No model fits">
            <a href={link('/models')}>Remove the filters</a>
          </Empty>
        }
        pages={{ size: PAGE, total: page?.total_count }}
        keyOf={({ id }) => id}
        linkOf={({ id }) => link(`/models/${encodeURIComponent(id)}`)}
        columns={[
          { head: 'Model', cell: (model) => <ModelName model={model} /> },
          { head: 'Context', end: true, minor: true, cell: (model) => count(model.context_length) },
          { head: 'Input / M', end: true, cell: (model) => perMillion(model.pricing.prompt) },
          { head: 'Output / M', end: true, cell: (model) => perMillion(model.pricing.completion) },
          {
            head: 'Cached / M',
            end: true,
            minor: true,
            cell: (model) => perMillion(model.pricing.input_cache_read),
          },
          {
            head: 'Takes',
            minor: true,
            cell: (model) => <Modalities list={model.architecture.input_modalities} />,
          },
        ]}
      />
    </Page>
  );
}

function ModelName({ model }: { model: ApiModel }) {
  return (
    <span class="two-lines">
      <span>{model.name}</span>
      <span class="mono small soft">{model.id}</span>
    </span>
  );
}

function Modalities({ list }: { list: readonly string[] }) {
  return (
    <span class="badges">
      {list.map((each) => (
        <Badge key={each}>{each}</Badge>
      ))}
    </span>
  );
}

const LIVE_MS = 10_000;

function ModelDetail({ id }: { id: string }) {
  const [author = '', ...rest] = id.split('/');
  const path = { author, slug: rest.join('/') };
  const model = useApi('GET /model/{author}/{slug}', { path });
  const endpoints = useApi('GET /models/{author}/{slug}/endpoints', { path }, { every: LIVE_MS });
  const found = model.data?.data;
  return (
    <Page
      title={found?.name ?? id}
      about={<span class="mono">{id}</span>}
      actions={
        <>
          <a href={link('/models')}>All models</a>
          <a class="button main" href={link('/playground', { model: id })}>
            Try it
          </a>
        </>
      }
    >
      <Problem error={model.error} retry={() => void model.refetch()} />
      {!areSettled(model, endpoints) && <Waiting lines={12} />}
      {areSettled(model, endpoints) && found !== undefined && (
        <Card>
          {found.description !== '' && <p class="prose">{found.description}</p>}
          <Facts
            rows={[
              ['Context', count(found.context_length)],
              ['Longest answer', count(found.top_provider.max_completion_tokens)],
              ['Input per million', perMillion(found.pricing.prompt)],
              ['Output per million', perMillion(found.pricing.completion)],
              ['Takes', <Modalities key="in" list={found.architecture.input_modalities} />],
              ['Gives', <Modalities key="out" list={found.architecture.output_modalities} />],
              ['Parameters', found.supported_parameters.join(', ') || NONE],
            ]}
          />
        </Card>
      )}
      <Problem error={endpoints.error} retry={() => void endpoints.refetch()} />
      {areSettled(model, endpoints) && endpoints.data !== undefined && (
        <Card title="Endpoints, live" flush>
          <Endpoints list={endpoints.data.data.endpoints} />
        </Card>
      )}
    </Page>
  );
}

const FULL = 100;

function Endpoints({ list }: { list: readonly ApiEndpoint[] }) {
  return (
    <Table
      label="Endpoints"
      rows={list}
      keyOf={({ tag, name }) => `${tag} ${name}`}
      columns={[
        { head: 'Provider', cell: (each) => each.provider_name },
        {
          head: 'State',
          cell: (each) => (
            <Badge tone={each.status === 0 ? 'good' : 'bad'}>{each.status === 0 ? 'Serving' : 'Cooldown'}</Badge>
          ),
        },
        {
          head: 'Uptime 1 day',
          end: true,
          cell: (each) =>
            each.uptime_last_1d === null
              ? NONE
              : `${each.uptime_last_1d.toFixed(each.uptime_last_1d === FULL ? 0 : 2)}%`,
        },
        { head: 'First token, median', end: true, cell: (each) => duration(each.latency_last_30m?.p50) },
        { head: 'p90', end: true, minor: true, cell: (each) => duration(each.latency_last_30m?.p90) },
        { head: 'Tokens/s', end: true, cell: (each) => each.throughput_last_30m?.p50.toFixed(1) ?? NONE },
        { head: 'Input / M', end: true, cell: (each) => perMillion(each.pricing.prompt) },
        { head: 'Output / M', end: true, cell: (each) => perMillion(each.pricing.completion) },
        { head: 'Context', end: true, minor: true, cell: (each) => count(each.context_length) },
      ]}
    />
  );
}
