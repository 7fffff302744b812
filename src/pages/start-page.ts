/** The start page: what runs here, and how to use it. */
import { markup, page } from './html.ts';

/** What the start page says of the configuration; nothing that a stranger should not know. */
export interface ServiceState {
  onlySimulated: boolean;
}

interface StartPage extends ServiceState {
  /** `https://gateway.example`, as the browser asked for it. */
  root: string;
  version: string;
}

export function startPage({ root, version, onlySimulated }: StartPage): string {
  const curl = `curl ${root}/api/v1/chat/completions \\
  -H "Authorization: Bearer $INFERENCE_KEY" -H "Content-Type: application/json" \\
  -d '{"model": "${onlySimulated ? 'simulated/echo' : 'author/model'}", "messages": [{"role": "user", "content": "Hello, Gatehouse"}]}'`;
  const javascript = `import OpenAI from 'openai';
const openai = new OpenAI({ baseURL: '${root}/api/v1', apiKey: process.env.INFERENCE_KEY });

import Anthropic from '@anthropic-ai/sdk';
const anthropic = new Anthropic({ baseURL: '${root}/api', apiKey: process.env.INFERENCE_KEY });`;
  const python = `import os
from openai import OpenAI
openai = OpenAI(base_url="${root}/api/v1", api_key=os.environ["INFERENCE_KEY"])

from anthropic import Anthropic
anthropic = Anthropic(base_url="${root}/api", api_key=os.environ["INFERENCE_KEY"])`;
  const providers = onlySimulated
    ? markup`<p>Only the simulated model answers. To add providers, set <code>OPENAI_API_KEY</code>,
<code>ANTHROPIC_API_KEY</code>, <code>GEMINI_API_KEY</code>, ... or write <code>gatehouse.yaml</code>, and start again.</p>`
    : markup`<p><code>GET ${root}/api/v1/models</code> lists the models, with an inference key.</p>`;
  return page(
    'Gatehouse',
    markup`<main>
<h1>Gatehouse</h1>
<p class="soft">Version ${version}. A gateway for every model provider.</p>
<table>
<tr><th>OpenAI base URL</th><td><code>${root}/api/v1</code></td></tr>
<tr><th>Anthropic base URL</th><td><code>${root}/api</code></td></tr>
<tr><th>Console</th><td><a href="/console/">/console/</a></td></tr>
<tr><th>API reference</th><td><a href="/docs">/docs</a></td></tr>
<tr><th>OpenAPI document</th><td><a href="/openapi.json">/openapi.json</a></td></tr>
<tr><th>State</th><td><a href="/ready">/ready</a>, <a href="/health">/health</a></td></tr>
</table>
${providers}
<h2>Try it</h2>
<p>The first start made an inference key: it was shown on the terminal, or is in <code>first-keys.txt</code> in the data
directory. <code>npx gatehouse keys create</code> makes another one.</p>
<pre><code>export INFERENCE_KEY=sk-...
${curl}</code></pre>
<h2>JavaScript</h2>
<pre><code>${javascript}</code></pre>
<h2>Python</h2>
<pre><code>${python}</code></pre>
</main>`,
  );
}
