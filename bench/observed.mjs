/**
 * Gateways that are observed: one that traces every request to a collector, one whose workspace forwards every generation to a
 * destination. The collector only reads and accepts, on the core of the load.
 */
import path from 'node:path';
import { callsOf } from './governed.mjs';
import { startGateway } from './subjects.mjs';
import { freePort, HERE, LOAD_CORE, listening, start } from './tools.mjs';

export const TRACED = 'traced';
export const EXPORTING = 'exporting';

/** Not in the default run: `--only observed`. */
export const OBSERVED = 'observed';
export const OBSERVED_CASES = [
  // At one rate for all: saturated, the collector takes load from the traced gateway, and an idler one costs more by request.
  { name: 'observed, 1 KB, 4000 requests/s', unit: 'requests', bytes: 1000, load: ['64', 'rate=4000'], compared: true },
  { name: 'observed, 1 KB, saturated', unit: 'requests', bytes: 1000, load: ['32'], compared: true },
  {
    name: 'observed, stream relayed, paced',
    unit: 'events',
    ...{ bytes: 1000, stream: true, load: ['50', 'stagger=20000'], compared: true },
  },
];

export async function startObserved(folder, upstreamPort) {
  const port = await freePort();
  const collector = start(LOAD_CORE, process.execPath, [path.join(HERE, 'collector.mjs'), String(port)]);
  await listening(port, collector, 'the collector');
  const url = `http://127.0.0.1:${port}`;
  const traced = await startGateway(folder, upstreamPort, {
    name: TRACED,
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url },
  });
  const exporting = await startGateway(folder, upstreamPort, {
    name: EXPORTING,
    yaml: { egress: { networks: ['127.0.0.1'], ports: ['1-65535'] } },
  });
  const call = callsOf(exporting);
  await call('PATCH', '/workspaces/default', { is_observability_broadcast_enabled: true });
  const config = { endpoint: `${url}/v1/traces` };
  await call('POST', '/observability/destinations', { name: EXPORTING, type: 'otel-collector', config });
  return [traced, exporting];
}
