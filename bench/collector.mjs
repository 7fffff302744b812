/** Accepts any request, reads its body and keeps nothing: `node collector.mjs PORT`. */
import http from 'node:http';

const server = http.createServer((request, response) => {
  request.resume().on('end', () => response.end('{}'));
});
server.listen(Number(process.argv[2]), '127.0.0.1');
