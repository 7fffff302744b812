/** The request of the playground as code. */
import type { FormatName } from './conversation.ts';
import { FORMATS } from './formats.ts';

interface Sample {
  title: string;
  text: string;
}

/** Longer texts (images) are left out. */
const LONGEST = 400;

export function samplesOf(format: FormatName, body: Record<string, unknown>): Sample[] {
  const { path, sdk } = FORMATS[format];
  const root = new URL('..', location.href.split('#')[0]).href.replace(/\/$/, '');
  const shown = JSON.stringify(
    body,
    (_, value: unknown) =>
      typeof value === 'string' && value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value,
    2,
  );
  const curl = `curl ${root}/api/v1${path} \\
  -H "Authorization: Bearer $INFERENCE_KEY" -H "Content-Type: application/json" \\
  -d '${shown.replaceAll("'", "'\\''")}'`;
  const call = { chat: 'chat.completions.create', messages: 'messages.create', responses: 'responses.create' }[format];
  const isOpenAi = sdk === 'openai';
  const base = isOpenAi ? `${root}/api/v1` : `${root}/api`;
  const [name, variable] = isOpenAi ? ['OpenAI', 'openai'] : ['Anthropic', 'anthropic'];
  const javascript = `import ${name} from '${isOpenAi ? 'openai' : '@anthropic-ai/sdk'}';

const ${variable} = new ${name}({ baseURL: '${base}', apiKey: process.env.INFERENCE_KEY });
const stream = await ${variable}.${call}(${shown});
for await (const event of stream) console.log(event);`;
  const python = `import os
from ${isOpenAi ? 'openai' : 'anthropic'} import ${name}

${variable} = ${name}(base_url="${base}", api_key=os.environ["INFERENCE_KEY"])
stream = ${variable}.${call}(**${pythonText(shown)})
for event in stream:
    print(event)`;
  return [
    { title: 'curl', text: curl },
    { title: 'JavaScript', text: javascript },
    { title: 'Python', text: python },
  ];
}

/** JSON as Python writes it. */
function pythonText(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g, (token) =>
    token === 'true' ? 'True' : token === 'false' ? 'False' : token === 'null' ? 'None' : token,
  );
}
