/**
 * `npm run bench -- --only egress`: what the egress proxy costs. The same keep-alive requests (1 KB out with a header that holds a
 * placeholder, 1 KB back) go directly to a host, through a tunnel to a host without secrets, and to a host with a bound secret. And
 * the time of the first request to a new host.
 */
import { fork } from 'node:child_process';
import http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { createPlaceholder } from '../src/egress-proxy/index.ts';
import { issueFor, root } from '../src/testing/egress-proxy/hosts.ts';
import { connect } from '../src/testing/egress-proxy/setup.ts';
import { superviseProxy } from '../src/testing/egress-proxy/supervised.ts';
import { cpuMicros, HERE, median } from './tools.mjs';

export const EGRESS = 'egress';
const BOUND = 'api.bound.test';
const FREE = 'api.free.test';
const CONNECTIONS = 8;
const NEW_HOSTS = 40;
const body = JSON.stringify({ text: 'y'.repeat(1_000) });

export async function measureEgress({ rounds, seconds, warmup, json }) {
  const ends = [];
  const place = { after: (run) => ends.push(run) };
  const newHosts = Array.from({ length: NEW_HOSTS }, (_, index) => `host${index}.new.test`);
  const leaf = issueFor([BOUND, FREE, ...newHosts]);
  const host = fork(path.join(HERE, 'egress-host.mjs'));
  ends.push(() => host.disconnect());
  try {
    host.send({ key: leaf.key, cert: leaf.certificate });
    const port = await new Promise((resolve) => host.once('message', resolve));
    const placeholder = createPlaceholder();
    const names = Object.fromEntries([BOUND, FREE, ...newHosts].map((name) => [name, port]));
    const secrets = [{ name: 'token', value: 'v'.repeat(40), hosts: [BOUND, ...newHosts], placeholder }];
    const box = await superviseProxy(place, names, secrets);
    const ca = [box.authority.certificate, root.certificate];
    const open = async (way, name, ALPNProtocols) => {
      const socket = way === 'direct' ? net.connect(port, '127.0.0.1') : await connect(box.socketPath, `${name}:443`);
      const secure = tls.connect({ socket, servername: name, ca, ALPNProtocols });
      await new Promise((resolve, reject) => secure.once('secureConnect', resolve).once('error', reject));
      return secure;
    };
    const parts = { box, host, open, placeholder };
    const figures = [];
    for (const version of ['HTTP/1.1', 'HTTP/2']) {
      const results = new Map();
      for (const way of ['direct', 'tunnel', 'intercepted']) await load(parts, version, way, warmup);
      for (let round = 0; round < rounds; round += 1) {
        for (const way of ['direct', 'tunnel', 'intercepted']) {
          results.set(way, [...(results.get(way) ?? []), await load(parts, version, way, seconds)]);
        }
      }
      figures.push({ version, ways: Object.fromEntries([...results].map(([way, list]) => [way, medians(list)])) });
    }
    const fresh = await measureNewHosts(parts, newHosts);
    if (json) console.log(JSON.stringify({ figures, fresh }, null, 2));
    else print(figures, fresh, rounds);
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

/** A closed loop over some connections for some seconds. */
async function load({ box, host, open, placeholder }, version, way, seconds) {
  const name = way === 'intercepted' ? BOUND : FREE;
  const one = version === 'HTTP/2' ? oneHttp2 : oneHttp1;
  const clients = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () =>
      one(await open(way, name, [version === 'HTTP/2' ? 'h2' : 'http/1.1']), name),
    ),
  );
  const before = { proxy: cpuMicros([box.proxy.pid]), all: cpuMicros([box.proxy.pid, host.pid, process.pid]) };
  const until = performance.now() + seconds * 1_000;
  const latencies = [];
  await Promise.all(
    clients.map(async ({ ask }) => {
      while (performance.now() < until) {
        const startedAt = performance.now();
        await ask(placeholder);
        latencies.push(performance.now() - startedAt);
      }
    }),
  );
  const count = latencies.length;
  const result = {
    proxyMicros: (cpuMicros([box.proxy.pid]) - before.proxy) / count,
    allMicros: (cpuMicros([box.proxy.pid, host.pid, process.pid]) - before.all) / count,
    perSecond: count / seconds,
    p50Ms: latencies.sort((a, b) => a - b)[Math.floor(count / 2)],
  };
  for (const { close } of clients) close();
  return result;
}

function oneHttp1(socket, name) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  const ask = (placeholder) =>
    new Promise((resolve, reject) => {
      const headers = { host: name, authorization: placeholder, 'content-type': 'application/json' };
      const request = http.request({ agent, method: 'POST', headers: { ...headers, 'content-length': body.length } });
      request.on('error', reject).on('response', (response) => response.resume().on('end', resolve));
      request.end(body);
    });
  return { ask, close: () => agent.destroy() };
}

function oneHttp2(socket, name) {
  const session = http2.connect(`https://${name}`, { createConnection: () => socket });
  const ask = (placeholder) =>
    new Promise((resolve, reject) => {
      const stream = session.request({
        ':method': 'POST',
        authorization: placeholder,
        'content-type': 'application/json',
      });
      stream.on('error', reject).on('end', resolve).resume();
      stream.end(body);
    });
  return { ask, close: () => session.destroy() };
}

/** The first request to hosts that the proxy has not seen, and the same through new direct connections. */
async function measureNewHosts({ open, placeholder }, names) {
  const first = async (way, name) => {
    const startedAt = performance.now();
    const client = oneHttp1(await open(way, name, ['http/1.1']), name);
    await client.ask(placeholder);
    const tookMs = performance.now() - startedAt;
    client.close();
    return tookMs;
  };
  const list = { direct: [], fresh: [], again: [] };
  for (const name of names) {
    list.direct.push(await first('direct', name));
    list.fresh.push(await first('intercepted', name));
    list.again.push(await first('intercepted', name));
  }
  return Object.fromEntries(Object.entries(list).map(([way, values]) => [way, median(values)]));
}

function medians(list) {
  return Object.fromEntries(Object.keys(list[0]).map((key) => [key, median(list.map((entry) => entry[key]))]));
}

function print(figures, fresh, rounds) {
  for (const { version, ways } of figures) {
    console.log(`\negress, ${version}, keep-alive, 1 KB (median of ${rounds})`);
    for (const [way, { proxyMicros, allMicros, perSecond, p50Ms }] of Object.entries(ways)) {
      const ratio = (allMicros / ways.tunnel.allMicros).toFixed(2);
      const own =
        way === 'direct'
          ? ''
          : `, proxy alone ${proxyMicros.toFixed(0)} us (${(proxyMicros / ways.tunnel.proxyMicros).toFixed(2)}x)`;
      console.log(
        `  ${way.padEnd(11)} ${allMicros.toFixed(0)} us/request of client, proxy and host (${ratio}x tunnel)${own}, ${Math.round(perSecond)} requests/s, p50 ${p50Ms.toFixed(2)} ms`,
      );
    }
  }
  console.log('\negress, the first request over a new connection, ms (median)');
  console.log(
    `  direct ${fresh.direct.toFixed(1)}, new intercepted host ${fresh.fresh.toFixed(1)}, known intercepted host ${fresh.again.toFixed(1)}`,
  );
}
