/** Progress on standard error: a bar on a terminal, otherwise a line now and then. */
import type { Clock } from '../../base/clock.ts';

interface Screen {
  readonly isTTY: boolean;
  readonly columns: number;
  write(text: string): void;
}

const BAR_WIDTH = 30;
/** Between lines where there is no terminal. */
const LINE_MS = 10_000;

export class Progress {
  readonly #screen: Screen;
  readonly #clock: Clock;
  readonly #startedAt: number;
  #isOpen = false;
  #written = '';
  #writtenAt = Number.NEGATIVE_INFINITY;

  constructor(screen: Screen, clock: Clock) {
    this.#screen = screen;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /** @param label the activity @param detail the text after the bar */
  show(label: string, done: number, total: number, detail: string): void {
    const share = total === 0 ? 1 : Math.min(1, done / total);
    const percent = `${Math.floor(share * 100)}%`;
    if (!this.#screen.isTTY) {
      this.#line(`${label} ${percent} ${detail}`, label, share);
      return;
    }
    const filled = Math.round(share * BAR_WIDTH);
    const bar = `${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}`;
    const text = `${label} [${bar}] ${percent.padStart(4)} ${detail}${this.#remaining(share)}`;
    // A longer line would wrap, and its begin would stay.
    this.#screen.write(`\r\u001b[2K${text.slice(0, Math.max(20, this.#screen.columns - 1))}`);
    this.#isOpen = true;
  }

  /** A whole line, which stays. */
  say(text: string): void {
    this.end();
    this.#screen.write(`${text}\n`);
  }

  /** Leaves the last state of the bar. */
  end(): void {
    if (this.#isOpen) this.#screen.write('\n');
    this.#isOpen = false;
  }

  #line(text: string, label: string, share: number): void {
    const now = this.#clock.monotonic();
    const isNew = !this.#written.startsWith(`${label} `) || share === 1;
    if (text === this.#written || (!isNew && now - this.#writtenAt < LINE_MS)) return;
    this.#written = text;
    this.#writtenAt = now;
    this.#screen.write(`${text}\n`);
  }

  #remaining(share: number): string {
    const elapsedMs = this.#clock.monotonic() - this.#startedAt;
    if (share <= 0 || share === 1 || elapsedMs < 3_000) return '';
    return `, about ${durationText((elapsedMs * (1 - share)) / share)} left`;
  }
}

function durationText(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1000));
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
