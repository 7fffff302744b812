/**
 * A bare proxy that shows the cost of Node.js itself: node:http in front of undici's `dispatch`. It sets the model and forwards,
 * without keys, prices or failure handling.
 *
 *   node bench/bare.mjs PORT UPSTREAM_PORT
 */
import { createServer } from 'node:http';
import { Pool } from 'undici';

const [port, upstreamPort] = process.argv.slice(2).map(Number);
const pool = new Pool(`http://127.0.0.1:${upstreamPort}`, { pipelining: 1, connections: 2048 });

createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const text = Buffer.concat(pieces).toString('latin1');
    const body = Buffer.from(text.replace(`"${JSON.parse(text).model}"`, '"m"'), 'latin1');
    const headers = { 'content-type': 'application/json', authorization: 'Bearer upstream-key' };
    pool.dispatch(
      { path: request.url, method: 'POST', headers, body },
      {
        onRequestStart() {},
        onResponseStart(_controller, status, { 'content-type': type, 'content-length': length }) {
          response.writeHead(status, { 'content-type': type, ...(length && { 'content-length': length }) });
        },
        onResponseData(_controller, piece) {
          response.write(piece);
        },
        onResponseEnd() {
          response.end();
        },
        onResponseError() {
          response.destroy();
        },
      },
    );
  });
}).listen(port, '127.0.0.1');
