/** The small parts that every page is made of. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ApiError } from '../api.ts';
import { ago, timeText } from './format.ts';
import { Icon, type IconName } from './icons.tsx';

export type Tone = 'plain' | 'good' | 'warn' | 'bad' | 'info';

interface PageProps {
  title: string;
  /** One sentence under the title. */
  about?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Page({ title, about, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Gatehouse`;
  }, [title]);
  return (
    <>
      <header class="page-head">
        <div>
          <h1>{title}</h1>
          {about !== undefined && <p class="about">{about}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

interface CardProps {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  flush?: boolean;
  children: ComponentChildren;
}

export function Card({ title, actions, flush, children }: CardProps) {
  return (
    <section class={flush ? 'card flush' : 'card'}>
      {(title !== undefined || actions !== undefined) && (
        <header class="card-head">
          <h2>{title}</h2>
          {actions !== undefined && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

export function Badge({ tone = 'plain', children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

interface ButtonProps {
  kind?: 'main' | 'plain' | 'quiet' | 'danger';
  icon?: IconName;
  type?: 'button' | 'submit';
  busy?: boolean;
  disabled?: boolean;
  /** For a button without text. */
  label?: string;
  onClick?(): void;
  children?: ComponentChildren;
}

export function Button({
  kind = 'plain',
  icon,
  type = 'button',
  busy,
  disabled,
  label,
  onClick,
  children,
}: ButtonProps) {
  return (
    <button
      type={type}
      class={`button ${kind}${children === undefined ? ' bare' : ''}`}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      aria-label={label}
      title={label}
      onClick={onClick}
    >
      {icon !== undefined && <Icon name={icon} size={16} />}
      {children}
    </button>
  );
}

/** The gateway's own message. */
export function Problem({ error, retry }: { error: ApiError | null | undefined; retry?: () => void }) {
  if (error == null) return null;
  return (
    <div class="problem" role="alert">
      <p>{error.message}</p>
      {error.requestId !== undefined && <p class="soft small">Request {error.requestId}</p>}
      {retry !== undefined && (
        <Button icon="refresh" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Note({ tone = 'info', children }: { tone?: Tone; children: ComponentChildren }) {
  return <div class={`note ${tone}`}>{children}</div>;
}

interface EmptyProps {
  icon: IconName;
  title: string;
  children?: ComponentChildren;
}

/** What to do next where there is nothing yet. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} size={28} />
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** A placeholder that reserves the space of content being loaded. */
export function Waiting({ lines = 4 }: { lines?: number }) {
  return (
    <div class="waiting" role="status">
      <span class="unseen">Loading</span>
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} class="bar" />
      ))}
    </div>
  );
}

export function Time({ at, exact = false }: { at: string | number | null | undefined; exact?: boolean }) {
  if (at == null) return <span class="soft">–</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={timeText(at)}>
      {exact ? timeText(at) : ago(at)}
    </time>
  );
}

const COPIED_MS = 1_500;

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => {},
    );
  };
  return <Button kind="quiet" icon={copied ? 'check' : 'copy'} label={copied ? 'Copied' : label} onClick={copy} />;
}

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <Copy text={text} label={`Copy ${label}`} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <section tabIndex={0} aria-label={label}>
        <pre>
          <code>{text}</code>
        </pre>
      </section>
    </div>
  );
}

/** Names and values. */
export function Facts({ rows }: { rows: readonly (readonly [string, ComponentChildren] | false | undefined)[] }) {
  return (
    <dl class="facts">
      {rows.map(
        (row) =>
          row && (
            <div key={row[0]}>
              <dt>{row[0]}</dt>
              <dd>{row[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** How much of a limit is used. */
export function Meter({ share, label }: { share: number; label: string }) {
  const value = Math.min(1, Math.max(0, share));
  const tone = value >= 0.9 ? 'bad' : value >= 0.7 ? 'warn' : 'good';
  return <meter class={tone} min={0} max={1} value={value} aria-label={label} />;
}
