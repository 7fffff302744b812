/** What code in a sandbox tries, and that it gets nowhere. Also run as an ordinary user, by `unprivileged.test.ts`. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { bubblewrapsOf } from '../../src/sandboxes/bubblewrap/processes.ts';
import type { Sandbox } from '../../src/sandboxes/index.ts';
import { hasGroups, openSandboxes, shell, skip } from '../../src/testing/sandboxes/sandboxes.ts';

const CANARY = 'canary-of-the-gateway';
const END = '-- end of the attempt --';
const MB = 1024 * 1024;

describe('escapes', { skip }, () => {
  const { sandboxes, folder } = openSandboxes(
    { after: (run) => after(async () => void (await run())) },
    { settings: { memoryBytes: 128 * MB, processes: 48, diskBytes: 24 * MB, files: 2000 } },
  );
  const data = path.join(folder, 'data');
  const secret = path.join(data, 'secret');
  let box: Sandbox;
  let other: Sandbox;
  let port: number;
  const servers: net.Server[] = [];
  let reached = 0;

  before(async () => {
    mkdirSync(data, { mode: 0o700 });
    writeFileSync(secret, CANARY, { mode: 0o644 });
    process.env['CANARY_OF_THE_GATEWAY'] = CANARY;
    box = await sandboxes.create({ id: 'box', owner: 'test' });
    other = await sandboxes.create({ id: 'other', owner: 'test' });
    await other.writeFile('theirs', CANARY);
    const listen = async (where: net.ListenOptions) => {
      const server = net.createServer((socket) => {
        reached += 1;
        socket.end(CANARY);
      });
      await new Promise<void>((resolve) => server.listen(where, resolve));
      servers.push(server);
      return server.address();
    };
    port = ((await listen({ host: '127.0.0.1', port: 0 })) as net.AddressInfo).port;
    await listen({ path: `\0gatehouse-test-${process.pid}` });
    await listen({ path: path.join(data, 'socket') });
  });
  after(() => {
    for (const server of servers) server.close();
  });

  /** Each script prints ESCAPED where it got somewhere. */
  const rows: Record<string, string> = {
    'writes outside of its folders': `
      for file in /x /usr/x /usr/bin/sh /etc/passwd /etc/x /proc/x /dev/x /run/x /opt/x /var/x /bin/x /home/x; do
        (echo x > "$file") 2>/dev/null && echo "ESCAPED $file"; done`,
    'removes what it cannot write':
      'rm -rf /usr/bin/env /etc /bin 2>/dev/null; [ -x /usr/bin/env ] && [ -r /etc/passwd ] || echo ESCAPED',
    "reads the gateway's data": 'cat "$1" && echo ESCAPED; ls "$2" && echo ESCAPED',
    'finds the folders of the machine':
      'for each in /root /srv /mnt /media /boot /sys /work; do [ -e "$each" ] && echo "ESCAPED $each"; done',
    'finds the folder of its sandbox from outside': '[ -e "$3" ] && echo ESCAPED',
    'reads environments of processes':
      'cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n" | grep -i canary && echo ESCAPED',
    'has an environment of the gateway': 'env | grep -i -e canary -e gatehouse && echo ESCAPED',
    'sees processes of the machine': '[ "$(ls -d /proc/[0-9]* | wc -l)" -lt 8 ] || echo ESCAPED',
    'signals processes of the machine':
      'for pid in "$4" 1000 2000 30000; do kill -0 "$pid" 2>/dev/null && echo ESCAPED; done',
    'traces a process of the machine': `perl -e 'exit(syscall(101, 16, $ARGV[0], 0, 0) == 0 ? 0 : 1)' "$4" && echo ESCAPED`,
    'has descriptors of the gateway': `for each in /proc/self/fd/*; do
      case $(readlink "$each") in ""|''|/dev/null|/proc/*|socket:*|pipe:*|*/pipe-*" (deleted)") ;; *) echo "ESCAPED $each $(readlink "$each")";; esac; done
      [ "$(ls -l /proc/$$/fd | grep -c socket)" -le 3 ] || echo ESCAPED`,
    "connects to the gateway's port": `perl -MIO::Socket::INET -e 'exit(IO::Socket::INET->new("127.0.0.1:$ARGV[0]") ? 0 : 1)' "$5" && echo ESCAPED`,
    'connects to the metadata address': `perl -MIO::Socket::INET -e 'exit(IO::Socket::INET->new(PeerAddr => "169.254.169.254:80", Timeout => 2) ? 0 : 1)' && echo ESCAPED`,
    'resolves names': 'getent hosts example.com && echo ESCAPED',
    'connects to an abstract socket of the machine': `perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); exit(connect(S, pack("S a*", AF_UNIX, "\\0gatehouse-test-$ARGV[0]")) ? 0 : 1)' "$4" && echo ESCAPED`,
    'connects to a socket of the machine': `perl -MIO::Socket::UNIX -e 'exit(IO::Socket::UNIX->new($ARGV[0]) ? 0 : 1)' "$2/socket" && echo ESCAPED`,
    'has a way out without a network': '[ -e /run/egress ] && echo ESCAPED',
    'has other network interfaces': 'tail -n +3 /proc/net/dev | grep -v " *lo:" && echo ESCAPED',
    "reads another sandbox's files": 'cat "$6/workspace/theirs" && echo ESCAPED',
    'makes sockets of unseparated families': `for family in 17 40 38 31; do perl -e 'exit(socket(S, $ARGV[0], 1, 0) || socket(S, $ARGV[0], 3, 0) ? 0 : 1)' "$family" && echo "ESCAPED $family"; done`,
    'gains rights by a setuid program':
      'cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id && [ "$(/tmp/id -u)" = 1000 ] || echo ESCAPED; su -c id root </dev/null 2>/dev/null && echo ESCAPED',
    'has capabilities':
      'grep -E "Cap(Inh|Prm|Eff|Bnd|Amb)" /proc/self/status | grep -v "0000000000000000$" && echo ESCAPED',
    'may gain privileges': 'grep -q "NoNewPrivs:.1" /proc/self/status || echo ESCAPED',
    'makes namespaces': `for flags in -U -Ur -m -n -p -i -u -C -T; do unshare $flags true 2>/dev/null && echo "ESCAPED $flags"; done`,
    'enters namespaces of its first process':
      'nsenter -t 1 -U true 2>/dev/null && echo ESCAPED; nsenter -t 1 -m true 2>/dev/null && echo ESCAPED',
    'makes a sandbox in the sandbox': 'bwrap --ro-bind / / true 2>/dev/null && echo ESCAPED',
    mounts:
      'mount -t tmpfs none /tmp 2>/dev/null && echo ESCAPED; mount -o remount,rw /usr 2>/dev/null && echo ESCAPED; umount /usr 2>/dev/null && echo ESCAPED',
    'changes its root': 'chroot /usr true 2>/dev/null && echo ESCAPED',
    'makes devices':
      'mknod /workspace/sda b 8 0 2>/dev/null && echo ESCAPED; mknod /workspace/mem c 1 1 2>/dev/null && echo ESCAPED',
    'reads memory of the kernel':
      'head -c 1 /proc/kcore 2>/dev/null && echo ESCAPED; head -c 1 /dev/mem 2>/dev/null && echo ESCAPED; dmesg 2>/dev/null && echo ESCAPED',
    'changes settings of the kernel':
      'for file in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/vm/drop_caches /proc/sys/user/max_user_namespaces; do (echo 1 > "$file") 2>/dev/null && echo "ESCAPED $file"; done',
    'changes its control group':
      'ls /sys/fs/cgroup 2>/dev/null && echo ESCAPED; grep -v ":/$" /proc/self/cgroup && echo ESCAPED',
    'protects itself from the end by memory': '(echo -500 > /proc/self/oom_score_adj) 2>/dev/null && echo ESCAPED',
    'raises its limits':
      'ulimit -c unlimited 2>/dev/null && echo ESCAPED; ulimit -f unlimited 2>/dev/null && echo ESCAPED; ulimit -n 100000 2>/dev/null && echo ESCAPED',
    'changes the host name': 'hostname x 2>/dev/null && echo ESCAPED',
    'writes into the input of a terminal': `perl -e 'my $c = "x"; exit(ioctl(STDIN, 0x5412, $c) ? 0 : 1)' && echo ESCAPED`,
    'fills the memory of the machine by files in memory': `(head -c 100m /dev/zero > /dev/shm/x) 2>/dev/null && echo ESCAPED; rm -f /dev/shm/x`,
  };
  if (process.arch === 'x64') {
    const calls = { bpf: 321, perf: 298, userfaultfd: 323, io_uring: 425, keyctl: 250, add_key: 248, kexec: 246 };
    const more = { handle: 304, setns: 308, pidfd_getfd: 438, open_tree: 428, fsopen: 430, reboot: 169, swapon: 167 };
    for (const [name, number] of Object.entries({ ...calls, ...more })) {
      rows[`calls ${name}`] =
        `perl -e 'syscall(${number}, 0, 0, 0, 0, 0); exit($! == 1 || $! == 38 ? 1 : 0)' && echo ESCAPED`;
    }
    rows['uses the calls of another interface'] =
      `perl -e 'exit(syscall(0x40000000 | 39) > 0 ? 0 : 1)' && echo ESCAPED`;
  }

  test('none of these gets anywhere', async (t) => {
    const args = [secret, data, path.join(folder, 'sandboxes', 'box'), String(process.pid), String(port)];
    args.push(path.join(folder, 'sandboxes', 'other'));
    const all = Object.values(rows).map((script) => `(${script}\n) 2>&1; echo ${END}`);
    const { out, reason } = await shell(box, all.join('\n'), ...args);
    assert.equal(reason, 'exit');
    const outputs = out.split(`${END}\n`).slice(0, -1);
    assert.equal(outputs.length, Object.keys(rows).length);
    for (const [index, name] of Object.keys(rows).entries()) {
      await t.test(name, () => assert.doesNotMatch(outputs[index]!, new RegExp(`ESCAPED|${CANARY}`)));
    }
    assert.equal(reached, 0);
  });

  test('a bomb of processes ends with its command, and others still work', async () => {
    const bomb = shell(box, 'bomb() { bomb | bomb & }; bomb; sleep 1; ls -d /proc/[0-9]* | wc -l; sleep 1');
    const { out } = await bomb;
    assert.ok(!(Number(out) > 48), out);
    assert.equal((await shell(box, 'echo fine')).out, 'fine\n');
    assert.equal((await shell(other, 'echo fine')).out, 'fine\n');
  });

  test('a bomb of memory is ended', async () => {
    const { code, reason, out } = await shell(box, `perl -e 'my $x = "a" x (200 * 1024 * 1024); print "ESCAPED"'`);
    assert.doesNotMatch(out, /ESCAPED/);
    assert.notEqual(code, 0);
    if (hasGroups) {
      assert.equal(reason, 'memory');
      const many = `for each in 1 2 3 4 5 6; do perl -e 'my $x = "a" x (40 * 1024 * 1024); sleep 1; print "alive\n"' & done; wait`;
      const alive = (await shell(box, many)).out.match(/alive/g) ?? [];
      assert.ok(alive.length <= 3, `${alive.length} processes had 40 MB each`);
    }
  });

  test('endless output is cut', async () => {
    const execution = await box.exec({ argv: ['yes'], outputBytes: 1000 });
    const chunks = await execution.stdout.toArray();
    assert.equal(Buffer.concat(chunks as Buffer[]).length, 1000);
    assert.deepEqual(await execution.ended, { code: null, reason: 'output' });
  });

  for (const [what, script] of [
    ['one file', 'head -c 100m /dev/zero > big'],
    ['many files', 'n=0; while :; do head -c 1m /dev/zero > "file$n"; n=$((n + 1)); done'],
    ['files in /tmp', 'n=0; while :; do head -c 1m /dev/zero > "/tmp/file$n"; n=$((n + 1)); done'],
    ['empty files', `perl -e 'for (1 .. 1e9) { open(F, ">", "empty$_") }'`],
    [
      'files that are removed but open',
      'for n in 3 4 5 6 7 8 9; do eval "exec $n> gone"; rm gone; head -c 20m /dev/zero >&$n; done; sleep 30',
    ],
  ] as const) {
    test(`a disk filled with ${what} ends the command`, async () => {
      const { reason, code } = await shell(box, script);
      assert.ok(reason === 'disk' || code === 153, `${reason} ${code}`);
      // What is left can be removed; there may be more files than one command line can name.
      const cleaned = await shell(box, 'find /workspace /tmp -mindepth 1 -delete && echo clean');
      assert.deepEqual([cleaned.out, cleaned.reason], ['clean\n', 'exit']);
    });
  }

  test('nothing is left of a command, whatever it started', async () => {
    const left =
      'setsid nohup sh -c "while :; do sleep 1; done" >/dev/null 2>&1 & (trap "" TERM HUP INT; sleep 1000) & kill -STOP $! ; echo started';
    assert.equal((await shell(box, left)).out, 'started\n');
    const { out } = await shell(box, 'ls -d /proc/[0-9]* | wc -l');
    // The first process, the shell, and its two programs if both run at the same time.
    assert.ok(Number(out) <= 4, out);
    assert.deepEqual(bubblewrapsOf(path.join(folder, 'sandboxes')), []);
    await shell(box, 'kill -9 -1');
    assert.equal((await shell(other, 'echo fine')).out, 'fine\n');
  });

  test('links, pipes and sockets that it planted lead nowhere', async () => {
    const plant = `ln -s "$1" link; ln -s "$2" folder; mkfifo pipe; ln -s /proc/1/root root; ln -s /etc/passwd inside
      perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "socket", Listen => 1)'; ln -s loop loop; mkdir -p real; touch 'new
line'`;
    assert.equal((await shell(box, plant, secret, data)).code, 0);
    await assert.rejects(box.readFile('link', 100), { status: 404 });
    await assert.rejects(box.readFile('folder/secret', 100), { status: 404 });
    await assert.rejects(box.readFile('loop', 100), { status: 404 });
    for (const wrong of ['pipe', 'socket', 'real', '.']) {
      await assert.rejects(box.readFile(wrong, 100), { status: 400 }, wrong);
    }
    assert.match((await box.readFile('inside', 1000)).toString(), /^root:x:0:0:.*\nsandbox:/);
    await assert.rejects(box.readFile('root/etc/shadow', 100), { status: 404 });
    await box.writeFile('link', 'replaced');
    await assert.rejects(box.writeFile('folder/secret', 'x'), { status: 400 });
    await assert.rejects(box.writeFile('/etc/passwd', 'x'), { status: 400 });
    await box.writeFile('pipe', 'replaced');
    assert.equal((await box.readFile('pipe', 100)).toString(), 'replaced');
    assert.equal(readFileSync(secret, 'utf8'), CANARY);
    const kinds = Object.fromEntries((await box.listFiles('.', 100)).map(({ name, kind }) => [name, kind]));
    assert.deepEqual(kinds, {
      ...{ folder: 'link', inside: 'link', link: 'file', loop: 'link', 'new\nline': 'file', pipe: 'file' },
      ...{ real: 'folder', root: 'link', socket: 'other' },
    });
  });

  test('a tree that it made to be hard to remove is removed, and nothing that it points to', async () => {
    const script = `ln -s "$1" data; perl -e 'for (1 .. 1500) { mkdir "d"; chdir "d" }'
      mkdir locked; touch locked/x; chmod 000 locked; mkdir -p /home/sandbox/l/l; chmod 000 /home/sandbox/l /workspace`;
    await shell(box, script, data);
    await box.destroy();
    assert.equal(readFileSync(secret, 'utf8'), CANARY);
    assert.deepEqual(
      (await sandboxes.list()).map(({ id }) => id),
      ['other'],
    );
  });

  test('no process is left after all sandboxes were stopped', async () => {
    const long = await other.exec({ argv: ['sleep', '1000'], timeoutMs: null });
    await sandboxes.close();
    assert.equal((await long.ended).reason, 'stopped');
    assert.deepEqual(bubblewrapsOf(path.join(folder, 'sandboxes')), []);
  });
});
