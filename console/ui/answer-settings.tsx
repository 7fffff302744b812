/** The settings of a request that are numbers. */
import { Amount, Text } from './forms.tsx';

interface AnswerSettingsProps {
  /** Empty texts: not set. */
  settings: { temperature: string; maxTokens: string };
  onInput(member: 'temperature' | 'maxTokens'): (value: string) => void;
}

export function AnswerSettings({ settings, onInput }: AnswerSettingsProps) {
  return (
    <div class="form-row">
      <Amount label="Temperature" member="temperature" value={settings.temperature} onInput={onInput('temperature')} />
      <Text
        label="Longest answer, in tokens"
        type="number"
        min={1}
        value={settings.maxTokens}
        onInput={onInput('maxTokens')}
      />
    </div>
  );
}
