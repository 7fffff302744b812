/** A question of an intern: buttons for a permission, a form for anything else. */
import { useState } from 'preact/hooks';
import { Badge, Button, Card } from '../ui/basics.tsx';
import { Area, Check, Choice, Text } from '../ui/forms.tsx';
import type { FieldAsked, Question } from './conversation.ts';

interface QuestionProps {
  question: Question;
  onAnswer(answer: string): Promise<void>;
}

const OPTIONS: Readonly<Record<string, string>> = {
  allow_once: 'Allow once',
  allow_always: 'Allow always',
  reject_once: 'Reject',
  reject_always: 'Reject always',
  cancel: 'Cancel the turn',
};

export function QuestionCard({ question, onAnswer }: QuestionProps) {
  const { asked, answer } = question;
  const [isBusy, setBusy] = useState(false);
  const send = async (given: string) => {
    setBusy(true);
    await onAnswer(given);
    setBusy(false);
  };
  const parts = { isOpen: answer === undefined, isBusy, send };
  return (
    <div class="turn question">
      {asked.kind === 'permission' ? (
        <Card title="The intern asks for permission" actions={<Answered answer={answer} />}>
          <Permission operation={asked.operation} options={asked.options} {...parts} />
        </Card>
      ) : (
        <Card title="The intern asks" actions={<Answered answer={answer} />}>
          <Elicitation message={asked.message} fields={asked.fields} {...parts} />
        </Card>
      )}
    </div>
  );
}

function Answered({ answer }: { answer: string | undefined }) {
  if (answer === undefined) return <Badge tone="warn">Waits up to five minutes</Badge>;
  const action = answer.startsWith('{') ? (JSON.parse(answer) as { action: string }).action : answer;
  const label = OPTIONS[action] ?? (action === 'accept' ? 'Answered' : 'Declined');
  return <Badge tone={/^(?:allow|accept)/.test(action) ? 'good' : 'bad'}>{label}</Badge>;
}

interface AnswerParts {
  isOpen: boolean;
  isBusy: boolean;
  send(answer: string): Promise<void>;
}

interface PermissionProps extends AnswerParts {
  operation: string | null;
  options: readonly string[];
}

function Permission({ operation, options, isOpen, isBusy, send }: PermissionProps) {
  return (
    <div class="stack">
      <p class="mono">{operation ?? 'It does not say for what.'}</p>
      {isOpen && (
        <div class="inline">
          {[...options, 'cancel'].map((option) => (
            <Button
              key={option}
              kind={option === 'allow_once' ? 'main' : option.startsWith('allow') ? 'plain' : 'danger'}
              busy={isBusy}
              onClick={() => void send(option)}
            >
              {OPTIONS[option] ?? option}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}

interface ElicitationProps extends AnswerParts {
  message: string;
  fields: readonly FieldAsked[];
}

type Values = Readonly<Record<string, unknown>>;

function Elicitation({ message, fields, isOpen, isBusy, send }: ElicitationProps) {
  const [values, setValues] = useState<Values>({});
  const content = Object.fromEntries(
    fields.flatMap((field) => {
      const value = sentValue(field, values[field.name]);
      return value === undefined ? [] : [[field.name, value]];
    }),
  );
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void send(JSON.stringify({ action: 'accept', content }));
      }}
    >
      <p class="prose">{message}</p>
      {isOpen && (
        <>
          {fields.map((field) => (
            <FieldInput
              key={field.name}
              field={field}
              value={values[field.name]}
              onValue={(value) => setValues({ ...values, [field.name]: value })}
            />
          ))}
          <div class="inline">
            <Button kind="main" type="submit" busy={isBusy}>
              Answer
            </Button>
            <Button busy={isBusy} onClick={() => void send(JSON.stringify({ action: 'decline' }))}>
              Decline
            </Button>
            <Button kind="danger" busy={isBusy} onClick={() => void send(JSON.stringify({ action: 'cancel' }))}>
              Cancel the turn
            </Button>
          </div>
        </>
      )}
    </form>
  );
}

/** What is sent for a field; undefined if it is left out. */
function sentValue({ type, required, options }: FieldAsked, value: unknown): unknown {
  if (type === 'boolean') return value ?? (required ? false : undefined);
  if (type === 'array') return value ?? (required ? [] : undefined);
  const text = typeof value === 'string' ? value : required && options !== undefined ? (options[0] ?? '') : '';
  if (type === 'number' || type === 'integer') return text === '' ? undefined : Number(text);
  return text === '' && !required ? undefined : text;
}

interface FieldInputProps {
  field: FieldAsked;
  value: unknown;
  onValue(value: unknown): void;
}

function FieldInput({ field: { name, type, required, options }, value, onValue }: FieldInputProps) {
  if (type === 'boolean') return <Check label={name} checked={value === true} onChange={onValue} />;
  if (type === 'array') {
    const chosen = (value ?? []) as readonly string[];
    if (options === undefined) {
      return (
        <Area
          label={name}
          value={chosen.join('\n')}
          onInput={(text) => onValue(text === '' ? [] : text.split('\n'))}
          hint="One a line"
        />
      );
    }
    return (
      <fieldset class="checks">
        <legend>{name}</legend>
        {options.map((option) => (
          <Check
            key={option}
            label={option}
            checked={chosen.includes(option)}
            onChange={(checked) => onValue(checked ? [...chosen, option] : chosen.filter((each) => each !== option))}
          />
        ))}
      </fieldset>
    );
  }
  const text = typeof value === 'string' ? value : '';
  if (options !== undefined) {
    const listed = options.map((option) => [option, option] as const);
    const all = required ? listed : ([['', 'No answer'], ...listed] as const);
    return (
      <Choice label={name} value={text || (required ? (options[0] ?? '') : '')} options={all} onChange={onValue} />
    );
  }
  const isNumber = type === 'number' || type === 'integer';
  return (
    <Text
      label={name}
      type={isNumber ? 'number' : 'text'}
      step={type === 'integer' ? 1 : 'any'}
      required={required}
      value={text}
      onInput={onValue}
    />
  );
}
