/** Fields, dialogs and confirmations, on the browser's own elements. */
import { type ComponentChildren, createContext, type JSX } from 'preact';
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../api.ts';
import { Button, Problem } from './basics.tsx';

/** Why the gateway refused the form, for its fields. */
interface Refusal {
  readonly error: ApiError | null;
  /** Called by the field that shows the message. */
  onShown(error: ApiError): void;
}

const RefusalOfForm = createContext<Refusal | undefined>(undefined);

/** The message, if it begins with the path of `member`. */
function useRefusal(member: string | undefined): ApiError | undefined {
  const refusal = useContext(RefusalOfForm);
  const { error = null } = refusal ?? {};
  const isAbout =
    member !== undefined && error?.message.startsWith(member) && !/^\w/.test(error.message.slice(member.length));
  const shown = isAbout ? (error ?? undefined) : undefined;
  useLayoutEffect(() => {
    if (shown !== undefined) refusal?.onShown(shown);
  }, [shown]);
  return shown;
}

interface Named {
  label: string;
  hint?: ComponentChildren;
  /** Path of the member of the request that the field sets: a refusal that begins with it is shown here. */
  member?: string | undefined;
}

/** What the control of a field must have. */
interface ControlProps {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': boolean | undefined;
}

interface FieldProps extends Named {
  children(control: ControlProps): ComponentChildren;
}

function Field({ label, hint, member, children }: FieldProps) {
  const id = useId();
  const refusal = useRefusal(member);
  useEffect(() => {
    if (refusal !== undefined) document.getElementById(id)?.focus();
  }, [refusal]);
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  const refusalId = refusal === undefined ? undefined : `${id}-refusal`;
  const describedBy = [refusalId, hintId].filter(Boolean).join(' ') || undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': describedBy, 'aria-invalid': refusal === undefined ? undefined : true })}
      {refusal !== undefined && (
        <p class="refusal" id={refusalId} role="alert">
          {refusal.message}
        </p>
      )}
      {hint !== undefined && (
        <p class="hint" id={hintId}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface TextProps extends Named {
  value: string;
  onInput(value: string): void;
  type?: 'text' | 'password' | 'number' | 'search' | 'email' | 'datetime-local';
  placeholder?: string;
  required?: boolean;
  autoFocus?: boolean;
  min?: number;
  step?: number | 'any';
  maxLength?: number;
  code?: boolean;
  list?: readonly string[];
}

export function Text({ label, value, onInput, hint, member, code, list, ...rest }: TextProps) {
  const listId = useId();
  return (
    <Field label={label} hint={hint} member={member}>
      {(control) => (
        <>
          <input
            {...rest}
            {...control}
            class={code ? 'mono' : undefined}
            value={value}
            list={list && listId}
            autoComplete="off"
            spellcheck={false}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
          {list && (
            <datalist id={listId}>
              {list.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

/** A number from 0 on, whole or not. */
export function Amount(props: Omit<TextProps, 'type' | 'min' | 'step'>) {
  return <Text {...props} type="number" min={0} step="any" />;
}

interface AreaProps extends Named {
  value: string;
  onInput(value: string): void;
  rows?: number;
  maxLength?: number;
  placeholder?: string;
  code?: boolean;
  onKeyDown?(event: JSX.TargetedKeyboardEvent<HTMLTextAreaElement>): void;
}

export function Area({ label, value, onInput, hint, member, rows = 3, code, ...rest }: AreaProps) {
  return (
    <Field label={label} hint={hint} member={member}>
      {(control) => (
        <textarea
          {...rest}
          {...control}
          class={code ? 'mono' : undefined}
          rows={rows}
          value={value}
          spellcheck={!code}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export type Option = readonly [value: string, label: string];

interface ChoiceProps extends Named {
  value: string;
  options: readonly Option[];
  onChange(value: string): void;
}

export function Choice({ value, options, onChange, ...named }: ChoiceProps) {
  return (
    <Field {...named}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map(([each, text]) => (
            <option key={each} value={each}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface CheckProps {
  label: ComponentChildren;
  checked: boolean;
  onChange(checked: boolean): void;
}

export function Check({ label, checked, onChange }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

interface SegmentsProps {
  label: string;
  value: string;
  options: readonly Option[];
  onChange(value: string): void;
}

/** One of a few, all visible. */
export function Segments({ label, value, options, onChange }: SegmentsProps) {
  const name = useId();
  return (
    <fieldset class="segments">
      <legend class="unseen">{label}</legend>
      {options.map(([each, text]) => (
        <label key={each}>
          <input type="radio" name={name} checked={value === each} onChange={() => onChange(each)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface DialogProps {
  title: string;
  onClose(): void;
  wide?: boolean;
  children: ComponentChildren;
}

/** Open while it is rendered. Escape closes it, and the focus returns to where it was. */
export function Dialog({ title, onClose, wide, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>('input:not([hidden]), select, textarea')?.focus();
    return () => {
      // Nothing had it when the page was opened with the dialog, and the button of a replaced dialog is gone.
      const isThere = before?.isConnected && before !== document.body;
      const next = isThere ? before : document.getElementById('main');
      // Until the dialog is out of the page, nothing else can have the focus.
      queueMicrotask(() => next instanceof HTMLElement && next.focus());
    };
  }, []);
  return (
    <dialog ref={dialog} class={wide ? 'wide' : undefined} aria-labelledby={titleId} onClose={onClose}>
      <header>
        <h2 id={titleId}>{title}</h2>
        <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
      </header>
      {children}
    </dialog>
  );
}

/** What `useChange` returns, as far as a form needs it. */
interface Change<V> {
  readonly isPending: boolean;
  readonly error: ApiError | null;
  mutate(value: V): void;
}

interface FormProps<V> {
  submit: string;
  change: Change<V>;
  /** What the change is made with; absent if it needs nothing. */
  value?: V;
  onCancel?: () => void;
  danger?: boolean;
  disabled?: boolean;
  children: ComponentChildren;
}

export function Form<V>({ submit, change, value, onCancel, danger, disabled, children }: FormProps<V>) {
  const { error } = change;
  const [shown, onShown] = useState<ApiError | null>(null);
  // The button is disabled only after the next paint.
  const isSent = useRef(false);
  useEffect(() => {
    isSent.current = change.isPending;
  }, [change.isPending, error]);
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (isSent.current) return;
        isSent.current = true;
        change.mutate(value as V);
      }}
    >
      <RefusalOfForm.Provider value={{ error, onShown }}>{children}</RefusalOfForm.Provider>
      {error !== shown && <Problem error={error} />}
      <footer class="form-foot">
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        <Button type="submit" kind={danger ? 'danger' : 'main'} busy={change.isPending} disabled={disabled ?? false}>
          {submit}
        </Button>
      </footer>
    </form>
  );
}

interface ConfirmProps<V> {
  title: string;
  /** What will be lost. */
  children: ComponentChildren;
  action: string;
  /** To be typed before it can be done; for what cannot be undone. */
  word?: string;
  change: Change<V>;
  onClose(): void;
}

/** The name as it can be typed: without what a field or a person leaves out. Empty if nothing of it can be seen. */
function typable(name: string): string {
  return name
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

export function Confirm<V>({ title, children, action, word: name, change, onClose }: ConfirmProps<V>) {
  const [typed, setTyped] = useState('');
  const word = typable(name ?? '');
  return (
    <Dialog title={title} onClose={onClose}>
      <Form danger submit={action} change={change} disabled={typable(typed) !== word} onCancel={onClose}>
        <div class="loss">{children}</div>
        {word !== '' && <Text label={`Type ${word} to confirm`} value={typed} onInput={setTyped} />}
      </Form>
    </Dialog>
  );
}
