/** Chooses one of the organization's workspaces. */
import { MOST_ROWS, useAll } from '../query.ts';
import { count } from './format.ts';
import { Choice } from './forms.tsx';

interface WorkspaceChoiceProps {
  /** Empty: the default workspace. */
  value: string;
  onChange(value: string): void;
}

/** The member of a query or a body. @param workspace empty: the default one */
export function inWorkspace(workspace: string): { workspace_id?: string } {
  return workspace === '' ? {} : { workspace_id: workspace };
}

export function WorkspaceChoice({ value, onChange }: WorkspaceChoiceProps) {
  const { data } = useAll('GET /workspaces');
  const options = (data?.rows ?? []).map(({ id, name }) => [id, name] as const);
  return (
    <Choice
      label="Workspace"
      member="workspace_id"
      value={value}
      options={[['', 'Default workspace'], ...options]}
      onChange={onChange}
      hint={data?.isCut && `The first ${count(MOST_ROWS)}`}
    />
  );
}
