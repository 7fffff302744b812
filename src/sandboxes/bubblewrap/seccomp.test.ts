/** The filter as the kernel runs it, for calls that the machine of the tests cannot make. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seccompFilter } from './seccomp.ts';

const [X64, ARM64, X86] = [0xc000_003e, 0xc000_00b7, 0x4000_0003];
const ALLOWED = 0x7fff_0000;
const refused = (error: number) => 0x0005_0000 | error;

/** What the filter returns for a call with its first two arguments. */
function verdict(arch: string, audit: number, call: number, ...args: number[]): number {
  const program = seccompFilter(arch)!;
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call, 0);
  data.writeUInt32LE(audit, 4);
  for (const [index, value] of args.entries()) data.writeUInt32LE(value >>> 0, 16 + 8 * index);
  let loaded = 0;
  for (let at = 0; at < program.length / 8; at++) {
    const [code, value] = [program.readUInt16LE(at * 8), program.readUInt32LE(at * 8 + 4)];
    const jump = (isTrue: boolean) => program.readUInt8(at * 8 + (isTrue ? 2 : 3));
    if (code === 0x20) loaded = data.readUInt32LE(value);
    else if (code === 0x54) loaded = (loaded & value) >>> 0;
    else if (code === 0x15) at += jump(loaded === value);
    else if (code === 0x35) at += jump(loaded >= value);
    else if (code === 0x06) return value;
    else throw new Error(`unknown code ${code}`);
  }
  throw new Error('the program has no end');
}

const CASES = [
  ['ordinary calls', 0, 63, [], ALLOWED],
  ['a thread', 56, 220, [0x3d_0f00], ALLOWED],
  ['a process in new namespaces', 56, 220, [0x1000_0011], refused(1)],
  ['clone3, so that libraries use clone', 435, 435, [], refused(38)],
  ['unshare of files', 272, 97, [0x400], ALLOWED],
  ['unshare of the network', 272, 97, [0x4000_0000], refused(1)],
  ['a Unix socket', 41, 198, [1, 1], ALLOWED],
  ['an IPv6 socket', 41, 198, [10, 1], ALLOWED],
  ['a vsock socket', 41, 198, [40, 1], refused(97)],
  ['a packet socket', 41, 198, [17, 3], refused(97)],
  ['size of a terminal', 16, 29, [0, 0x5413], ALLOWED],
  ['input of a terminal', 16, 29, [0, 0x5412], refused(1)],
  ['io_uring', 425, 425, [], refused(38)],
  ['bpf', 321, 280, [], refused(1)],
  ['mount', 165, 40, [], refused(1)],
] as const;

for (const [name, x64, arm64, args, expected] of CASES) {
  test(`the filter decides about ${name} on both architectures`, () => {
    assert.equal(verdict('x64', X64, x64, ...args), expected);
    assert.equal(verdict('arm64', ARM64, arm64, ...args), expected);
  });
}

test('calls of other interfaces do not exist', () => {
  assert.equal(verdict('x64', X86, 1), refused(38));
  assert.equal(verdict('x64', X64, 0x4000_0001), refused(38));
  assert.equal(verdict('arm64', X64, 1), refused(38));
  assert.equal(seccompFilter('s390x'), null);
});
