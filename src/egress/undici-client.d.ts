/**
 * undici's client alone. The package's entry also loads its `fetch`, caches and sockets, which are unused here and cost
 * a tenth of a second at every start and 10 MB.
 */
declare module 'undici/lib/dispatcher/client.js' {
  type Client = import('undici').Client;
  const Client: typeof import('undici').Client;
  export = Client;
}
