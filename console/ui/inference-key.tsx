/** Choosing the inference key that this session runs models with: management keys run none. */
import { useState } from 'preact/hooks';
import { api } from '../api.ts';
import { useChange } from '../query.ts';
import { chooseInferenceKey, type Session } from '../session.ts';
import { Button, Card, Code } from './basics.tsx';
import { Amount, Dialog, Form, Text } from './forms.tsx';
import { inWorkspace, WorkspaceChoice } from './workspace-choice.tsx';

interface Parts {
  /** What needs the key: "The playground". */
  what: string;
}

export function InferenceKeyNeeded({ what }: Parts) {
  return (
    <Card title="An inference key is needed">
      <p class="soft">
        {what} acts for an inference key: management keys cannot run models. Its budgets and guardrails apply. The key
        is kept on the gateway for this session only.
      </p>
      <ChooseKey />
    </Card>
  );
}

const DEFAULT_LIMIT_USD = '5';

function ChooseKey({ done }: { done?: () => void }) {
  const [limit, setLimit] = useState(DEFAULT_LIMIT_USD);
  const [key, setKey] = useState('');
  const [workspace, setWorkspace] = useState('');
  const create = useChange(
    async () => {
      const name = `Console, ${new Date().toISOString().slice(0, 10)}`;
      const made = await api('POST /keys', {
        body: {
          name,
          ...inWorkspace(workspace),
          ...(limit !== '' && { limit: Number(limit), limit_reset: 'daily' as const }),
        },
      });
      await chooseInferenceKey(made.key);
    },
    ['GET /keys'],
    done,
  );
  const paste = useChange(chooseInferenceKey, [], done);
  return (
    <div class="columns choose">
      <Form submit="Create a key" change={create}>
        <Amount label="Daily limit in USD" value={limit} onInput={setLimit} hint="Empty: no limit" />
        <WorkspaceChoice value={workspace} onChange={setWorkspace} />
      </Form>
      <Form submit="Use this key" change={paste} value={key.trim()}>
        <Text label="Or paste an inference key" type="password" required maxLength={512} value={key} onInput={setKey} />
      </Form>
    </div>
  );
}

/** Shows which key is used, and lets it be changed. */
export function InferenceKeyInUse({ session }: { session: Session }) {
  return <InferenceKeyChange name={session.inference_key?.name ?? ''} />;
}

function InferenceKeyChange({ name }: { name?: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button kind="quiet" icon="keys" onClick={() => setOpen(true)}>
        <span class="clip">{name ?? 'Use another key'}</span>
      </Button>
      {open && (
        <Dialog title="Use another inference key" wide onClose={() => setOpen(false)}>
          <ChooseKey done={() => setOpen(false)} />
        </Dialog>
      )}
    </>
  );
}

/** For a key that sees neither interns nor vaults, and how it can. */
export function OutsideOfProgramme({ session: { inference_key: key } }: { session: Session }) {
  const settings = `intern_programme:
  workspaces: [${key?.workspace_id}]
  # or this key only:
  keys: [${key?.hash}]`;
  return (
    <Card title="This key does not take part in the interns programme" actions={<InferenceKeyChange />}>
      <div class="stack">
        <p class="soft">
          So it has no vault and no interns. Use another key, or name this one or its workspace in{' '}
          <code>gatehouse.yaml</code>, which is read again without a restart (<code>kill -HUP</code>).
        </p>
        <Code label="settings of the programme" text={settings} />
      </div>
    </Card>
  );
}
