/** Chooses one of the organization's workspaces. */
import { useApi } from '../query.ts';
import { Choice } from './forms.tsx';

interface WorkspaceChoiceProps {
  /** Empty: the default workspace. */
  value: string;
  onChange(value: string): void;
}

const MOST_LISTED = 100;

/** The member of a query or a body. @param workspace empty: the default one */
export function inWorkspace(workspace: string): { workspace_id?: string } {
  return workspace === '' ? {} : { workspace_id: workspace };
}

export function WorkspaceChoice({ value, onChange }: WorkspaceChoiceProps) {
  const { data } = useApi('GET /workspaces', { query: { limit: MOST_LISTED } });
  const options = (data?.data ?? []).map(({ id, name }) => [id, name] as const);
  return (
    <Choice label="Workspace" value={value} options={[['', 'Default workspace'], ...options]} onChange={onChange} />
  );
}
