/** The connection to `pod.ts serve` in a pod: frames of all commands of a sandbox, in both directions, over one exec request. */
import type { Clock, Timer } from '../../base/clock.ts';
import type { ApiSocket, Cluster } from './cluster.ts';
import { CONTAINER, POD_FILE, POD_MEMORY } from './objects.ts';

/** As in `pod.ts`: a letter, the number of a command, the length of the content, the content. */
const HEAD_BYTES = 9;
const LONGEST_FRAME = 128 * 1024;
const LONGEST_COMPLAINT = 2_000;
/** `pod.ts` ends when the gateway is silent for a minute. */
const PING_MS = 10_000;
/** Without any sign of life, the connection is lost. */
const SILENCE_MS = 30_000;
/** Streams of the exec protocol. */
const [STDIN, STDOUT, STDERR, STATUS] = [0, 1, 2, 3];

interface Receiver {
  frame(type: string, content: Buffer): void;
  /** The connection has ended; no frame follows. @param complaint what the pod or Kubernetes said */
  closed(complaint: string): void;
}

/** Marks the pod, so that the gateway notices a replaced pod, which was not checked. */
interface PodMark {
  text: string;
  isNew: boolean;
}

/** The frames of one command. */
export interface CommandLine {
  send(type: string, content: Buffer | string): void;
  /** Nothing follows. */
  end(): void;
}

export class Channel {
  readonly #clock: Clock;
  readonly #receivers = new Map<number, Receiver>();
  #socket: ApiSocket | undefined;
  #last = 0;
  #buffer: Buffer = Buffer.alloc(0);
  #complaint = '';
  #heardAt: number;
  #isClosed = false;
  #ping: Timer | undefined;

  private constructor(clock: Clock) {
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
  }

  /**
   * @param mark which the first connection leaves in the pod, and the others look for
   * @throws GatewayError 503 if the pod or the API server cannot be reached
   */
  static async open(cluster: Cluster, pod: string, clock: Clock, mark: PodMark): Promise<Channel> {
    const channel = new Channel(clock);
    const argv = ['node', ...POD_MEMORY, POD_FILE, 'serve', mark.text, mark.isNew ? 'new' : 'known'];
    const socket = await cluster.exec(pod, CONTAINER, argv, (stream, content) => channel.#received(stream, content));
    channel.#socket = socket;
    socket.on('error', () => {});
    socket.on('pong', () => channel.#heard());
    socket.on('close', () => channel.#close());
    channel.#pingLater();
    return channel;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** A line for a new command. */
  line(receiver: Receiver): CommandLine {
    this.#last += 1;
    const id = this.#last;
    this.#receivers.set(id, receiver);
    return {
      send: (type, content) => this.#send(type, id, content),
      end: () => void this.#receivers.delete(id),
    };
  }

  /** Ends the connection, and all commands with it. */
  end(): void {
    this.#socket?.terminate();
  }

  #send(type: string, id: number, content: Buffer | string): void {
    if (this.#isClosed) return;
    const bytes = Buffer.from(content as string);
    const frame = Buffer.alloc(1 + HEAD_BYTES + bytes.length);
    frame[0] = STDIN!;
    frame.write(type, 1, 'latin1');
    frame.writeUInt32BE(id, 2);
    frame.writeUInt32BE(bytes.length, 6);
    bytes.copy(frame, 1 + HEAD_BYTES);
    this.#socket?.send(frame);
  }

  #received(stream: number, content: Buffer): void {
    this.#heard();
    if (stream === STDOUT) this.#deliver(content);
    else if (stream === STDERR) this.#complain(content.toString());
    else if (stream === STATUS) this.#complain(messageOf(content.toString()));
  }

  #deliver(content: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? content : Buffer.concat([this.#buffer, content]);
    while (this.#buffer.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + this.#buffer.readUInt32BE(5);
      // What runs in the pod is not trusted.
      if (end > LONGEST_FRAME) return void this.end();
      if (this.#buffer.length < end) return;
      const [type, id] = [String.fromCharCode(this.#buffer[0]!), this.#buffer.readUInt32BE(1)];
      const frame = this.#buffer.subarray(HEAD_BYTES, end);
      this.#buffer = this.#buffer.subarray(end);
      this.#receivers.get(id)?.frame(type, frame);
    }
  }

  #complain(text: string): void {
    this.#complaint = `${this.#complaint}${text}`.slice(0, LONGEST_COMPLAINT);
  }

  #heard(): void {
    this.#heardAt = this.#clock.monotonic();
  }

  #pingLater(): void {
    this.#ping = this.#clock.timer(PING_MS, () => {
      if (this.#isClosed) return;
      if (this.#clock.monotonic() - this.#heardAt > SILENCE_MS) return void this.end();
      this.#send('P', 0, '');
      this.#socket?.ping();
      this.#pingLater();
    });
  }

  #close(): void {
    this.#isClosed = true;
    this.#ping?.cancel();
    const receivers = [...this.#receivers.values()];
    this.#receivers.clear();
    for (const receiver of receivers) receiver.closed(this.#complaint);
  }
}

/** Of the status at the end; empty if it reports success. */
function messageOf(status: string): string {
  try {
    const { status: word, message = '' } = JSON.parse(status) as { status?: string; message?: string };
    return word === 'Success' ? '' : message;
  } catch {
    return '';
  }
}
