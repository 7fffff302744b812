/** What real programs speak to in tests: a git server and a registry of npm, as answers of `TlsHost`. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import type http from 'node:http';
import type { SeenRequest } from './hosts.ts';

/** git's own CGI program. */
export function gitBackend(folder: string): (seen: SeenRequest, response: http.ServerResponse) => Promise<void> {
  return (seen, response) =>
    new Promise((resolve) => {
      const url = new URL(seen.path, 'https://x');
      const child = spawn('git', ['http-backend'], {
        env: {
          PATH: process.env['PATH'],
          ...{ GIT_PROJECT_ROOT: folder, GIT_HTTP_EXPORT_ALL: '1', REMOTE_USER: 'x', REQUEST_METHOD: seen.method },
          ...{ PATH_INFO: url.pathname, QUERY_STRING: url.search.slice(1) },
          CONTENT_TYPE: seen.headers['content-type'] ?? '',
          HTTP_CONTENT_ENCODING: seen.headers['content-encoding'] ?? '',
          CONTENT_LENGTH: String(seen.body.length),
        },
      });
      const chunks: Buffer[] = [];
      child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
      child.on('close', () => {
        const all = Buffer.concat(chunks);
        const end = all.indexOf('\r\n\r\n');
        for (const line of all.subarray(0, end).toString().split('\r\n')) {
          const [name = '', value = ''] = line.split(/: */, 2);
          if (name === 'Status') response.statusCode = Number.parseInt(value, 10);
          else response.setHeader(name, value);
        }
        response.end(all.subarray(end + 4));
        resolve();
      });
      // A program that refuses the request does not read it.
      child.stdin.on('error', () => {});
      child.stdin.end(seen.body);
    });
}

/**
 * A registry with the package `parcel`.
 * @param token the value of the `authorization` header that it wants; undefined: it must be absent
 */
export function npmRegistry(tarball: Buffer, host: string, token: string | undefined) {
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  return (seen: SeenRequest, response: http.ServerResponse): void => {
    if (seen.headers['authorization'] !== token) return void response.writeHead(401).end();
    if (seen.path.endsWith('.tgz'))
      return void response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(tarball);
    const dist = { tarball: `https://${host}/parcel/-/parcel-1.0.0.tgz`, integrity };
    const versions = { '1.0.0': { name: 'parcel', version: '1.0.0', dist } };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name: 'parcel', 'dist-tags': { latest: '1.0.0' }, versions }));
  };
}
