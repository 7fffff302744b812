/**
 * One request from its head to the end of its response. The order is fixed: route, authentication from the headers,
 * parameters, then the body, then the handler; each step that fails responds at once. Only authentication, the body and
 * the handler may wait, and nothing is allocated per request that these steps do not need.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../base/errors.ts';
import { type JsonDocument, stringifyJson } from '../base/json.ts';
import { announcesBody, awaitsContinue, BodyBuffer, checkBodyHeaders, slowBody, tooLarge } from './body.ts';
import type { Connection, Core, HasTimeout } from './core.ts';
import { allowOrigin, optionsHeaders } from './cors.ts';
import { busy, encodeEnvelope, errorHeaders, ownErrorBody, presentableError } from './envelope.ts';
import type { Linger } from './linger.ts';
import { type GatewayRequest, type GatewayResponse, onResponseClose } from './message.ts';
import type { Exchange, FinishedExchange, Operation, UploadRule } from './operation.ts';
import { readBody } from './read-body.ts';
import { requestIdOf } from './request-id.ts';
import { methodNotAllowed, noResource, pathOf } from './router.ts';
import { checkSingleHeaders } from './single-headers.ts';
import { clientDisconnected, Upload } from './upload.ts';
import { checksOf } from './validate.ts';

const NO_QUERY: Record<string, unknown> = Object.freeze({});

export class ServerExchange<C> implements Exchange<C>, FinishedExchange<C>, HasTimeout {
  readonly requestId: string;
  readonly startedAt: number;
  readonly headers: IncomingHttpHeaders;
  readonly response: GatewayResponse;
  caller = undefined as C;
  params: Record<string, string> = NO_QUERY as Record<string, string>;
  query: Record<string, unknown> = NO_QUERY;
  document: JsonDocument | undefined = undefined;
  form: URLSearchParams | undefined = undefined;
  upload: Upload | undefined = undefined;
  closed = false;
  record: unknown = undefined;
  trace: unknown = undefined;
  readonly #core: Core<C>;
  readonly #connection: Connection;
  readonly #request: GatewayRequest;
  readonly #beganAt: number;
  readonly #connectionSlot: number;
  #bodySlot = -1;
  #operation: Operation<C> | undefined = undefined;
  /** The path matches the operation, or another operation of the same path. */
  #matches = false;
  #phase: 'head' | 'body' | 'handling' | 'discarding' = 'head';
  #body: BodyBuffer | undefined = undefined;
  #expected: number | undefined = undefined;
  #search = '';
  #maxBytes = 0;
  #bodySince = 0;
  #linger: Linger | undefined = undefined;
  #closeListeners: (() => void)[] | undefined = undefined;
  #over = false;

  constructor(core: Core<C>, connection: Connection, request: GatewayRequest, response: GatewayResponse) {
    this.#core = core;
    this.#connection = connection;
    this.#request = request;
    this.response = response;
    this.headers = request.headers;
    this.startedAt = core.clock.now();
    this.#beganAt = core.clock.monotonic();
    this.requestId = requestIdOf(request.headers, this.startedAt);
    request.exchange = this;
    this.#connectionSlot = connection.begun(this);
    core.exchanges += 1;
    response.on('close', onResponseClose);
  }

  get body(): unknown {
    return this.document?.value;
  }

  get operation(): Operation<C> | undefined {
    return this.#operation;
  }

  get method(): string {
    return this.#request.method ?? '';
  }

  get path(): string {
    return this.#core.router.template(this.#plainPath, this.#matches ? this.#operation : undefined);
  }

  get #plainPath(): string {
    return pathOf((this.#request.url ?? '/').split('?', 1)[0]!);
  }

  get host(): string | undefined {
    return this.#core.proxies().host(this.#request.socket.remoteAddress, this.headers);
  }

  get protocol(): 'http' | 'https' {
    const { socket } = this.#request;
    return this.#core.proxies().protocol(socket.remoteAddress, this.headers, 'encrypted' in socket);
  }

  get prefix(): string {
    return this.#core.proxies().prefix(this.#request.socket.remoteAddress, this.headers);
  }

  get clientAddress(): string | undefined {
    return this.#core.proxies().clientAddress(this.#request.socket.remoteAddress, this.headers);
  }

  get status(): number {
    return this.response.headersSent ? this.response.statusCode : 0;
  }

  get durationMs(): number {
    return this.#core.clock.monotonic() - this.#beganAt;
  }

  /** Starts the exchange. @param expectation the value of the Expect header, if there is one */
  begin(expectation?: 'continue' | 'unknown'): void {
    try {
      const { common } = this.response;
      common['X-Request-Id'] = this.requestId;
      this.response._keepAliveTimeout = this.#core.limits.keepAliveMs;
      allowOrigin(this.headers, common);
      if (this.#core.draining) this.response.shouldKeepAlive = false;
      // Routing comes first, since errors are rendered in the format of their path.
      const operation = this.#route();
      if (!operation) return;
      this.#operation = operation;
      if (operation.requestIdHeader !== undefined) common[operation.requestIdHeader] = this.requestId;
      if (this.#core.exchanges > this.#core.limits.exchanges) throw busy();
      if (expectation === 'unknown')
        throw new GatewayError('invalid_request', 'unknown Expect header', { status: 417 });
      checkSingleHeaders(this.#request);
      const open = operation.access.kinds === 'anyone' || operation.opens?.(this.headers) === true;
      const caller = open ? this.caller : this.#core.authenticate(this.headers, operation, this.#search);
      if (caller instanceof Promise) {
        this.#awaitCaller(caller, operation);
      } else {
        this.caller = caller;
        this.#authenticated(operation);
      }
    } catch (error) {
      this.fail(error);
    }
  }

  onClose(run: () => void): void {
    if (!this.#over && this.#connection.leaves()) this.closed = true;
    if (this.closed) {
      run();
    } else if (!this.#over) {
      this.#closeListeners ??= [];
      this.#closeListeners.push(run);
    }
  }

  get isAbortable(): boolean {
    return this.#closeListeners !== undefined;
  }

  reply(status: number, value: unknown, headers?: Record<string, string>): void {
    const { response } = this;
    if (response.headersSent || this.closed) return;
    if (value === undefined) {
      response.writeHead(status, status === 204 ? headers : { 'Content-Length': '0', ...headers });
      response.end();
    } else {
      const text = stringifyJson(value);
      const type = this.#operation?.contentType ?? 'application/json';
      response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text), ...headers });
      response.end(text);
    }
    if (this.#phase === 'head' || this.#phase === 'body' || this.upload?.open) this.#discardRest();
  }

  /** Sends an error. After the response head, cuts the connection: no client must take the response for complete. */
  fail(thrown: unknown): void {
    const error = presentableError(thrown, this.requestId);
    // For unknown or unreadable paths, errors have the format of the part of the API that the path belongs to.
    this.#operation ??= this.#core.router.formOf(this.#plainPath, this.headers);
    if (error.details.cause !== undefined) {
      const { requestId, closed } = this;
      const fields = { request_id: requestId, operation: this.#operation?.id, status: error.status, error: thrown };
      // A client that leaves a download in the middle is no failure.
      const isLeft = closed && (thrown as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE';
      if (error.status === 500 && !isLeft) this.#core.log.error('request failed', fields);
      else this.#core.log.debug('request refused', fields);
    }
    if (this.closed) return;
    if (this.response.headersSent) {
      if (!this.response.writableEnded) this.response.destroy();
      return;
    }
    for (const name of this.response.getHeaderNames()) {
      // Headers that the handler prepared for its own response do not fit the error.
      if (name !== 'x-generation-id') this.response.removeHeader(name);
    }
    this.reply(error.status, this.#encodeError(error), errorHeaders(error));
  }

  receive(chunk: Buffer): true {
    if (this.#phase === 'discarding') this.#linger?.received(chunk.length);
    else if (this.#body && this.#phase === 'body') this.#receiveBody(this.#body, chunk);
    return true;
  }

  #receiveBody(body: BodyBuffer, chunk: Buffer): void {
    this.#core.bodyBytes += chunk.length;
    body.add(chunk);
    if (body.length > this.#maxBytes) this.fail(tooLarge(this.#maxBytes));
    else if (this.#core.bodyBytes > this.#core.limits.bodyBytesInFlight) this.fail(busy());
    else if (body.length === this.#expected) this.#bodyComplete();
  }

  /** The request has been received completely. */
  received(): void {
    if (this.#phase === 'body') this.#bodyComplete();
    else this.#linger?.complete();
  }

  /** The response is complete, or never will be. */
  finished(): void {
    if (this.#over) return;
    this.#over = true;
    this.#connection.ended(this, this.#connectionSlot);
    this.#core.exchanges -= 1;
    this.#core.bodyBytes -= this.#body?.length ?? 0;
    if (!this.response.writableFinished) this.#notifyClosed();
    this.upload?.stop(clientDisconnected());
    this.#closeListeners = undefined;
    this.#core.receiving.delete(this, this.#bodySlot);
    this.#notifyObserver();
    if (this.#core.draining && this.#connection.open.size === 0) this.#request.socket.destroySoon();
  }

  /** The client broke the framing of the body. Returns true if this exchange could still respond with the error. */
  badBody(error: GatewayError): boolean {
    if (this.#phase !== 'body' && !this.upload?.open) return false;
    this.response.shouldKeepAlive = false;
    this.fail(error);
    return true;
  }

  checkTimeout(nowMs: number): void {
    if (this.#phase !== 'body') return;
    const { limits } = this.#core;
    const grantedMs = ((this.#body?.length ?? 0) * 1000) / limits.bodyBytesPerSecond;
    if (nowMs - this.#bodySince <= limits.bodyMs + grantedMs) return;
    this.response.shouldKeepAlive = false;
    this.fail(slowBody());
  }

  /** Finds the operation. Returns undefined if an OPTIONS request was answered instead. */
  #route(): Operation<C> | undefined {
    const url = this.#request.url ?? '/';
    const method = this.#request.method ?? 'GET';
    const queryAt = url.indexOf('?');
    const path = pathOf(queryAt === -1 ? url : url.slice(0, queryAt));
    if (method === 'OPTIONS') {
      const headers = optionsHeaders(this.headers, path, (at) => this.#core.router.find(at)?.route.allow);
      if (headers !== undefined) return void this.reply(204, undefined, headers);
    }
    const match = this.#core.router.find(path, this.headers);
    if (!match) throw noResource(path, this.#core);
    this.#matches = true;
    const { route } = match;
    const operation = route.operations.get(method === 'HEAD' ? 'GET' : method);
    if (!operation) {
      // The error is rendered in the format of the path's other operations.
      [this.#operation] = route.operations.values();
      throw methodNotAllowed(method, route.allow);
    }
    this.params = match.params;
    if (queryAt !== -1) this.#search = url.slice(queryAt + 1);
    return operation;
  }

  #awaitCaller(caller: Promise<C>, operation: Operation<C>): void {
    caller.then(
      (known) => {
        if (this.closed) return;
        try {
          this.caller = known;
          this.#authenticated(operation);
        } catch (error) {
          this.fail(error);
        }
      },
      (error) => this.fail(error),
    );
  }

  #authenticated(operation: Operation<C>): void {
    this.#core.permit(this, operation.access);
    const checks = checksOf(operation);
    checks.params?.(this.params);
    if (checks.query) this.query = checks.query(this.#search);
    const { body, upload } = operation;
    if (!announcesBody(this.headers)) {
      if ((body && !body.optional) || (upload && !upload.optional))
        throw new GatewayError('invalid_request', 'the body is missing', { path: '' });
      this.#phase = 'handling';
      this.#handle(operation);
    } else if (upload) {
      this.#openUpload(operation, upload);
    } else if (!body) {
      this.#discardRest();
      this.#handle(operation);
    } else {
      this.#maxBytes = body.maxBytes ?? this.#core.limits.bodyBytes;
      this.#expected = checkBodyHeaders(this.headers, this.#maxBytes, body);
      this.#body = new BodyBuffer(this.#expected);
      this.#phase = 'body';
      if (awaitsContinue(this.#request)) this.response.writeContinue();
      this.#bodySince = this.#core.clock.monotonic();
      this.#bodySlot = this.#core.receiving.add(this);
      this.#request.readInto(this);
    }
  }

  #openUpload(operation: Operation<C>, rule: UploadRule): void {
    this.upload = new Upload(this.#request, this.#core, rule, (error) => {
      this.response.shouldKeepAlive = false;
      this.fail(error);
    });
    this.#phase = 'handling';
    if (awaitsContinue(this.#request)) this.response.writeContinue();
    this.#request.readInto(this.upload);
    this.#handle(operation);
  }

  /** Drops the rest of the body, because a client that is cut off while sending may never see the response. */
  #discardRest(): void {
    const wasReading = this.#phase === 'body';
    this.#phase = 'discarding';
    this.upload?.stop(clientDisconnected());
    if (this.#request.complete || !announcesBody(this.headers)) return;
    this.#core.receiving.delete(this, this.#bodySlot);
    this.#linger = this.#connection.lingers();
    if (!wasReading) this.#request.readInto(this);
  }

  #bodyComplete(): void {
    this.#phase = 'handling';
    this.#core.receiving.delete(this, this.#bodySlot);
    this.#core.endOfTurn(() => this.#readBody(), 'accept');
  }

  #readBody(): void {
    if (this.#over) return;
    const { body } = this.#operation!;
    const bytes = this.#body!.take();
    try {
      if (body?.form) {
        this.form = new URLSearchParams(bytes.toString('utf8'));
        this.documentRead(undefined);
      } else readBody(bytes, body!, this.#core.limits.depth, this);
    } catch (error) {
      this.fail(error);
    }
  }

  documentRead(document: JsonDocument | undefined): void {
    this.document = document;
    if (document !== undefined) checksOf(this.#operation!).body?.(document);
    this.#handle(this.#operation!);
  }

  #handle(operation: Operation<C>): void {
    const result = operation.handle(this);
    if (result !== undefined) result.then(undefined, (error) => this.fail(error));
  }

  #encodeError(error: GatewayError): unknown {
    const own = ownErrorBody(this.#operation, error, this, this.#core.log);
    return own ?? encodeEnvelope(error, this.caller === undefined ? undefined : this.#core.userId(this.caller));
  }

  #notifyObserver(): void {
    try {
      this.#core.observe?.(this);
    } catch (error) {
      this.#core.log.error('exchange observer failed', { request_id: this.requestId, error });
    }
  }

  #notifyClosed(): void {
    this.closed = true;
    const listeners = this.#closeListeners;
    this.#closeListeners = undefined;
    for (const run of listeners ?? []) {
      try {
        run();
      } catch (error) {
        this.#core.log.error('close listener failed', { request_id: this.requestId, error });
      }
    }
  }
}
