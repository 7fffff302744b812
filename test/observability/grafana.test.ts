/** The dashboard and the alert rules that ship ask for metrics that the gateway has, in queries that Prometheus understands. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { parser } from '@prometheus-io/lezer-promql';
import { parse as parseYaml } from 'yaml';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatFailure, chatStream } from '../../src/testing/upstream/chat-upstream.ts';

const FOLDER = path.join(import.meta.dirname, '../../deploy/grafana');
const read = (name: string) => readFileSync(path.join(FOLDER, name), 'utf8');
const dashboard = JSON.parse(read('dashboard.json'));
const alerts = parseYaml(read('alerts.yaml'));

// biome-ignore lint/suspicious/noExplicitAny: JSON of a test.
type Json = any;

const panels: Json[] = dashboard.panels;
const variables: Json[] = dashboard.templating.list;
const alertRules: Json[] = alerts.groups.flatMap(({ rules }: Json) => rules);
/** Prometheus adds these, and has `up` for each target. */
const LABELS_OF_PROMETHEUS = ['instance', 'job'];

interface Query {
  of: string;
  text: string;
}

const queries: Query[] = [
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }: Json) => ({ of: title, text: expr }))),
  ...alertRules.map(({ alert, expr }) => ({ of: alert, text: expr })),
];
const valuesOfVariables: Query[] = variables
  .filter(({ type }) => type === 'query')
  .map(({ name, query }) => ({ of: name, text: /^label_values\((.*), \w+\)$/.exec(query.query)![1]! }));

/** The names of metrics, and of labels that a query selects or groups by. */
function namesIn({ of, text }: Query): { metrics: string[]; labels: string[] } {
  const plain = text.replaceAll('$__rate_interval', '5m');
  const found = { metrics: [] as string[], labels: [] as string[] };
  parser.parse(plain).iterate({
    enter(node) {
      assert.ok(!node.type.isError, `${of} is not PromQL at ${node.from}: ${plain}`);
      const name = plain.slice(node.from, node.to);
      const parent = node.node.parent?.name;
      if (node.name === 'Identifier' && parent === 'VectorSelector') found.metrics.push(name);
      if (node.name === 'LabelName') found.labels.push(name);
    },
  });
  assert.notEqual(found.metrics.length, 0, `${of} asks for no metric`);
  return found;
}

test('every query is PromQL and names metrics and labels that the gateway exposes', async (t) => {
  const gateway = await startGateway(t, {
    providers: { one: {}, two: {} },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
  });
  gateway.upstream.script('one', [chatFailure(500)]);
  gateway.upstream.script('two', [chatStream('hello')]);
  const body = { model: 'test/one', models: ['test/two'], stream: true, messages: [{ role: 'user', content: 'hi' }] };
  await (await gateway.post('/chat/completions', body)).text();
  const scraped = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${MANAGEMENT_KEY}` } });
  const exposed = exposedIn(await scraped.text());
  for (const query of [...queries, ...valuesOfVariables]) {
    const { metrics, labels } = namesIn(query);
    const known = new Set(LABELS_OF_PROMETHEUS);
    for (const metric of metrics) {
      const of = metric === 'up' ? new Set<string>() : exposed.get(metric);
      assert.ok(of !== undefined, `${query.of}: the gateway has no metric ${metric}`);
      for (const label of of) known.add(label);
    }
    for (const label of labels) assert.ok(known.has(label), `${query.of}: ${metrics} have no label ${label}`);
  }
});

/** The labels of each metric, by the names that queries use. */
function exposedIn(text: string): Map<string, Set<string>> {
  const exposed = new Map<string, Set<string>>();
  for (const [, name, type] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    const names = type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name!];
    for (const each of names) exposed.set(each, new Set());
  }
  // No batch has run.
  exposed.get('gatehouse_batch_callbacks_total')!.add('outcome');
  for (const [, name, labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    for (const [, label] of labels.matchAll(/(\w+)="/g)) exposed.get(name!)!.add(label!);
  }
  return exposed;
}

test('a query that is not PromQL, or asks for a metric that does not exist, is found', () => {
  assert.throws(() => namesIn({ of: 'x', text: 'sum(rate(a[5m])' }), /is not PromQL/);
  assert.throws(() => namesIn({ of: 'x', text: '1 + 2' }), /asks for no metric/);
  const { metrics, labels } = namesIn({ of: 'x', text: 'sum by (b) (rate(a{c=~"$v"}[$__rate_interval])) > on (d) e' });
  assert.deepEqual(
    [metrics, labels],
    [
      ['a', 'e'],
      ['b', 'c', 'd'],
    ],
  );
});

const PANEL_TYPES = ['row', 'stat', 'timeseries'];
const COLUMNS = 24;
// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana.
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

test('the dashboard has the shape that Grafana imports', () => {
  assert.equal(typeof dashboard.title, 'string');
  assert.match(dashboard.uid, /^[a-z0-9-]{1,40}$/);
  assert.ok(Number.isInteger(dashboard.schemaVersion) && !('id' in dashboard));
  assert.ok(!('__inputs' in dashboard), 'the data source is a variable');
  const ids = panels.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  const taken = new Set<string>();
  for (const { title, type, gridPos, datasource, targets = [], description } of panels) {
    assert.ok(PANEL_TYPES.includes(type), `${title}: ${type}`);
    const { x, y, w, h } = gridPos;
    assert.ok(x >= 0 && w > 0 && x + w <= COLUMNS && h > 0, title);
    for (let cell = 0; cell < w * h; cell += 1) {
      const place = `${x + (cell % w)},${y + Math.floor(cell / w)}`;
      assert.ok(!taken.has(place), `${title} lies over another panel`);
      taken.add(place);
    }
    if (type === 'row') continue;
    assert.ok(description, `${title} has no description`);
    for (const each of [datasource, ...targets.map((one: Json) => one.datasource)]) {
      assert.deepEqual(each, DATASOURCE, title);
    }
    const refs = targets.map(({ refId }: Json) => refId);
    assert.ok(refs.length > 0 && new Set(refs).size === refs.length, title);
  }
});

test('the dashboard defines every variable that its queries use', () => {
  const defined = new Set(variables.map(({ name }) => name));
  const used = JSON.stringify(dashboard).matchAll(/\$(?:\{(\w+)\}|(\w+))/g);
  for (const [, braced, bare] of used) {
    const name = braced ?? bare!;
    assert.ok(name.startsWith('__') || defined.has(name), name);
  }
});

const RULE_MEMBERS = ['alert', 'annotations', 'expr', 'for', 'labels'];
const DURATION = /^\d+[smhd]$/;

test('alert rules have the members that Prometheus knows', () => {
  assert.deepEqual(Object.keys(alerts), ['groups']);
  const names = alertRules.map(({ alert }) => alert);
  assert.equal(new Set(names).size, names.length);
  for (const group of alerts.groups) assert.deepEqual(Object.keys(group).toSorted(), ['name', 'rules']);
  for (const rule of alertRules) {
    assert.deepEqual(
      Object.keys(rule).filter((member) => !RULE_MEMBERS.includes(member)),
      [],
      rule.alert,
    );
    assert.match(rule.alert, /^Gatehouse[A-Za-z]+$/);
    if (rule.for !== undefined) assert.match(rule.for, DURATION);
    assert.deepEqual(Object.keys(rule.labels), ['severity'], rule.alert);
    assert.ok(['critical', 'warning', 'info'].includes(rule.labels.severity), rule.alert);
    assert.deepEqual(Object.keys(rule.annotations).toSorted(), ['description', 'summary'], rule.alert);
  }
});
