/** The form that creates a preset, or its next version. */
import { useState } from 'preact/hooks';
import type { ApiPresetWithDesignatedVersion } from '../api.gen.ts';
import { FORMAT_NAMES, type FormatName } from '../playground/conversation.ts';
import { useChange } from '../query.ts';
import { AnswerSettings } from '../ui/answer-settings.tsx';
import { Area, Choice, Dialog, Form, Text } from '../ui/forms.tsx';
import { NO_SETTINGS, PRESET_READS, type PresetSettings, savePreset } from './settings.ts';

interface EditPresetProps {
  /** Of a preset that exists. */
  slug?: string;
  settings?: PresetSettings;
  workspace: string;
  onClose(): void;
  onSaved(preset: ApiPresetWithDesignatedVersion): void;
}

export function EditPreset({ slug, settings: known = NO_SETTINGS, workspace, onClose, onSaved }: EditPresetProps) {
  const [name, setName] = useState(slug ?? '');
  const [settings, setSettings] = useState(known);
  const set = (member: keyof PresetSettings) => (value: string) => setSettings({ ...settings, [member]: value });
  const change = useChange(
    () => savePreset(name.trim(), workspace, settings),
    PRESET_READS,
    ({ data }) => onSaved(data),
  );
  return (
    <Dialog title={slug === undefined ? 'Create a preset' : `New version of ${slug}`} wide onClose={onClose}>
      <Form submit={slug === undefined ? 'Create' : 'Save as the next version'} change={change} onCancel={onClose}>
        <div class="form-row">
          {slug === undefined && (
            <Text
              label="Name"
              required
              maxLength={100}
              value={name}
              onInput={setName}
              hint={`Requests name it as @preset/${name.trim() || 'name'}`}
            />
          )}
          <Choice
            label="Format of the settings"
            value={settings.format}
            options={FORMAT_NAMES}
            onChange={(format) => setSettings({ ...settings, format: format as FormatName })}
            hint="Requests in the other formats can use them, too"
          />
        </div>
        <Text
          label="Model"
          member="model"
          code
          value={settings.model}
          onInput={set('model')}
          hint="Empty: the request names one"
        />
        <Area label="System prompt" rows={5} value={settings.system} onInput={set('system')} />
        <AnswerSettings settings={settings} onInput={set} />
        <Area
          label="More settings"
          code
          rows={6}
          value={settings.more}
          onInput={set('more')}
          placeholder={'{ "provider": { "zdr": true } }'}
          hint="A JSON object of members of the format. Members that belong to one request, such as messages, are left out."
        />
      </Form>
    </Dialog>
  );
}
