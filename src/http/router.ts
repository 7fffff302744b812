/**
 * Finds the operation for a method and path. Segments are percent-decoded once, after the path is split at its slashes,
 * so an encoded slash stays inside its segment. Dot segments match nothing; empty segments are skipped only for
 * operations with `passesOverEmptySegments`.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../base/errors.ts';
import { pathHint } from './near-path.ts';
import type { Operation, UnservedPaths } from './operation.ts';

/** Prefixes under which operations are served; the second is for SDKs with a fixed path. */
export const API_PREFIXES = ['/api/v1', '/v1'];

/** The operations of one path pattern. */
interface Route<C> {
  operations: Map<string, Operation<C>>;
  /** Names of the `{...}` segments, in order. */
  names: string[];
  /** Value of the Allow header. */
  allow: string;
}

interface Match<C> {
  route: Route<C>;
  params: Record<string, string>;
}

interface Node<C> {
  fixed: Map<string, Node<C>>;
  param: Node<C> | undefined;
  route: Route<C> | undefined;
}

/** Limits for logging an unknown path: characters and segments. */
const LONGEST_LOGGED = 1_000;
const MOST_LOGGED = 12;

const NO_PARAMS: Record<string, string> = Object.freeze({});

export class Router<C> {
  readonly #root: Node<C> = createNode();
  /** By the first two segments of their paths: operations at the root with an error format of their own. */
  readonly #formOf = new Map<string, Operation<C>>();
  /** By the first segment: the same, if every operation there has an error format of its own; otherwise undefined. */
  readonly #formBelow = new Map<string, Operation<C> | undefined>();
  /** First two segments of paths where the empty segments after them are skipped. */
  readonly #passOverEmpty = new Set<string>();
  /** Paths without parameters, in their usual spelling. */
  readonly #exact = new Map<string, Match<C>>();
  /** Every fixed segment of any path. */
  readonly #words = new Set<string>();

  readonly #unserved: UnservedPaths | undefined;

  /** Throws when two operations claim the same method and path. */
  constructor(operations: readonly Operation<C>[], unserved?: UnservedPaths) {
    this.#unserved = unserved;
    for (const operation of operations) {
      if (operation.root) {
        this.#add(operation.path, operation);
        this.#addForm(operation);
        if (operation.passesOverEmptySegments) this.#passOverEmpty.add(firstSegments(operation.path));
      } else {
        for (const prefix of API_PREFIXES) this.#add(prefix + operation.path, operation);
      }
    }
  }

  /**
   * @param path the raw path of the request, without its query
   * @param headers without them, every path is found that an operation has
   * @throws GatewayError 400 for broken encoding, 404 for a path that is not served to this client
   */
  find(path: string, headers?: IncomingHttpHeaders): Match<C> | undefined {
    const reason = headers && this.#unserved?.reason(path, headers);
    if (reason !== undefined) throw new GatewayError('not_found', reason);
    const exact = this.#exact.get(path);
    if (exact) return exact;
    if (!path.startsWith('/')) return undefined;
    const segments = path.slice(1).split('/').map(decodeSegment);
    if (segments.includes('.') || segments.includes('..')) return undefined;
    const exactly = this.#match(segments);
    if (exactly || !this.#passOverEmpty.has(firstSegments(path))) return exactly;
    return this.#match(segments.filter((segment) => segment !== ''));
  }

  /** The operation whose error format applies to an unknown path. */
  formOf(asked: string, headers: IncomingHttpHeaders): Operation<C> | undefined {
    const isUnserved = this.#unserved?.reason(asked, headers) !== undefined;
    const path = isUnserved ? this.#unserved!.form : asked;
    return this.#formOf.get(firstSegments(path)) ?? this.#formBelow.get(firstSegment(path));
  }

  /**
   * A path as it may be logged: any segment that no operation spells out may be a secret in the wrong place.
   * @param operation the matched operation; undefined for an unknown path
   */
  template(path: string, operation: Operation<C> | undefined): string {
    if (this.#exact.has(path)) return path;
    if (operation?.root) return operation.path;
    if (operation) return (API_PREFIXES.find((prefix) => path.startsWith(`${prefix}/`)) ?? '') + operation.path;
    const segments = path.slice(0, LONGEST_LOGGED).split('/', MOST_LOGGED);
    return segments.map((segment) => (segment === '' || this.#words.has(segment) ? segment : '*')).join('/');
  }

  /** The suggestion for an unknown path, as the end of an error message; '' without one. */
  hint(path: string): string {
    return pathHint(path, {
      prefix: API_PREFIXES[0]!,
      exact: [...this.#exact.keys()],
      patternOf: (other) => this.#pattern(other),
    });
  }

  #pattern(path: string): string | undefined {
    const [operation] = this.find(path)?.route.operations.values() ?? [];
    return operation && (operation.root ? '' : API_PREFIXES[0]) + operation.path;
  }

  #match(segments: string[]): Match<C> | undefined {
    const values: string[] = [];
    const route = findRoute(this.#root, segments, 0, values);
    if (!route) return undefined;
    const params: Record<string, string> = {};
    for (const [index, name] of route.names.entries()) params[name] = values[index]!;
    return { route, params };
  }

  #addForm(operation: Operation<C>): void {
    const form = operation.encodeError && operation;
    if (form) this.#formOf.set(firstSegments(operation.path), form);
    const segment = firstSegment(operation.path);
    if (form === undefined || API_PREFIXES.some((prefix) => firstSegment(prefix) === segment)) {
      this.#formBelow.set(segment, undefined);
    } else if (!this.#formBelow.has(segment)) this.#formBelow.set(segment, form);
  }

  #add(path: string, operation: Operation<C>): void {
    const names: string[] = [];
    let node = this.#root;
    for (const segment of path.slice(1).split('/')) {
      const name = /^\{(\w+)\}$/.exec(segment)?.[1];
      if (name === undefined) {
        this.#words.add(segment);
        let next = node.fixed.get(segment);
        if (!next) {
          next = createNode();
          node.fixed.set(segment, next);
        }
        node = next;
      } else {
        names.push(name);
        node.param ??= createNode();
        node = node.param;
      }
    }
    node.route ??= { operations: new Map(), names, allow: '' };
    const { route } = node;
    if (route.operations.has(operation.method)) throw new Error(`${operation.method} ${path} is served twice`);
    if (route.names.join() !== names.join()) throw new Error(`${path} names its parameters in two ways`);
    route.operations.set(operation.method, operation);
    route.allow = allowHeader(route.operations);
    if (names.length === 0) this.#exact.set(path, { route, params: NO_PARAMS });
  }
}

function firstSegment(path: string): string {
  return path.split('/', 2).join('/');
}

function firstSegments(path: string): string {
  return path.split('/', 3).join('/');
}

function createNode<C>(): Node<C> {
  return { fixed: new Map(), param: undefined, route: undefined };
}

/** Fixed segments take precedence over parameters; backtracks from a dead end. */
function findRoute<C>(node: Node<C>, segments: string[], at: number, values: string[]): Route<C> | undefined {
  if (at === segments.length) return node.route;
  const segment = segments[at]!;
  const fixed = node.fixed.get(segment);
  const found = fixed && findRoute(fixed, segments, at + 1, values);
  if (found || !node.param || segment === '') return found;
  values.push(segment);
  const route = findRoute(node.param, segments, at + 1, values);
  if (!route) values.pop();
  return route;
}

function decodeSegment(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new GatewayError('invalid_request', 'the path has a broken percent-encoding');
  }
}

function allowHeader(operations: ReadonlyMap<string, unknown>): string {
  const methods = [...operations.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...methods, 'OPTIONS'].join(', ');
}

/** The path of an origin-form or absolute-form request target. */
export function pathOf(target: string): string {
  if (target.startsWith('/') || target === '*') return target;
  const absolute = /^https?:\/\/[^/]*(.*)$/i.exec(target);
  return absolute ? absolute[1] || '/' : target;
}

/** @param unsupported paths whose clients expect an error without the gateway's metadata */
export function noResource<C>(
  path: string,
  { router, unsupported }: { router: Router<C>; unsupported: RegExp },
): GatewayError {
  const bare = unsupported.test(path);
  const shown = path.length > 200 ? `${path.slice(0, 200)}...` : path;
  return new GatewayError('not_found', `there is no resource at ${shown}${bare ? '' : router.hint(path)}`, { bare });
}

export function methodNotAllowed(method: string, allow: string): GatewayError {
  const message = `method ${method.slice(0, 20)} is not allowed here; allowed: ${allow}`;
  return new GatewayError('invalid_request', message, { status: 405, headers: { Allow: allow } });
}
