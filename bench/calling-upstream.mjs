/**
 * The upstream of `turns.mjs`, a chat service: `turns=N.` in a question makes it call `datetime` until the history has N
 * results. Anything else it answers with a text.
 */
import http from 'node:http';

const [port] = process.argv.slice(2);
const HEAD = { id: 'chatcmpl-1', object: 'chat.completion', created: 1_760_000_000, model: 'm' };
const USAGE = { prompt_tokens: 250, completion_tokens: 20, total_tokens: 270 };

function replyOf(message, finish) {
  return JSON.stringify({ ...HEAD, choices: [{ index: 0, message, finish_reason: finish }], usage: USAGE });
}

const TEXT = replyOf({ role: 'assistant', content: 'It is late, and all is well with the fox and the dog.' }, 'stop');

function callReply(number) {
  const call = { id: `call_${number}`, type: 'function', function: { name: 'datetime', arguments: '{}' } };
  return replyOf({ role: 'assistant', content: null, tool_calls: [call] }, 'tool_calls');
}

function answerTo(body) {
  const wanted = Number(/turns=(\d+)\./.exec(body)?.[1] ?? 0);
  const results = wanted === 0 ? 0 : body.split('"role":"tool"').length - 1;
  return results < wanted ? callReply(results) : TEXT;
}

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const reply = answerTo(Buffer.concat(chunks).toString());
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(reply) });
    response.end(reply);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(port), '127.0.0.1');
