/** The host behind the egress proxy: answers every request of HTTP/1.1 or HTTP/2 with 1 KB. Its parent sends it a certificate. */
import http2 from 'node:http2';

const answer = JSON.stringify({ text: 'x'.repeat(1_000) });

process.on('message', ({ key, cert }) => {
  const server = http2.createSecureServer({ key, cert, allowHTTP1: true }, (request, response) => {
    request.resume();
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.setHeader('content-length', answer.length);
      response.end(answer);
    });
  });
  server.keepAliveTimeout = 120_000;
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
});
process.on('disconnect', () => process.exit());
