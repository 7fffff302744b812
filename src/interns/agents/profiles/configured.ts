/** An agent that the operator has installed next to the gateway. The yaml file has no section for them yet. */
export interface ConfiguredAgent {
  /** Which of the known programs it is; null: any other that speaks the Agent Client Protocol. */
  readonly program: 'opencode' | 'claude' | 'qwen' | 'codex' | null;
  /** Where it is installed: the folder that was `npm install --prefix`. The sandbox sees it read-only. */
  readonly folder: string;
  /** For a program that is not known: its command, relative to the folder, and arguments. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}
