/**
 * The system calls that a sandbox may not make, as a program of the kernel's filter (seccomp, classic BPF). Everything else is allowed:
 * programs must run unmodified. Denied are calls that manage the machine, large and young parts of the kernel that few programs
 * need, new namespaces, and sockets of families that network namespaces do not separate (vsock reaches the host of a virtual machine).
 */

interface Architecture {
  /** `AUDIT_ARCH_*`. */
  audit: number;
  /** Numbers from here on belong to another interface of the same architecture. */
  foreignFrom?: number;
  calls: Readonly<Record<string, number>>;
}

/** The numbers are the same for all architectures. */
const YOUNG_CALLS = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  clone3: 435,
  pidfd_getfd: 438,
  mount_setattr: 442,
  quotactl_fd: 443,
};

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000_003e,
    foreignFrom: 0x4000_0000,
    calls: {
      ...YOUNG_CALLS,
      ...{
        ioctl: 16,
        socket: 41,
        socketpair: 53,
        clone: 56,
        syslog: 103,
        vhangup: 153,
        pivot_root: 155,
        adjtimex: 159,
      },
      ...{ acct: 163, settimeofday: 164, mount: 165, umount2: 166, swapon: 167, swapoff: 168, reboot: 169 },
      ...{ sethostname: 170, setdomainname: 171, iopl: 172, ioperm: 173, init_module: 175, delete_module: 176 },
      ...{ quotactl: 179, nfsservctl: 180, lookup_dcookie: 212, clock_settime: 227, kexec_load: 246, add_key: 248 },
      ...{ request_key: 249, keyctl: 250, unshare: 272, perf_event_open: 298, open_by_handle_at: 304 },
      ...{ clock_adjtime: 305, setns: 308, kcmp: 312, finit_module: 313, kexec_file_load: 320, bpf: 321 },
      ...{ userfaultfd: 323 },
    },
  },
  arm64: {
    audit: 0xc000_00b7,
    calls: {
      ...YOUNG_CALLS,
      ...{ lookup_dcookie: 18, ioctl: 29, umount2: 39, mount: 40, pivot_root: 41, nfsservctl: 42, vhangup: 58 },
      ...{ quotactl: 60, acct: 89, unshare: 97, kexec_load: 104, init_module: 105, delete_module: 106 },
      ...{ clock_settime: 112, syslog: 116, reboot: 142, sethostname: 161, setdomainname: 162, settimeofday: 170 },
      ...{ adjtimex: 171, socket: 198, socketpair: 199, add_key: 217, request_key: 218, keyctl: 219, clone: 220 },
      ...{ swapon: 224, swapoff: 225, perf_event_open: 241, open_by_handle_at: 265, clock_adjtime: 266, setns: 268 },
      ...{ kcmp: 272, finit_module: 273, bpf: 280, userfaultfd: 282, kexec_file_load: 294 },
    },
  },
};

/** Calls that are looked into, or for whose absence libraries have a replacement. */
const SPECIAL = ['clone', 'clone3', 'unshare', 'socket', 'socketpair', 'ioctl', 'io_uring_setup'];

const [EPERM, ENOSYS, EAFNOSUPPORT] = [1, 38, 97];
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. */
const FAMILIES = [1, 2, 10, 16];
/** CLONE_NEW* of clone and unshare: time (unshare only), mount, cgroup, uts, ipc, user, pid, net. */
const NEW_NAMESPACES = 0x7e02_0000;
const NEW_TIME = 0x80;
/** Writes into the input of a terminal. */
const TERMINAL_INPUT = [0x5412, 0x541c];

/** Offsets in `struct seccomp_data`; the lower halves of arguments on a little-endian machine. */
const [NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT] = [0, 4, 16, 24];
const [LOAD, AND, IF_EQUAL, IF_AT_LEAST, RETURN] = [0x20, 0x54, 0x15, 0x35, 0x06];
const ALLOW = 0x7fff_0000;

interface Instruction {
  code: number;
  ifTrue?: number;
  ifFalse?: number;
  value: number;
}

const load = (offset: number): Instruction => ({ code: LOAD, value: offset });
const allow: Instruction = { code: RETURN, value: ALLOW };
const refuse = (error: number): Instruction => ({ code: RETURN, value: 0x0005_0000 | error });
/** Runs `body` if the loaded value equals `value`. */
const when = (value: number, body: readonly Instruction[]): Instruction[] => [
  { code: IF_EQUAL, ifTrue: 0, ifFalse: body.length, value },
  ...body,
];
/** Runs `body` if the loaded value is at least `value`. */
const whenAtLeast = (value: number, body: readonly Instruction[]): Instruction[] => [
  { code: IF_AT_LEAST, ifTrue: 0, ifFalse: body.length, value },
  ...body,
];
const withoutBits = (bits: number): Instruction[] => [
  load(FIRST_ARGUMENT),
  { code: AND, value: bits },
  ...when(0, [allow]),
  refuse(EPERM),
];

/**
 * The filter for `bwrap --seccomp`; null for an architecture that it is not known for.
 * @param name as in `process.arch`
 */
export function seccompFilter(name: string = process.arch): Buffer | null {
  const architecture = ARCHITECTURES[name];
  if (architecture === undefined) return null;
  const { audit, foreignFrom, calls } = architecture;
  const call = (of: string, body: readonly Instruction[]) => when(calls[of]!, body);
  const family = [load(FIRST_ARGUMENT), ...FAMILIES.flatMap((each) => when(each, [allow])), refuse(EAFNOSUPPORT)];
  const program = [
    load(ARCHITECTURE),
    { code: IF_EQUAL, ifTrue: 1, ifFalse: 0, value: audit },
    refuse(ENOSYS),
    load(NUMBER),
    ...(foreignFrom === undefined ? [] : whenAtLeast(foreignFrom, [refuse(ENOSYS)])),
    ...call('clone', withoutBits(NEW_NAMESPACES)),
    // Its flags are in memory, which a filter cannot read. Libraries then use clone.
    ...call('clone3', [refuse(ENOSYS)]),
    ...call('unshare', withoutBits(NEW_NAMESPACES | NEW_TIME)),
    ...call('socket', family),
    ...call('socketpair', family),
    ...call('ioctl', [load(SECOND_ARGUMENT), ...TERMINAL_INPUT.flatMap((each) => when(each, [refuse(EPERM)])), allow]),
    ...call('io_uring_setup', [refuse(ENOSYS)]),
    ...Object.keys(calls).flatMap((each) => (SPECIAL.includes(each) ? [] : call(each, [refuse(EPERM)]))),
    allow,
  ];
  return encode(program);
}

/** As `struct sock_filter`, little-endian like both architectures. */
function encode(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, { code, ifTrue = 0, ifFalse = 0, value }] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(ifTrue, index * 8 + 2);
    bytes.writeUInt8(ifFalse, index * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4);
  }
  return bytes;
}
