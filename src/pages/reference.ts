/** The API reference: the OpenAPI document as one readable page. */
import { type Markup, markup, page, prose } from './html.ts';
import { describeType, type Schema, schemaMembers } from './schema-members.ts';

interface Document {
  info: { title: string; version: string; description?: string };
  tags: { name: string }[];
  servers: { url: string }[];
  paths: Record<string, PathItem>;
  components: { schemas?: Record<string, Schema>; responses?: Record<string, Reply> };
}

type PathItem = Record<string, unknown> & { servers?: { url: string }[] };

interface Described {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: { required?: boolean; content: Record<string, { schema?: Schema }> };
  responses: Record<string, Reply>;
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

interface Reply {
  $ref?: string;
  description?: string;
  content?: Record<string, { schema?: Schema }>;
}

interface Listed extends Described {
  method: string;
  /** With the prefix under which it is served. */
  path: string;
}

/** What most readers look for. */
const FIRST_TAGS = ['Inference', 'Models', 'Generations', 'Images', 'Keys'];
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

export function referencePage(json: string): string {
  const document = JSON.parse(json) as Document;
  const order = [...FIRST_TAGS, ...document.tags.map(({ name }) => name)];
  const ordered = document.tags.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  const tags = ordered.map(({ name }) => ({
    name,
    operations: listed(document).filter((each) => each.tags.includes(name)),
  }));
  const { info } = document;
  return page(
    `${info.title} API`,
    markup`<div class="layout"><nav aria-label="Operations"><p><a href="/start">Start page</a></p>${tags.map(navigation)}</nav><main>
<h1>${info.title} API</h1>
<p class="soft">Version ${info.version}. Send the key as <code>Authorization: Bearer KEY</code>. Operations below
<code>${document.servers[0]?.url}</code> are also served below <code>/v1</code>. <a href="/openapi.json">OpenAPI document</a></p>
${tags.map(({ name, operations }) => markup`<h2 id="${anchor('tag', name)}">${name}</h2>${operations.map((each) => section(each, document))}`)}
${components(document)}
</main></div>`,
  );
}

function listed({ paths, servers }: Document): Listed[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method] !== undefined).map((method) => ({
      ...(item[method] as Described),
      method: method.toUpperCase(),
      path: `${(item.servers ?? servers)[0]?.url ?? ''}${path}`.replace(/^\/\//, '/'),
    })),
  );
}

function navigation({ name, operations }: { name: string; operations: readonly Listed[] }): Markup {
  const links = operations.map(
    ({ operationId, method, path }) => markup`<li><a href="#${operationId}">${method} ${path}</a></li>`,
  );
  return markup`<details><summary><a href="#${anchor('tag', name)}">${name}</a></summary><ul>${links}</ul></details>`;
}

function section(operation: Listed, document: Document): Markup {
  const { operationId, method, path, summary, description, parameters = [], requestBody, responses } = operation;
  return markup`<section class="operation" id="${operationId}">
<h3><span class="${method === 'GET' ? 'method get' : 'method'}">${method}</span> <code>${path}</code></h3>
<p>${prose(summary)}. <span class="soft">${description}</span></p>
${parameters.length > 0 ? markup`<h4>Parameters</h4><ul class="members">${parameters.map(parameter)}</ul>` : undefined}
${requestBody && markup`<h4>Request body</h4>${contents(requestBody.content)}`}
<h4>Responses</h4><ul class="members">${succeeding(responses).map(([status, reply]) => response(status, reply, document))}</ul>
${errors(responses, document)}
</section>`;
}

function parameter({ name, in: place, required, description, schema = {} }: Parameter): Markup {
  const note = [place, required && 'required', describeType(schema)].filter(Boolean).join(', ');
  return markup`<li><code>${name}</code> <span class="soft">${note}</span>${description === undefined ? undefined : markup` ${prose(description)}`}</li>`;
}

function succeeding(responses: Record<string, Reply>): [string, Reply][] {
  return Object.entries(responses).filter(([status]) => /^[123]/.test(status));
}

/** Errors of one operation have mostly one form. */
function errors(responses: Record<string, Reply>, document: Document): Markup | undefined {
  const failing = Object.entries(responses).filter(([status]) => !/^[123]/.test(status));
  if (failing.length === 0) return undefined;
  const forms = new Set(
    failing.flatMap(([, reply]) =>
      Object.values(shared(reply, document).content ?? {}).map(({ schema }) => schema?.$ref),
    ),
  );
  const links = [...forms].filter((form) => form !== undefined).map((form) => link(form));
  return markup`<p class="soft">Errors: ${failing.map(([status]) => markup`<code>${status}</code> `)}${links}</p>`;
}

function link(reference: string): Markup {
  const name = reference.split('/').at(-1)!;
  return markup`<a href="#${anchor('schema', name)}">${name}</a> `;
}

function shared(reply: Reply, { components: { responses = {} } }: Document): Reply {
  return reply.$ref === undefined ? reply : (responses[reply.$ref.split('/').at(-1)!] ?? {});
}

function response(status: string, reply: Reply, document: Document): Markup {
  const { description = '', content = {} } = shared(reply, document);
  return markup`<li><code>${status}</code> ${prose(description)}${contents(content)}</li>`;
}

function contents(content: Record<string, { schema?: Schema }>): Markup[] {
  return Object.entries(content).map(([type, { schema }]) =>
    schema === undefined
      ? markup` <span class="soft">${type}</span>`
      : markup`<details><summary><span class="soft">${type}:</span> ${describeType(schema)}</summary>${schemaMembers(schema)}</details>`,
  );
}

function components({ components: { schemas = {} } }: Document): Markup {
  const rows = Object.entries(schemas).map(
    ([name, schema]) => markup`<section class="operation" id="${anchor('schema', name)}"><h3>${name}</h3>
<p class="soft">${describeType(schema)}</p>${schemaMembers(schema)}</section>`,
  );
  return markup`<h2 id="schemas">Schemas</h2>${rows}`;
}

function anchor(kind: 'tag' | 'schema', name: string): string {
  return `${kind}-${name.replace(/[^\w.-]/g, '-')}`;
}
