/**
 * How long a request holds the event loop: loaded into a Node.js subject before its own code (`--import`), it measures each turn of
 * the loop while the file `STRETCHES.go` exists, and then writes them. Between its turns the loop is kept from sleeping, so
 * that a turn is what a callback took, and the pieces of a body that arrive apart are turns of their own.
 */
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/** Shorter turns are the loop's own. */
const LEAST_MS = 0.03;

/** The variables of a process that can be measured. */
export function measurable(file) {
  return { NODE_OPTIONS: `--import=${import.meta.filename}`, STRETCHES: file };
}

/**
 * Milliseconds that a request holds the event loop, those of its longest turn, the median, and the processor time of its turns
 * (which other programs of a busy machine lengthen less), while `load` runs over one connection.
 * @param load resolves with the number of requests
 */
export async function readStretches(file, load) {
  writeFileSync(`${file}.go`, '');
  const requests = await load();
  rmSync(`${file}.go`);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const processes = globSync(`${file}.*.json`).map((path) => {
    const turns = JSON.parse(readFileSync(path, 'utf8'));
    rmSync(path);
    return turns;
  });
  const total = (turns, of) => turns.reduce((sum, turn) => sum + turn[of], 0);
  const [turns = []] = processes.sort((a, b) => total(b, 'ms') - total(a, 'ms'));
  // Each request has one longest turn, so there are as many of them as requests.
  turns.sort((a, b) => b.ms - a.ms);
  const longestMs = turns[Math.floor(requests / 2)]?.ms ?? 0;
  return { sumMs: total(turns, 'ms') / requests, cpuMs: total(turns, 'cpuMs') / requests, longestMs };
}

function watch(file) {
  let turns;
  let before;
  const now = () => {
    const { user, system } = process.threadCpuUsage();
    return { ms: performance.now(), cpuMs: (user + system) / 1000 };
  };
  const turn = () => {
    if (turns === undefined) return;
    const { ms, cpuMs } = now();
    if (ms - before.ms > LEAST_MS) turns.push({ ms: ms - before.ms, cpuMs: cpuMs - before.cpuMs });
    before = now();
    setImmediate(turn);
  };
  const look = () => {
    const wanted = existsSync(`${file}.go`);
    if (wanted && turns === undefined) {
      turns = [];
      before = now();
      setImmediate(turn);
    } else if (!wanted && turns !== undefined) {
      writeFileSync(`${file}.${process.pid}.json`, JSON.stringify(turns));
      turns = undefined;
    }
  };
  setInterval(look, 100).unref();
}

if (process.env.STRETCHES) watch(process.env.STRETCHES);
