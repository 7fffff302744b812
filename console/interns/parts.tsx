/** What the list of interns and the page of one share. */
import { useState } from 'preact/hooks';
import type { ApiIntern } from '../api.gen.ts';
import { type ApiName, api } from '../api.ts';
import { useChange } from '../query.ts';
import { Badge, type Tone } from '../ui/basics.tsx';
import { Check, Confirm } from '../ui/forms.tsx';

const TONES: Readonly<Record<string, Tone>> = {
  running: 'good',
  queued: 'info',
  provisioning: 'info',
  failed: 'bad',
  destroy_failed: 'bad',
};
export const STARTED: ReadonlySet<string> = new Set(['queued', 'provisioning', 'running']);
export const INTERNS = ['GET /interns', 'GET /interns/{internId}'] as const satisfies readonly ApiName[];

export function InternState({ intern: { status, progress, last_failure_message: failure } }: { intern: ApiIntern }) {
  return (
    <span class="badges">
      <Badge tone={TONES[status] ?? 'plain'}>{status.replaceAll('_', ' ')}</Badge>
      {progress !== null && STARTED.has(status) && (
        <span class="soft small">
          {progress.step_label} ({progress.step_number} of {progress.total_steps})
        </span>
      )}
      {failure !== null && status.endsWith('failed') && (
        <span class="small clip" title={failure}>
          {failure}
        </span>
      )}
    </span>
  );
}

/** Starts an intern, or suspends one that is started. */
export function useStartStop() {
  return useChange(
    ({ id, status }: ApiIntern): Promise<unknown> =>
      STARTED.has(status)
        ? api('POST /interns/{internId}/suspend', { path: { internId: id } })
        : api('POST /interns/{internId}/provision', { path: { internId: id } }),
    INTERNS,
  );
}

interface RemoveInternProps {
  intern: ApiIntern;
  onClose(): void;
  onRemoved(): void;
}

export function RemoveIntern({ intern, onClose, onRemoved }: RemoveInternProps) {
  const [lossy, setLossy] = useState(false);
  const change = useChange(
    () =>
      api('DELETE /interns/{internId}', {
        path: { internId: intern.id },
        body: { acknowledge_workspace_loss: lossy },
      }),
    INTERNS,
    onRemoved,
  );
  return (
    <Confirm
      title={`Delete ${intern.name}?`}
      action="Delete the intern"
      word={intern.name}
      change={change}
      onClose={onClose}
    >
      <p>This cannot be undone.</p>
      <ul>
        <li>Its sandbox stops, and its workspace is archived.</li>
        <li>Its vault with all of its secrets, and its key, are lost.</li>
      </ul>
      <Check label="Delete it even if its workspace cannot be archived" checked={lossy} onChange={setLossy} />
    </Confirm>
  );
}
