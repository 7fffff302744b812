/** Checks every response of the gateways in a test process against the statuses that its operation declares in openapi.json. */
import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import type { GatewayRequest, GatewayResponse } from '../../http/message.ts';
import type { Operation } from '../../http/operation.ts';
import { errorStatuses } from '../../http/statuses.ts';

const undeclared = new Set<string>();
let watching = false;

/** @returns what fails where an operation has answered with a status or content type that it does not declare */
export function watchStatuses(): () => void {
  if (!watching) {
    watching = true;
    subscribe('http.server.response.finish', (message) =>
      look(message as { request: GatewayRequest; response: GatewayResponse }),
    );
  }
  return () => {
    const found = [...undeclared];
    undeclared.clear();
    assert.deepEqual(found, [], 'operations answer with what they do not declare (`replies`, `errors`)');
  };
}

function look({ request, response }: { request: GatewayRequest; response: GatewayResponse }): void {
  const exchange = request.exchange as { operation?: Operation; path: string } | undefined;
  const operation = exchange?.operation;
  // Of other methods, and of paths that have no operation, nothing is declared.
  if (operation === undefined || request.method !== operation.method || !exchange!.path.endsWith(operation.path))
    return;
  // Of the server that the tests of `http/` have.
  if (operation.tag === 'tests') return;
  const { statusCode: status } = response;
  // As it was sent: what `writeHead` gets is no header that could be asked for.
  const { _header: head } = response as unknown as { _header: string };
  const type = /^content-type: ([^;\r\n]*)/im.exec(head)?.[1] ?? '';
  const told = `${operation.id}: ${status} ${type}`;
  const reply = operation.replies[status];
  const usual = operation.contentType ?? 'application/json';
  const types = reply
    ? [reply.contentType ?? usual, ...(reply.events ? ['text/event-stream'] : []), ...(reply.texts ?? [])]
    : [usual, ...(operation.errorPages ? ['text/html'] : [])];
  const known = reply !== undefined || errorStatuses(operation).includes(status) || UNTOLD.has(status);
  const ranges = [type, `${type.split('/')[0]}/*`, '*/*'];
  if (!known || (type !== '' && !types.some((each) => ranges.includes(each)))) undeclared.add(told);
}

/** Of the protocol and not of an operation: an unknown `Expect`. */
const UNTOLD = new Set([417]);
