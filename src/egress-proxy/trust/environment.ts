/** What makes programs in a sandbox use the proxy and trust its certificates. */
import { getCACertificates } from 'node:tls';

/** Mount the trust bundle over this file as well: then most programs need no variable. */
export const SYSTEM_BUNDLE = '/etc/ssl/certs/ca-certificates.crt';

/** The port that `sandboxInitFile` is told to listen on in the sandbox. */
export const SANDBOX_PROXY_PORT = 3128;

/**
 * The certificates that a sandbox trusts, in PEM: those of this system, the operator's own, and the vault's authority.
 * @param extra the operator's own authorities (`GATEHOUSE_CA_FILE`), in PEM
 */
export function trustBundle(authority: string, extra: string | null): string {
  const system = getCACertificates('system');
  const roots = system.length > 0 ? system : getCACertificates('bundled');
  return [...roots, ...(extra === null ? [] : [extra]), authority].map((pem) => `${pem.trimEnd()}\n`).join('');
}

/** Each works for some programs only: Node and Bun, curl, OpenSSL and Python, git, pip, AWS's and Deno's tools, cargo. */
const BUNDLE_VARIABLES = [
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'AWS_CA_BUNDLE',
  'DENO_CERT',
  'CARGO_HTTP_CAINFO',
];

/**
 * The variables to set in a sandbox.
 * @param bundle the path of the trust bundle in the sandbox
 * @param port that `sandboxInitFile` listens on
 */
export function sandboxEnvironment(bundle: string, port: number = SANDBOX_PROXY_PORT): Record<string, string> {
  const proxy = `http://127.0.0.1:${port}`;
  const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
  return {
    ...Object.fromEntries(proxies.map((name) => [name, proxy])),
    NO_PROXY: '127.0.0.1,localhost',
    no_proxy: '127.0.0.1,localhost',
    // Without it, Node's fetch ignores the proxy.
    NODE_USE_ENV_PROXY: '1',
    ...Object.fromEntries(BUNDLE_VARIABLES.map((name) => [name, bundle])),
  };
}

/** Whether a secret may not be given to a sandbox under this name, because the proxy or the runtime needs it. */
export function isReservedVariable(name: string): boolean {
  return RESERVED.has(name.toUpperCase()) || /^(?:LD_|NODE_|BASH_|GIT_SSL_|GATEHOUSE_)/i.test(name);
}

const RESERVED = new Set([
  ...Object.keys(sandboxEnvironment('')),
  ...['PATH', 'HOME', 'USER', 'SHELL', 'PWD', 'IFS', 'ENV', 'TMPDIR', 'LANG', 'TERM', 'SSL_CERT_DIR'],
]);
