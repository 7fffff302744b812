/**
 * undici's client alone. The package's own entry loads its `fetch`, caches and sockets as well, which no one here uses: a tenth
 * of a second of every start, and 10 MB.
 */
declare module 'undici/lib/dispatcher/client.js' {
  type Client = import('undici').Client;
  const Client: typeof import('undici').Client;
  export = Client;
}
