/**
 * The message of a successful start: base URLs, a `curl` command that works as pasted, and the providers. On a
 * terminal as text, otherwise as one line of the log.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Catalog, Model } from '../catalog/index.ts';

/** Facts about a serving process as plain data, so that a worker can send them. */
export interface Serving {
  /** As it listens: `http://127.0.0.1:8484`. */
  address: string;
  providers: readonly string[];
  models: number;
  /** Only the simulated provider answers conversations. */
  onlySimulated: boolean;
  /** The cheapest model, for the sample; null if none is listed. */
  sample: string | null;
  /** The first inference key, if this start created it. */
  inferenceKey?: string;
  /** The code of the one-time link to the console, if this start created it. */
  consoleCode?: string;
}

export function servingOf(address: string, { providers, models }: Catalog): Serving {
  return {
    address,
    providers: providers.map(({ id }) => id),
    models: models.length,
    onlySimulated: isOnlySimulated({ providers }),
    sample: sampleOf(models),
  };
}

export function isOnlySimulated({ providers }: Pick<Catalog, 'providers'>): boolean {
  return providers.every(({ kind }) => kind.standIn === true);
}

function sampleOf(models: readonly Model[]): string | null {
  let cheapest: { id: string; price: bigint } | undefined;
  for (const { id, endpoints } of models) {
    for (const { provider, pricing, outputModalities } of endpoints) {
      if (outputModalities !== null && !outputModalities.includes('text')) continue;
      if (provider.kind.standIn === true) return id;
      if (pricing === null || pricing.completion === 0n) continue;
      const price = pricing.prompt + pricing.completion;
      if (cheapest === undefined || price < cheapest.price) cheapest = { id, price };
    }
  }
  return cheapest?.id ?? null;
}

const SIGNS_IN_ONCE = '\n                       (this link signs you in, once, within an hour)';

interface SummaryOptions {
  config: Config;
  version: string;
  log: Log;
  out: { readonly isTTY?: boolean; write(text: string): unknown };
}

export function showSummary(serving: Serving, { config, version, log, out }: SummaryOptions): void {
  const root = reachable(serving.address);
  const urls = { openai: `${root}/api/v1`, anthropic: `${root}/api` };
  const curl = curlOf(serving, urls.openai, config);
  if (out.isTTY !== true) {
    const { providers, models } = serving;
    log.info('ready', {
      openai_base_url: urls.openai,
      anthropic_base_url: urls.anthropic,
      console: `${root}/console/`,
      providers,
      models,
      try: curl,
    });
    return;
  }
  const line = '─'.repeat(78);
  out.write(`
${line}
  Gatehouse ${version} is running. Ctrl-C stops it.

  Console              ${consoleAddress(serving)}${serving.consoleCode === undefined ? '' : SIGNS_IN_ONCE}
  OpenAI base URL      ${urls.openai}
  Anthropic base URL   ${urls.anthropic}

  ${answering(serving)}
${line}

Try it:

${curl}

`);
}

/** With the code of the one-time link, if there is one. The fragment stays in the browser, so no log has the code. */
export function consoleAddress({ address, consoleCode }: Serving): string {
  return `${reachable(address)}/console/${consoleCode === undefined ? '' : `#/sign-in?code=${consoleCode}`}`;
}

function answering({ onlySimulated, providers, models }: Serving): string {
  if (!onlySimulated) return `${models} models of ${shortened(providers)}`;
  return `Only the simulated model answers. To add providers, set OPENAI_API_KEY, ANTHROPIC_API_KEY,
  GEMINI_API_KEY, ... or write gatehouse.yaml, and start again.`;
}

const MOST_NAMED = 8;

function shortened(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return names.slice(0, MOST_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** Clients cannot use an address that means all interfaces. */
function reachable(address: string): string {
  return address.replace('://0.0.0.0:', '://127.0.0.1:').replace('://[::]:', '://[::1]:');
}

/** For a POSIX shell; complete if the key is known or can be read from a file. */
function curlOf({ sample, inferenceKey }: Serving, api: string, config: Config): string {
  const key = inferenceKey ?? keySource(config);
  if (sample === null) return `curl ${api}/models -H "Authorization: Bearer ${key}"`;
  const body = { model: sample, messages: [{ role: 'user', content: 'Hello, Gatehouse' }] };
  return `curl ${api}/chat/completions \\
  -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\
  -d '${JSON.stringify(body)}'`;
}

function keySource({ dataDir, firstKeys }: Config): string {
  const file = path.join(dataDir, 'first-keys.txt');
  if (firstKeys.inference !== null) return '$GATEHOUSE_INFERENCE_KEY';
  if (existsSync(file)) return `$(sed -n 's/^inference key: //p' '${file.replaceAll("'", "'\\''")}')`;
  return '$INFERENCE_KEY';
}
