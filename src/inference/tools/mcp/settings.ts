/** The declaration of an MCP server: its address, the tools that the model gets, and those that need approval. */
import { invalidField } from '../../../base/errors.ts';
import { type Fields, isFields } from '../../../formats/conversation/fields.ts';
import { Members } from '../../tool-settings.ts';

/** The type of the responses format: the client sees calls as `mcp_call`, and can be asked for approval. */
export const MCP = 'mcp';

const LABEL = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;
const LONGEST_URL = 2_048;
const LONGEST_TOKEN = 8_192;
const LONGEST_DESCRIPTION = 10_000;
const MOST_HEADERS = 50;
const MOST_HEADER_BYTES = 16_384;
const MOST_NAMES = 500;
const LONGEST_NAME = 256;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
/** Printable ASCII, spaces and tabs. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
/** Headers of the connection and of the protocol itself. */
const RESERVED =
  /^(?:accept|accept-encoding|connection|content-.*|expect|host|keep-alive|last-event-id|mcp-.*|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

export interface ServerSettings {
  label: string;
  url: string;
  description: string | undefined;
  headers: Readonly<Record<string, string>>;
  allows(tool: NamedTool): boolean;
  asksFirst(tool: NamedTool): boolean;
}

interface NamedTool {
  name: string;
  /** The server says that it changes nothing. */
  readOnly: boolean;
}

/** @param canAsk the client can be asked for approval. @throws GatewayError 400 */
export function readServer(settings: Fields, path: string, canAsk: boolean): ServerSettings {
  const members = new Members(settings, path);
  const label = members.text('server_label', 64);
  if (label === undefined || !LABEL.test(label)) {
    throw invalidField(`${path}.server_label`, 'must be a letter and up to 63 letters, digits, underscores or hyphens');
  }
  if ((settings['connector_id'] ?? undefined) !== undefined) {
    throw invalidField(`${path}.connector_id`, 'is not supported by this gateway');
  }
  const url = members.text('server_url', LONGEST_URL);
  if (url === undefined || !/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw invalidField(`${path}.server_url`, 'must be an http or https URL');
  }
  return {
    label,
    url,
    description: members.text('server_description', LONGEST_DESCRIPTION),
    headers: headersOf(settings['headers'] ?? undefined, members.text('authorization', LONGEST_TOKEN), path),
    allows: allowed(settings['allowed_tools'] ?? undefined, `${path}.allowed_tools`),
    asksFirst: approval(settings['require_approval'] ?? undefined, `${path}.require_approval`, canAsk),
  };
}

function headersOf(value: unknown, token: string | undefined, path: string): Record<string, string> {
  const own: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  if (token !== undefined) checkValue(`Bearer ${token}`, `${path}.authorization`);
  if (value === undefined) return own;
  if (!isFields(value) || Object.keys(value).length > MOST_HEADERS) {
    throw invalidField(`${path}.headers`, `must be an object with at most ${MOST_HEADERS} headers`);
  }
  const headers: Record<string, string> = {};
  for (const [name, text] of Object.entries(value)) {
    const at = `${path}.headers.${name.slice(0, 100)}`;
    checkName(name, at);
    if (typeof text !== 'string') throw invalidField(at, 'must be a string');
    checkValue(text, at);
    if (token !== undefined && /^authorization$/i.test(name)) {
      throw invalidField(at, 'cannot be combined with authorization');
    }
    headers[name.toLowerCase()] = text;
  }
  if (Buffer.byteLength(JSON.stringify(headers)) > MOST_HEADER_BYTES) {
    throw invalidField(`${path}.headers`, `must not be larger than ${MOST_HEADER_BYTES} bytes`);
  }
  return { ...headers, ...own };
}

function checkName(name: string, path: string): void {
  if (!HEADER_NAME.test(name)) throw invalidField(path, 'is not the name of a header');
  if (RESERVED.test(name)) throw invalidField(path, 'is a header that the gateway sets itself');
}

function checkValue(value: string, path: string): void {
  if (!HEADER_VALUE.test(value)) throw invalidField(path, 'must consist of printable ASCII characters');
}

function allowed(value: unknown, path: string): ServerSettings['allows'] {
  if (value === undefined) return () => true;
  if (Array.isArray(value)) {
    const names = namesOf(value, path);
    return ({ name }) => names.has(name);
  }
  return filterOf(value, path);
}

/** Without a setting, every call needs approval. */
function approval(value: unknown, path: string, canAsk: boolean): ServerSettings['asksFirst'] {
  if (value === 'never') return () => false;
  if (!canAsk) {
    throw invalidField(
      path,
      "must be 'never': only tools of the type mcp in the responses format can ask for approval",
    );
  }
  if (value === undefined || value === 'always') return () => true;
  if (!isFields(value)) throw invalidField(path, "must be 'always', 'never' or an object");
  const { always, never } = value;
  const asks = (always ?? undefined) === undefined ? () => false : filterOf(always, `${path}.always`);
  const isFree = (never ?? undefined) === undefined ? () => false : filterOf(never, `${path}.never`);
  return (tool) => asks(tool) || !isFree(tool);
}

/** `tool_names` and `read_only`; a filter without any holds for no tool. */
function filterOf(value: unknown, path: string): (tool: NamedTool) => boolean {
  if (!isFields(value)) throw invalidField(path, 'must be an object with tool_names or read_only');
  const readOnly = new Members(value, path).flag('read_only');
  const list = value['tool_names'] ?? undefined;
  const names = list === undefined ? undefined : namesOf(list, `${path}.tool_names`);
  if (names === undefined && readOnly === undefined) return () => false;
  return (tool) =>
    (names === undefined || names.has(tool.name)) && (readOnly === undefined || tool.readOnly === readOnly);
}

function namesOf(value: unknown, path: string): ReadonlySet<string> {
  if (!Array.isArray(value) || value.length > MOST_NAMES) {
    throw invalidField(path, `must be a list of at most ${MOST_NAMES} names`);
  }
  return new Set(
    value.map((name, index) => {
      if (typeof name === 'string' && name !== '' && name.length <= LONGEST_NAME) return name;
      throw invalidField(`${path}[${index}]`, `must be a name of 1 to ${LONGEST_NAME} characters`);
    }),
  );
}
